"""Boots of a node into another kernel and boot line, seen to be as asked.

::

    line      boot lines as asked and as seen
    methods   kexec: the running kernel starts the next one, without the firmware; GRUB: the boot
              loader starts it once, and the next reset falls back to what was there
    reboot    one of the two, from beginning to end
    host      a host of a testbed, booted as a plan asks
"""
