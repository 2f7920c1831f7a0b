"""Booting a node into another kernel and boot line, and seeing that it did.

::

    line     what is asked of a boot, and what a node says of the one it is in
    kexec    the running kernel starts the next one, without the firmware
    grub     the boot loader starts it once: the next reset falls back to what was there
    reboot   one of the two, from beginning to end
"""
