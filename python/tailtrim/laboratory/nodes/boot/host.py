"""A host that a testbed file describes, booted as a plan asks for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.boot.line import BootLine
from tailtrim.laboratory.nodes.boot.methods import Grub, Kexec
from tailtrim.laboratory.nodes.boot.reboot import reboot

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.boot.reboot import BootMethod
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.node_entry import NodeBoot, NodeEntry

METHODS: dict[str, BootMethod] = {"grub": Grub(), "kexec": Kexec()}
_PREFIX = "/boot/vmlinuz-"


@dataclass(frozen=True, slots=True)
class BootRequest:
    """A kernel and boot line of a plan, for a host.

    Args:
        kernel: its release, or its path in /boot.
        cmdline: what follows the boot line that every boot of the host begins with.

    """

    kernel: str
    cmdline: str

    @property
    def release(self) -> str:
        """Its name for ``uname -r``."""
        return self.kernel.removeprefix(_PREFIX)

    def words(self, boot: NodeBoot) -> tuple[str, ...]:
        """Return the words of the whole boot line."""
        return (*boot.line.split(), *self.cmdline.split())

    def line(self, node: Host, boot: NodeBoot) -> BootLine:
        """Return what is to be booted, with the files that the host has for it.

        Raises:
            HostError: the kernel is not there.

        """
        kernel = f"{_PREFIX}{self.release}"
        if not node.exists(kernel):
            raise HostError(f"boot.kernel: {kernel} is missing, expected a kernel of the host")
        places = (f"/boot/initrd.img-{self.release}", f"/boot/initramfs-{self.release}.img")
        initrd = next(filter(node.exists, places), None)
        return BootLine(kernel, initrd, self.words(boot), self.release)


def rebooted(name: str, entry: NodeEntry, asked: BootRequest) -> dict[str, Any]:
    """Boot a host, and return how: line as asked, set and seen, and how long it took.

    It is a host that the testbed file allows to be booted. Its power is cycled once if it does not
    come up, where that is allowed.

    Raises:
        HostError: it cannot be booted so, or did not come up as asked.
        RunError: the connection is lost before it boots.

    """
    if entry.boot is None:
        raise HostError(f"{name}: nodes.{name}.boot is not in the testbed file")

    reach = partial(entry.shell, name)
    began_s = time.monotonic()
    with reach() as node:
        line = asked.line(node, entry.boot)
    method, power = METHODS[entry.boot.by], entry.cycled_by
    seen = reboot(reach, method, line, within_s=entry.boot_s, power=power)
    return {
        "kernel": seen.release,
        "boot_id": seen.boot_id,
        "boot_line": {
            "asked": " ".join(asked.cmdline.split()),
            "set": line.text,
            "seen": " ".join(seen.words),
        },
        "by": entry.boot.by,
        "boot_s": round(time.monotonic() - began_s, 3),
    }
