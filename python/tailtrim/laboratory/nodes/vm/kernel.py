"""Kernels for guests: of Debian's packages by release and flavour, or a bzImage."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import struct
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.vm import root
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEPMOD = Tool("depmod", "kmod")
FLAVOURS = {
    "amd64": "linux-image-amd64",
    "cloud": "linux-image-cloud-amd64",
    "rt": "linux-image-rt-amd64",
}
#: RELEASE/FLAVOUR.
NAME = re.compile(rf"([a-z]+)/({'|'.join(FLAVOURS)})")

#: Modules that a guest mounts with, and that devices under test are made of.
MODULES = (
    *("drivers/virtio", "drivers/block/virtio_blk", "drivers/char/virtio_console"),
    *("drivers/char/hw_random/virtio-rng", "drivers/net/virtio_net", "drivers/net/veth"),
    *("drivers/net/tun", "drivers/net/tap", "drivers/net/dummy", "drivers/net/ifb"),
    *("fs/squashfs", "fs/overlayfs", "net/bridge", "net/sched", "net/netfilter", "net/8021q"),
    *("net/ipv4", "net/ipv6", "net/openvswitch", "net/packet", "net/core", "net/xdp"),
)
# Documentation/arch/x86/boot.rst of Linux: the header of a bzImage.
_MAGIC, _MAGIC_AT, _VERSION_AT, _VERSION_BASE = b"HdrS", 0x202, 0x20E, 0x200


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel in a folder: ``vmlinuz`` and, where it has any, ``lib/modules/RELEASE``."""

    folder: Path
    #: Its name for ``uname -r``.
    release: str

    @property
    def image(self) -> Path:
        """The kernel itself."""
        return self.folder / "vmlinuz"

    @property
    def modules(self) -> list[Path]:
        """Its files below ``lib/modules``, those of :func:`_needed` and what depmod made."""
        tree = self.folder / "lib" / "modules" / self.release
        return sorted(path for path in tree.rglob("*") if path.is_file())


def take(name: str, modules: Path | None, folder: Path, drivers: Sequence[str] = ()) -> Kernel:
    """Take a kernel, with the modules that guests need, into an empty folder.

    Args:
        name: RELEASE/FLAVOUR of Debian, or the path of a bzImage.
        modules: the folder ``lib/modules/RELEASE`` of a bzImage, if it has any.
        folder: where to.
        drivers: modules that it needs beside those of every guest.

    Raises:
        HostError: this host cannot; a file cannot be read, or is something else; a module is
            missing.

    """
    if found := NAME.fullmatch(name):
        release, flavour = found.groups()
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) / "kernel.tar"
            root.archive(release, [FLAVOURS[flavour]], place, variant="extract")
            with tarfile.open(place) as archive:
                _unpack(archive, folder)
    else:
        _copy(Path(name), modules, folder)
    return _with_modules(folder, drivers)


def _copy(image: Path, modules: Path | None, folder: Path) -> None:
    try:
        shutil.copyfile(image, folder / "vmlinuz")
        if modules is not None:
            place = folder / "lib" / "modules" / release_of(folder / "vmlinuz")
            for path in sorted((modules / "kernel").rglob("*.ko*")):
                _store(path.read_bytes(), place / path.relative_to(modules))
            for path in modules.glob("modules.*"):
                (place / path.name).write_bytes(path.read_bytes())
    except OSError as error:
        raise HostError(f"{error.filename}: cannot be read: {error.strerror}") from error


def release_of(image: Path) -> str:
    """Return what ``uname -r`` says where a bzImage runs.

    Raises:
        HostError: it is none.

    """
    with image.open("rb") as file:
        head = file.read(1 << 16)
    if head[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        raise HostError(f"{image}: not a kernel, expected a bzImage")
    (at,) = struct.unpack_from("<H", head, _VERSION_AT)
    text = head[at + _VERSION_BASE :].partition(b"\0")[0].decode("ascii", "replace")
    return text.split()[0] if text.split() else ""


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    for member in archive:
        path = PurePosixPath(member.name)
        file = archive.extractfile(member) if member.isfile() else None
        if file is None:
            continue
        # Since 7.0 the kernel lies beside its modules.
        if path.name.startswith("vmlinuz"):
            _store(file.read(), folder / "vmlinuz")
        elif "modules" in path.parts and (".ko" in path.name or path.name.startswith("modules.")):
            below = path.parts[path.parts.index("modules") :]
            _store(file.read(), folder.joinpath("lib", *below))


def _store(content: bytes, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unpack = _UNPACKED_BY.get(place.suffix)
    if unpack is not None:
        # Kernels that cannot unpack modules themselves would need a program for it.
        content, place = unpack(content), place.with_suffix("")
    place.write_bytes(content)


def _of_zstd(content: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    with pa.input_stream(pa.py_buffer(content), compression="zstd") as stream:
        return bytes(stream.read())


#: Ways to compress modules (CONFIG_MODULE_COMPRESS).
_UNPACKED_BY = {".xz": lzma.decompress, ".gz": gzip.decompress, ".zst": _of_zstd}


def _with_modules(folder: Path, drivers: Sequence[str]) -> Kernel:
    kernel = Kernel(folder, release_of(folder / "vmlinuz"))
    tree = folder / "lib" / "modules" / kernel.release
    if not tree.is_dir():
        return kernel
    _depmod(folder, kernel.release)
    kept = set(_needed(tree, drivers))
    for path in list(tree.rglob("*.ko")):
        if path not in kept:
            path.unlink()
    _depmod(folder, kernel.release)
    return kernel


def _depmod(folder: Path, release: str) -> None:
    local_host.require(DEPMOD)
    ended = local_host.run(["depmod", "--basedir", str(folder), release])
    if ended.returncode != 0:
        raise HostError(f"depmod {release}: {ended.stderr.strip()}")


def _needed(tree: Path, drivers: Sequence[str]) -> Iterator[Path]:
    """Yield the modules that a guest may need, from what depmod says of all."""
    depends: dict[str, list[str]] = {}
    for line in (tree / "modules.dep").read_text("utf-8").splitlines():
        name, _, others = line.partition(":")
        depends[name] = others.split()
    known = {_module(name) for name in depends}
    built_in = tree / "modules.builtin"
    if built_in.exists():
        known |= {_module(name) for name in built_in.read_text("utf-8").splitlines()}
    for driver in drivers:
        if driver not in known:
            told = "expected a kernel that has it, such as Debian's of flavour amd64 or rt"
            raise HostError(f"kernel {tree.name}: no module {driver}, {told}")
    for name, beneath in depends.items():
        if _module(name) in drivers or any(_below(name, wanted) for wanted in MODULES):
            # modules.dep has also what these depend on themselves.
            yield from (tree / one for one in (name, *beneath))


def _module(name: str) -> str:
    """Return the name of a module by that of its file.

    >>> _module("kernel/drivers/vfio/pci/vfio-pci.ko.xz")
    'vfio_pci'

    """
    return name.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def _below(name: str, wanted: str) -> bool:
    start = f"kernel/{wanted}"
    return name.startswith(f"{start}/") or name == f"{start}.ko"
