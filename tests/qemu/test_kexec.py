"""A kernel is really started by another one: kexec in a guest, without systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shell_guest import ANSWER_S, CONSOLE, archive, booted, kernels, release, shell, with_libraries
from tools import need

from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.boot.line import BootLine, BootSeen
from tailtrim.laboratory.nodes.boot.methods import KEXEC, Kexec
from tailtrim.laboratory.nodes.boot.reboot import reboot

if TYPE_CHECKING:
    from pathlib import Path


def test_a_kernel_starts_another_one(tmp_path: Path) -> None:
    need(KEXEC)
    first, second = kernels("amd64", "trixie-amd64")
    inside = archive(tmp_path / "inside", shell() | with_libraries(local_host.find(KEXEC) or ""))
    within = {"boot/vmlinuz": second, "boot/initrd": inside}
    both = tmp_path / "initrd"
    # One archive after the other is one for the kernel.
    both.write_bytes(inside.read_bytes() + archive(tmp_path / "more", within).read_bytes())
    words = (*CONSOLE.split(), "isolcpus=1", "tailtrim.asked=$x")
    line = BootLine("/boot/vmlinuz", "/boot/initrd", words, release(second))
    given = ("-kernel", str(first), "-initrd", str(both), "-append", CONSOLE)
    with booted(tmp_path, *given) as guest:
        before = BootSeen.of(guest)
        assert before.release == release(first) != line.release
        after = reboot(guest.reach, Kexec(), line, within_s=ANSWER_S)
    assert (after.release, after.words) == (line.release, words)
    assert after.boot_id != before.boot_id
