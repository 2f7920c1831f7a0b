"""Devices in virtual machines: live images, QEMU, and the guest as a node.

::

    with Guest(image, settings, cmdline="isolcpus=1", console=log) as guest, \
            guest.forwarding(folder) as at:
        ...

An image (:mod:`.image`) is a kernel, an initramfs and a root file system, made of Debian packages
and never written to. :mod:`.machine` boots it, :mod:`.channel` is how to reach it, and
:mod:`.guest` makes a node of it.
"""
