"""A GRUB that QEMU starts as if it was a kernel, and the disk that it boots from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools import GRUB, GRUB_BIOS, GRUB_MKIMAGE, MKFS, need

from tailtrim.laboratory.nodes import local_host

_MODULES = "biosdisk configfile ext2 linux loadenv normal search search_fs_uuid test true"
# Parts of grub-mkconfig's output: 00_header, an entry of 10_linux, and 41_custom.
_CONFIGURATION = """
set prefix=(hd0)/grub
set config_directory=$prefix
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
set timeout=0
menuentry 'old' {
\tlinux KERNEL LINE
\tinitrd INITRD
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
"""


def required() -> None:
    """Skip the calling test loudly where there is no GRUB for a guest."""
    need(*GRUB, GRUB_BIOS, GRUB_MKIMAGE, MKFS)


def configuration(kernel: str, line: str, initrd: str) -> str:
    """Return grub.cfg with one entry, whose files are in the disk's root."""
    words = {"KERNEL": kernel, "LINE": line, "INITRD": initrd}
    text = _CONFIGURATION
    for word, told in words.items():
        text = text.replace(word, told)
    return text


def disk(boot: Path, uuid: str, place: Path, mib: int = 64) -> Path:
    """Make a disk that has what is in a folder."""
    _run("mkfs.ext2", "-q", "-U", uuid, "-d", str(boot), str(place), f"{mib}M")
    return place


def loader(folder: Path) -> Path:
    """Make what QEMU starts as if it was a kernel: GRUB."""
    header = Path(local_host.find(GRUB_BIOS) or "").resolve()
    core = folder / "core"
    _run(
        *("grub-mkimage", "-O", "i386-pc", "-d", str(header.parent), "-p", "(hd0)/grub"),
        *("-o", str(core), *_MODULES.split()),
    )
    made = folder / "loader"
    made.write_bytes(header.read_bytes() + core.read_bytes())
    return made


def _run(*command: str) -> None:
    subprocess.run(["/usr/bin/env", *command], env=local_host.environment(), check=True)
