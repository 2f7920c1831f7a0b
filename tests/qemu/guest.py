"""A machine of four CPUs that boots, says what its kernel made of the boot line, and ends."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tools
from fetched import KERNELS

from tailtrim.laboratory.nodes import agent as installed

ROOT = Path(__file__).resolve().parent.parent.parent
CPUS = 4
BOOT_TIMEOUT_S = 240
# The guest speaks on its second serial port; output on the first one is kept for failures.
# An emulated timer on a busy host is late. A kernel that checks it takes the IO-APIC for broken.
COMMON = "console=ttyS0 panic=-1 no_timer_check"


@dataclass(frozen=True)
class Boot:
    """Output of a guest."""

    line: str
    parts: dict[str, str]

    @property
    def audit(self) -> dict[str, Any]:
        """The linter's JSON, of the running line in the guest."""
        answer: dict[str, Any] = json.loads(self.parts["audit"])
        return answer

    def file(self, path: str) -> str:
        """Return the content of a file that the guest printed; no list is an empty text."""
        text = self.parts[path]
        return "" if text == "(null)" else text

    def logged(self, pattern: str) -> str | None:
        """Return what a pattern finds in the kernel's log."""
        found = re.search(pattern, self.parts["log"])
        return found.group(1) if found else None

    @property
    def unknown(self) -> set[str]:
        """The words that the kernel named as unknown."""
        words = self.logged(r'Unknown kernel command line parameters "(.*)", will be')
        return set((words or "").split())

    @property
    def offloaded(self) -> str:
        """The CPUs whose RCU callbacks are offloaded."""
        told = self.logged(r"Offload RCU callbacks from CPUs: (.*?)\.?\n") or ""
        return "" if told == "(none)" else told

    @property
    def handed_on(self) -> set[str]:
        """The words that PID 1 got: those that the kernel took for unknown."""
        own = {"/bin/busybox", "sh", "/init"}
        environment = {word for word in self.environment if not word.startswith(("HOME=", "TERM="))}
        return (set(self.arguments) - own) | environment

    @property
    def arguments(self) -> list[str]:
        return self.parts["arguments"].splitlines()

    @property
    def environment(self) -> list[str]:
        return self.parts["environment"].splitlines()


class Machine:
    """Boots lines; every line once."""

    def __init__(self, kernel: Path, agent: Path, folder: Path) -> None:
        self.kernel = kernel
        self.agent = agent
        self.folder = folder
        self.initramfs = _initramfs(agent, folder)
        self.boots: dict[str, Boot] = {}

    def boot(self, line: str) -> Boot:
        """Boot with a line behind the words that the guest needs."""
        if line not in self.boots:
            self.boots[line] = self._boot(f"{COMMON} {line}")
        return self.boots[line]

    def _boot(self, line: str) -> Boot:
        said = self.folder / "said"
        said.unlink(missing_ok=True)
        command = [
            "qemu-system-x86_64",
            # Nested KVM hangs on machines that are guests themselves. In several threads, QEMU
            # before 8.1 crashes kernels that patch themselves (bugs.launchpad.net/bugs/2051965).
            # With less than 512 MiB left, transparent huge pages are off whatever the line says.
            *("-accel", "tcg,thread=single", "-cpu", "max", "-smp", str(CPUS), "-m", "768"),
            *("-nographic", "-no-reboot", "-monitor", "none"),
            *("-kernel", str(self.kernel), "-initrd", str(self.initramfs), "-append", line),
            *("-serial", "stdio", "-serial", f"file:{said}"),
        ]
        try:
            console = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=BOOT_TIMEOUT_S,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired as late:
            console = late.stdout or b""
        text = said.read_text(errors="replace").replace("\r", "") if said.exists() else ""
        if not text.rstrip().endswith("--8<-- end"):
            last = "\n".join(console.decode(errors="replace").splitlines()[-40:])
            raise AssertionError(
                f"the guest did not come to its end: {line}\n{text[-500:]}\n{last}"
            )
        parts = (part.partition("\n") for part in text.split("--8<-- ")[1:])
        return Boot(line, {name: content.strip() for name, _, content in parts})


def machine(flavour: str, folder: Path) -> Machine:
    """Return a machine with a flavour of Debian's kernel, or skip loudly."""
    tools.need(tools.QEMU, tools.BUSYBOX, tools.CPIO)
    kernel = KERNELS / flavour / "vmlinuz"
    if not kernel.is_file():
        pytest.skip(f"no guests here: no {kernel} (packaging/kernels.sh gets it)")
    return Machine(kernel, Path(installed.program()), folder)


def _initramfs(agent: Path, folder: Path) -> Path:
    """Return an archive of busybox, the agent and the guest's script."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin" / "busybox")
    shutil.copy(agent, root / "tailtrim-agent")
    shutil.copy(Path(__file__).with_name("guest.sh"), root / "init")
    for program in ("bin/busybox", "tailtrim-agent", "init"):
        (root / program).chmod(0o755)
    archive = folder / "initramfs"
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with archive.open("wb") as out:
        subprocess.run(
            ["/usr/bin/env", "cpio", "--quiet", "-o", "-H", "newc"],
            input=names.encode(),
            stdout=out,
            cwd=root,
            check=True,
        )
    return archive
