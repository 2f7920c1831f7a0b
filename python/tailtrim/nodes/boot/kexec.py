"""The running kernel starts the next one, without the firmware in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tailtrim.errors import HostError
from tailtrim.nodes.boot.leaving import has_systemd, leave
from tailtrim.nodes.tool import Tool

if TYPE_CHECKING:
    from tailtrim.nodes.boot.line import BootLine
    from tailtrim.nodes.node import Shell

#: Its package can also take over every reboot of a host.
KEXEC = Tool("kexec", "kexec-tools", service=True)
_LOADED = "/sys/kernel/kexec_loaded"


class Kexec:
    """kexec: the firmware is left out, and with it what a reset does to devices."""

    tools: ClassVar[tuple[Tool, ...]] = (KEXEC,)

    def prepare(self, node: Shell, line: BootLine) -> None:
        """Load the kernel.

        Raises:
            HostError: the node has not what it takes, or its kernel refuses.

        """
        node.require(*self.tools)
        line.require(node)
        initrd = [f"--initrd={line.initrd}"] if line.initrd else []
        # The system call that takes files where the kernel has it: lockdown allows no other.
        how = ("--load", "--kexec-syscall-auto", f"--command-line={line.text}")
        node.run(KEXEC.program, *how, *initrd, line.kernel)
        if node.run("cat", _LOADED).strip() != "1":
            raise HostError(f"{node.role}: {_LOADED} is not 1, expected it after kexec --load")

    def leave(self, node: Shell) -> None:
        """Start what was loaded: through systemd, which ends its services first, where there is.

        Raises:
            HostError: it was refused.

        """
        if has_systemd(node):
            leave(node, "systemctl", "kexec")
        else:
            node.run("sync")
            leave(node, KEXEC.program, "--exec")

    def restore(self, node: Shell) -> None:
        """Forget what was loaded; the next kernel has nothing loaded anyway.

        Raises:
            HostError: the kernel refused.

        """
        if node.exists(_LOADED) and node.run("cat", _LOADED).strip() == "1":
            node.run(KEXEC.program, "--unload")
