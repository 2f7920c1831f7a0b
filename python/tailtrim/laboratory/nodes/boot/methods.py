"""Methods to boot another kernel and line: GRUB's next entry, and kexec."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes.boot.reboot import BootMethod
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.boot.line import BootLine
    from tailtrim.laboratory.nodes.host import Shell

EDITENV = Tool("grub-editenv", "grub-common")
PROBE = Tool("grub-probe", "grub-common")
RELATIVE = Tool("grub-mkrelpath", "grub-common")
CHECK = Tool("grub-script-check", "grub-common")
_FOLDER = "/boot/grub"
_CONFIGURATION, _ENVIRONMENT = f"{_FOLDER}/grub.cfg", f"{_FOLDER}/grubenv"
CUSTOM = f"{_FOLDER}/custom.cfg"
_ENTRY = "tailtrim"
_BEGIN, _END = f"# {_ENTRY}: begin", f"# {_ENTRY}: end"
_OWN = re.compile(rf"^{_BEGIN}\n.*?^{_END}\n", re.DOTALL | re.MULTILINE)
#: GRUB manual, "Environment block": not written on LVM or RAID, nor on filesystems with checksums.
_NOT_WRITTEN = ("btrfs", "zfs")
# A reset while it is written finds the old file or the new one.
_WRITE = 'cat >"$1.new" && sync "$1.new" && mv "$1.new" "$1" && sync "${1%/*}"'
#: Its package can also take over every reboot of a host.
KEXEC = Tool("kexec", "kexec-tools", service=True)
_LOADED = "/sys/kernel/kexec_loaded"
#: From here on an exit code is a signal's, or that of ssh for a lost connection.
_NOT_OF_COMMANDS = 128


class Grub(BootMethod):
    """An entry of its own of Debian's GRUB 2, in /boot/grub, for the next boot only.

    GRUB forgets ``next_entry`` when it has read it, before the kernel starts. A host that does not
    come up so is back in its old entry after its next reset.
    """

    tools: ClassVar[tuple[Tool, ...]] = (EDITENV, PROBE, RELATIVE, CHECK)

    def prepare(self, node: Shell, line: BootLine) -> None:
        """Write an entry, and make it the next one."""
        node.require(*self.tools)
        line.require(node)
        self._require(node, line)
        kept = _OWN.sub("", _custom(node))
        kept += "" if not kept or kept.endswith("\n") else "\n"
        _write(node, kept + _entry(node, line))
        node.run(CHECK.program, CUSTOM)
        self._next(node, f"set next_entry={_ENTRY}")
        if f"next_entry={_ENTRY}" not in node.run(EDITENV.program, _ENVIRONMENT, "list").split():
            raise HostError(f"{node.role}: {_ENVIRONMENT} has no next_entry, expected {_ENTRY}")

    def leave(self, node: Shell) -> None:
        """Reboot, through systemd where there is."""
        _leave(node, *(("systemctl", "reboot") if _has_systemd(node) else ("reboot",)))

    def restore(self, node: Shell) -> None:
        """Remove the entry, and what says that it is the next one."""
        custom = _custom(node)
        kept = _OWN.sub("", custom)
        if kept != custom:
            if kept:
                _write(node, kept)
            else:
                node.run("rm", CUSTOM)
        if node.exists(_ENVIRONMENT):
            self._next(node, "unset next_entry")

    def _next(self, node: Shell, command: str) -> None:
        node.run(EDITENV.program, _ENVIRONMENT, *command.split())

    def _require(self, node: Shell, line: BootLine) -> None:
        """Make sure that GRUB reads the entry, and that it can forget it."""
        for path in filter(None, (line.kernel, line.initrd)):
            if not path.startswith("/boot/"):
                raise HostError(f"{node.role}: {path}: expected it in /boot, which GRUB reads")
        configuration = node.run("cat", _CONFIGURATION)
        for word in ("custom.cfg", "next_entry"):
            if word not in configuration:
                error = HostError(f"{node.role}: {_CONFIGURATION} does not read {word}")
                error.add_note("run update-grub; /etc/grub.d/00_header and 41_custom write it")
                raise error
        below = node.run(PROBE.program, "--target=abstraction", _FOLDER).split()
        system = node.run(PROBE.program, "--target=fs", _FOLDER).strip()
        where = [*below, *((system,) if system in _NOT_WRITTEN else ())]
        if where:
            error = HostError(
                f"{node.role}: {_FOLDER} is on {' '.join(where)}, where GRUB cannot write, expected"
                " a plain partition: it would boot the new entry again and again"
            )
            error.add_note("boot by kexec, or have /boot on a plain partition with ext4 or FAT")
            raise error


class Kexec(BootMethod):
    """kexec: the firmware is left out, and with it what a reset does to devices."""

    tools: ClassVar[tuple[Tool, ...]] = (KEXEC,)

    def prepare(self, node: Shell, line: BootLine) -> None:
        """Load the kernel."""
        node.require(*self.tools)
        line.require(node)
        initrd = [f"--initrd={line.initrd}"] if line.initrd else []
        # The system call that takes files where the kernel has it: lockdown allows no other.
        how = ("--load", "--kexec-syscall-auto", f"--command-line={line.text}")
        node.run(KEXEC.program, *how, *initrd, line.kernel)
        if node.run("cat", _LOADED).strip() != "1":
            raise HostError(f"{node.role}: {_LOADED} is not 1, expected it after kexec --load")

    def leave(self, node: Shell) -> None:
        """Start what was loaded: through systemd, which ends its services first, where there is."""
        if _has_systemd(node):
            _leave(node, "systemctl", "kexec")
        else:
            node.run("sync")
            _leave(node, KEXEC.program, "--exec")

    def restore(self, node: Shell) -> None:
        """Forget what was loaded; the next kernel has nothing loaded anyway."""
        if node.exists(_LOADED) and node.run("cat", _LOADED).strip() == "1":
            node.run(KEXEC.program, "--unload")


def _custom(node: Shell) -> str:
    """Return custom.cfg, which need not be there."""
    return node.run("cat", CUSTOM) if node.exists(CUSTOM) else ""


def _write(node: Shell, text: str) -> None:
    node.run("sh", "-c", _WRITE, "sh", CUSTOM, given=text)


def _entry(node: Shell, line: BootLine) -> str:
    uuid = node.run(PROBE.program, "--target=fs_uuid", _FOLDER).strip()
    # In single quotes GRUB takes a word as it is; a boot line has none in it.
    words = "".join(f" '{word}'" for word in line.words)
    loaded = [f"linux '{_relative(node, line.kernel)}'{words}"]
    loaded += [f"initrd '{_relative(node, line.initrd)}'"] if line.initrd else []
    body = "".join(
        f"\t{one}\n" for one in (f"search --no-floppy --fs-uuid --set=root {uuid}", *loaded)
    )
    return f"{_BEGIN}\nmenuentry '{_ENTRY}' --id '{_ENTRY}' {{\n{body}}}\n{_END}\n"


def _relative(node: Shell, path: str) -> str:
    """Return a path as GRUB has it: within its filesystem."""
    return node.run(RELATIVE.program, path).strip()


def _has_systemd(node: Shell) -> bool:
    """Return whether systemd runs there."""
    return node.exists("/run/systemd/system")


def _leave(node: Shell, *command: str) -> None:
    """Run a command that ends the node's system."""
    try:
        ended = node.call(*command)
    except RunError:
        return  # the connection ended first
    if 0 < ended.returncode < _NOT_OF_COMMANDS:
        told = (ended.stderr or ended.stdout).strip().splitlines()
        problem = told[-1] if told else f"ended with {ended.returncode}"
        raise HostError(f"{node.role}: {' '.join(command)}: {problem}")
