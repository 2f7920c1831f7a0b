"""A guest that has the files of this machine: its programs run on hardware that is not here."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fetched import ROOTS
from shell_guest import CONSOLE, Guest, booted, imaged, shell

import tailtrim
from tailtrim.laboratory.nodes.vm import image

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).resolve().parents[2]
#: Since QEMU 8.0 there is an igb; Debian 13 has 10.0.
NEWER = "trixie-qemu"
IN_ROOT = str(PROJECT / "packaging" / "in-root.sh")
PROGRAM = (IN_ROOT, NEWER, "qemu-system-x86_64")
#: Modules that programs of this machine need, loaded in this order.
_MODULES = ("9pnet_virtio", "9p", "veth", "vfio_iommu_type1", "vfio_pci")
#: The emulated counter is good enough, and a kernel that doubts it is slow.
_LINE = f"{CONSOLE} quiet net.ifnames=0 tsc=reliable clocksource=tsc intel_iommu=on"
_LINE += " ipv6.disable_ipv6=1"
#: Where its programs may write.
SCRATCH = "/mnt"
# Nothing of this machine can be written.
_ENTER = f"""
mkdir -p /host /sbin
ln -s /bin/busybox /sbin/modprobe
ip link set lo up
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
mount -t tmpfs tmpfs /host/run
mount -t tmpfs tmpfs /host{SCRATCH}
for place in dev proc sys; do mount --bind /$place /host/$place; done
mkdir -p /host/run/netns
"""
WITHIN_S = 120


class SameMachine:
    """A machine with the files of this one, as long as its guest runs."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        python = f"PYTHONPATH={Path(tailtrim.__file__).parents[1]}"
        self._words = (
            *("chroot", "/host", "/usr/bin/env", "-i", f"PATH={path}:/usr/sbin:/sbin", python),
            *("PYTHONDONTWRITEBYTECODE=1", f"TMPDIR={SCRATCH}", "HOME=/root"),
        )

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self._guest.call(*self._words, *command)

    def run(self, *command: str) -> str:
        return self._guest.run(*self._words, *command)

    def start(self, name: str, *command: str) -> None:
        """Start a command, whose output, errors and number are in files of that name."""
        place = f"{SCRATCH}/{name}"
        begun = f"echo $$ >{place}.pid; exec {shlex.join(command)} >{place}.out 2>{place}.err"
        script = 'rm -f "$2".*; setsid sh -c "$1" </dev/null &'
        self.run("sh", "-c", script, "sh", begun, place)

    def told(self, name: str, word: str) -> str:
        """Return the first line of a command that has this word, which it may tell later."""
        found = ""

        def has_told() -> bool:
            nonlocal found
            told = self.call("grep", "-m1", "-e", word, f"{SCRATCH}/{name}.out")
            found = told.stdout
            return told.returncode == 0

        self.until(has_told, name)
        return found

    def stop(self, name: str, signal: str) -> None:
        self.run("sh", "-c", f'kill -{signal} "$(cat {SCRATCH}/{name}.pid)"')

    def until(self, condition: Callable[[], bool], name: str) -> None:
        """Wait for a condition; what a command wrote of its errors is told where it is not met."""
        ends = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < ends, self.run("cat", f"{SCRATCH}/{name}.err")
            time.sleep(0.2)


@contextmanager
def same_machine(folder: Path, drivers: tuple[str, ...], *hardware: str) -> Iterator[SameMachine]:
    """Boot one with these drivers and cards, and an IOMMU, or skip loudly."""
    if not (ROOTS / NEWER).is_dir():
        pytest.skip(f"no emulated igb here: no {ROOTS / NEWER} (packaging/roots.sh gets it)")
    recipe = image.Recipe("trixie/amd64", drivers=(*_MODULES, *drivers))
    options = imaged(folder, recipe, shell(), _LINE)
    # Outside of the namespace in which QEMU has the programs of another release.
    files = f"local,id=host,path=/proc/{os.getpid()}/root,security_model=none,readonly=on"
    words = [
        *("-machine", "q35", "-device", "intel-iommu", "-nic", "none", *hardware),
        *("-fsdev", f"{files},multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host", *options),
    ]
    with booted(folder, *words, program=PROGRAM) as guest:
        for driver in (*_MODULES, *drivers):
            guest.run("modprobe", driver)
        guest.run("sh", "-c", _ENTER)
        yield SameMachine(guest)
