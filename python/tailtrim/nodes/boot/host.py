"""A host that a testbed file describes, booted as a plan asks for."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.nodes.boot.grub import Grub
from tailtrim.nodes.boot.kexec import Kexec
from tailtrim.nodes.boot.line import BootLine
from tailtrim.nodes.boot.reboot import reboot
from tailtrim.nodes.ssh.connection import Connection
from tailtrim.nodes.ssh.shell import HostShell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.nodes.boot.reboot import Way
    from tailtrim.nodes.node import Host
    from tailtrim.nodes.testbed_file import NodeBoot, NodeEntry

WAYS: dict[str, Way] = {"grub": Grub(), "kexec": Kexec()}
_PREFIX = "/boot/vmlinuz-"
#: While a host boots, one that does not answer is tried again.
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A kernel and boot line of a plan, for a host.

    Args:
        kernel: its release, or its path in /boot.
        cmdline: what follows the boot line that every boot of the host begins with.

    """

    kernel: str
    cmdline: str

    @property
    def release(self) -> str:
        """What ``uname -r`` says when it runs."""
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


def rebooted(name: str, entry: NodeEntry, asked: Asked) -> dict[str, Any]:
    """Boot a host, and return how: line as asked, set and seen, and how long it took.

    It is a host that the testbed file allows to be booted. Its power is cycled once if it does not
    come up, where that is allowed.

    Raises:
        HostError: it cannot be booted so, or did not come up as asked.
        RunError: the connection is lost before it boots.

    """
    if entry.boot is None:
        raise HostError(f"{name}: nodes.{name}.boot is not in the testbed file")

    @contextmanager
    def reach() -> Iterator[HostShell]:
        with Connection(name, entry.ssh, ready_s=_ANSWER_S) as connection:
            yield HostShell(connection)

    began_s = time.monotonic()
    with reach() as node:
        line = asked.line(node, entry.boot)
    way, power = WAYS[entry.boot.by], entry.cycled_by
    seen = reboot(reach, way, line, within_s=entry.boot_s, power=power)
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
