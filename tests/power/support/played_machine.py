"""A machine whose files are a folder and whose shell is real: GRUB and kexec are played."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.boot.methods import CHECK, EDITENV
from tailtrim.laboratory.nodes.host import Facts, Shell
from tailtrim.laboratory.nodes.power import Power, State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UUID = "1c0f8cd2-0000-4000-8000-000000000001"
OLD = "BOOT_IMAGE=/vmlinuz-6.1 root=/dev/sda1 quiet"
#: Programs of this host that a machine has. It has no others: kexec and systemctl are played.
_OF_HOST = ("sh", "cat", "sync", "mv", "rm", "test", EDITENV.program, CHECK.program)
_PLAYED = {
    "kexec": """
case "$1" in
--load) printf '%s\\n' "$@" >/media/loaded; echo 1 >/sys/kernel/kexec_loaded ;;
--unload) echo 0 >/sys/kernel/kexec_loaded ;;
--exec) echo kexec >/media/asked; exit 255 ;;
esac
""",
    "systemctl": 'case "$1" in kexec) echo kexec ;; reboot) echo reset ;; esac >/media/asked',
    "reboot": "echo reset >/media/asked",
    "grub-probe": f"""
case "$1" in
--target=fs_uuid) echo {UUID} ;;
--target=fs) cat /media/filesystem ;;
--target=abstraction) cat /media/below ;;
esac
""",
    "grub-mkrelpath": 'echo "${1#/boot}"',
}
# The played programs take the place of /media: without it no command is run.
_INSIDE = """
for place in boot media proc/sys/kernel proc/cmdline sys/kernel run; do
    mount --bind "$0/$place" "/$place" || exit 125
done
exec env -i PATH=/media/bin "$@"
"""


class Machine(Shell):
    """A machine for boots; it is reached with :meth:`reach`."""

    def __init__(self, tree: Path) -> None:
        self.role, self.facts = "dut", Facts("6.1", "x86_64", 1, root=True)
        self._tree = tree
        self.up = True
        #: Whether kernels that were asked for hang.
        self.hangs = False
        self.resets = 0
        for folder in ("boot/grub", "media/bin", "proc/sys/kernel/random", "sys/kernel", "run"):
            (tree / folder).mkdir(parents=True)
        (tree / "run/systemd/system").mkdir(parents=True)
        for name, text in (
            ("boot/grub/grub.cfg", "set next_entry=\nsource custom.cfg\n"),
            ("boot/vmlinuz-6.12", ""),
            ("boot/initrd-6.12", ""),
            ("media/filesystem", "ext2\n"),
            ("media/below", ""),
            ("sys/kernel/kexec_loaded", "0\n"),
        ):
            self.write(name, text)
        self._runs("6.1", OLD)
        for program in _OF_HOST:
            (tree / "media/bin" / program).symlink_to(str(local_host.which(program)))
        for program, text in _PLAYED.items():
            self.plays(program, text)

    def plays(self, program: str, text: str) -> None:
        """Have a program do this."""
        path = self._tree / "media/bin" / program
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def write(self, name: str, text: str) -> None:
        (self._tree / name).write_text(text)

    def read(self, name: str) -> str | None:
        path = self._tree / name
        return path.read_text() if path.exists() else None

    def without_systemd(self) -> None:
        shutil.rmtree(self._tree / "run/systemd")

    @property
    def environment(self) -> str:
        """Content of GRUB's environment block."""
        return self.run(EDITENV.program, "/boot/grub/grubenv", "list")

    @contextmanager
    def reach(self) -> Iterator[Self]:
        """Connect; a boot that was asked for has happened by then."""
        asked = self.read("media/asked")
        if asked:
            (self._tree / "media/asked").unlink()
            self._kexec() if asked == "kexec\n" else self.reset()
        if not self.up:
            raise RunError("dut: no route to host")
        yield self

    def reset(self) -> None:
        """Start at the firmware: GRUB boots the next entry, once, or the old one."""
        self.resets += 1
        self.up = True
        self.write("sys/kernel/kexec_loaded", "0\n")
        if "next_entry=tailtrim" not in self.environment.split():
            self._runs("6.1", OLD)
            return
        self.run(EDITENV.program, "/boot/grub/grubenv", "unset", "next_entry")
        entry = re.search(
            r"^menuentry 'tailtrim' .*?^\tlinux (.*?)$",
            self.read("boot/grub/custom.cfg") or "",
            re.DOTALL | re.MULTILINE,
        )
        assert entry
        kernel, *words = shlex.split(entry.group(1))
        self._asked(kernel, f"BOOT_IMAGE={kernel} {' '.join(words)}")

    def _kexec(self) -> None:
        told = (self.read("media/loaded") or "").splitlines()
        (line,) = (word.partition("=")[2] for word in told if word.startswith("--command-line="))
        self.write("sys/kernel/kexec_loaded", "0\n")
        self._asked(told[-1], line)

    def _asked(self, kernel: str, line: str) -> None:
        self.up = not self.hangs
        self._runs(kernel.rpartition("vmlinuz-")[2], line)

    def _runs(self, release: str, line: str) -> None:
        self.write("proc/sys/kernel/osrelease", f"{release}\n")
        self.write("proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
        self.write("proc/cmdline", f"{line}\n")

    def call(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",))]
        return subprocess.run(
            [*words, "sh", "-c", _INSIDE, str(self._tree), *command],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )


class Plug(Power):
    """The machine's power."""

    kind: Literal["plug"] = "plug"
    off_s: float = 0
    machine: Any

    @property
    def place(self) -> str:
        return "plug"

    def state(self) -> State:
        return State.ON if self.machine.up is not None else State.OFF

    def _switch(self, to: State, *, hard: bool) -> None:
        assert hard or to is State.ON
        if to is State.ON:
            self.machine.reset()
        else:
            self.machine.up = None
