"""GRUB itself boots the entry once, and the old one after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grub_disk
import pytest
from played_machine import UUID, Machine
from shell_guest import CONSOLE, archive, booted, kernels, release, shell

from tailtrim.laboratory.nodes.boot.line import BootLine, BootSeen
from tailtrim.laboratory.nodes.boot.methods import Grub

if TYPE_CHECKING:
    from pathlib import Path


def test_grub_boots_an_entry_once(tmp_path: Path) -> None:
    grub_disk.required()
    old, new = kernels("amd64", "trixie-amd64")
    machine = Machine(tmp_path / "machine")
    tried = machine.call("sh", "-c", ":")
    if tried.returncode != 0:
        pytest.skip(f"this host allows no mount namespaces: {tried.stderr.strip()}")
    boot = tmp_path / "machine" / "boot"
    (boot / "vmlinuz-old").write_bytes(old.read_bytes())
    (boot / "vmlinuz-new").write_bytes(new.read_bytes())
    (boot / "initrd").write_bytes(archive(tmp_path / "shell", shell()).read_bytes())
    entry = ("/vmlinuz-old", f"{CONSOLE} old", "/initrd")
    machine.write("boot/grub/grub.cfg", grub_disk.configuration(*entry))
    words = (*CONSOLE.split(), "isolcpus=managed_irq,domain,1", "tailtrim.asked=$x", "a=b;c")
    line = BootLine("/boot/vmlinuz-new", "/boot/initrd", words, release(new))
    Grub().prepare(machine, line)
    disk = grub_disk.disk(boot, UUID, tmp_path / "disk")
    loader = grub_disk.loader(tmp_path)
    given = ("-kernel", str(loader), "-drive", f"file={disk},format=raw,if=ide")
    with booted(tmp_path, *given) as guest:
        assert line.difference(BootSeen.of(guest)) is None
    (tmp_path / "serial").unlink(missing_ok=True)
    with booted(tmp_path, *given) as guest:
        seen = BootSeen.of(guest)
    assert (seen.release, seen.words) == (release(old), (*CONSOLE.split(), "old"))
