"""Devices in virtual machines: live images, QEMU, and the guest as a node.

::

    with Guest(image, settings, cmdline="isolcpus=1", console=log) as guest, \
            guest.forwarding(folder) as at:
        ...

An image (:mod:`.image`) is a kernel, an initramfs and a root file system, made of Debian packages
and never written to. :mod:`.machine` boots it, and :mod:`.guest` makes a node of it. Ports are
virtio-net on a tap (:mod:`.tap`), or PCI devices of this host: :mod:`.pci` looks at those before
anything starts, and :mod:`.vfio` binds them.
"""
