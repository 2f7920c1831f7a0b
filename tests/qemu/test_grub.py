"""GRUB itself boots the entry once, and the old one after."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from played_machine import UUID, Machine
from shell_guest import CONSOLE, archive, booted, kernels, release, shell
from tools import GRUB, GRUB_BIOS, GRUB_MKIMAGE, MKFS, need

from tailtrim.nodes import host
from tailtrim.nodes.boot.grub import Grub
from tailtrim.nodes.boot.line import BootLine, Seen

_MODULES = "biosdisk configfile ext2 linux loadenv normal search search_fs_uuid test true"
# What grub-mkconfig writes of it: 00_header, an entry of 10_linux, and 41_custom.
_CONFIGURATION = f"""
set prefix=(hd0)/grub
set config_directory=$prefix
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
set timeout=0
menuentry 'old' {{
\tlinux /vmlinuz-old {CONSOLE} old
\tinitrd /initrd
}}
if [ -f  ${{config_directory}}/custom.cfg ]; then
  source ${{config_directory}}/custom.cfg
fi
"""


def test_grub_boots_an_entry_once(tmp_path: Path) -> None:
    need(*GRUB, GRUB_BIOS, GRUB_MKIMAGE, MKFS)
    old, new = kernels("amd64", "trixie-amd64")
    machine = Machine(tmp_path / "machine")
    tried = machine.call("sh", "-c", ":")
    if tried.returncode != 0:
        pytest.skip(f"this host allows no mount namespaces: {tried.stderr.strip()}")
    boot = tmp_path / "machine" / "boot"
    (boot / "vmlinuz-old").write_bytes(old.read_bytes())
    (boot / "vmlinuz-new").write_bytes(new.read_bytes())
    (boot / "initrd").write_bytes(archive(tmp_path / "shell", shell()).read_bytes())
    machine.write("boot/grub/grub.cfg", _CONFIGURATION)
    words = (*CONSOLE.split(), "isolcpus=managed_irq,domain,1", "tailtrim.asked=$x", "a=b;c")
    line = BootLine("/boot/vmlinuz-new", "/boot/initrd", words, release(new))
    Grub().prepare(machine, line)
    disk = tmp_path / "disk"
    _run("mkfs.ext2", "-q", "-U", UUID, "-d", str(boot), str(disk), "64M")
    loader = _loader(tmp_path)
    given = ("-kernel", str(loader), "-drive", f"file={disk},format=raw,if=ide")
    with booted(tmp_path, *given) as guest:
        assert line.difference(Seen.of(guest)) is None
    (tmp_path / "serial").unlink(missing_ok=True)
    with booted(tmp_path, *given) as guest:
        seen = Seen.of(guest)
    assert (seen.release, seen.words) == (release(old), (*CONSOLE.split(), "old"))


def _loader(folder: Path) -> Path:
    """Make what QEMU starts as if it was a kernel: GRUB."""
    header = Path(host.find(GRUB_BIOS) or "").resolve()
    core = folder / "core"
    _run(
        *("grub-mkimage", "-O", "i386-pc", "-d", str(header.parent), "-p", "(hd0)/grub"),
        *("-o", str(core), *_MODULES.split()),
    )
    made = folder / "loader"
    made.write_bytes(header.read_bytes() + core.read_bytes())
    return made


def _run(*command: str) -> None:
    subprocess.run(["/usr/bin/env", *command], env=host.environment(), check=True)
