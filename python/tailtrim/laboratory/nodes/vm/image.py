"""Live images: kernel, initramfs and root file system in a folder, with a record of what it is.

Made once for what goes in, and kept in the user's cache: the second time takes no time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, OutputError
from tailtrim.laboratory.nodes import agent, local_host
from tailtrim.laboratory.nodes.vm import kernel, root
from tailtrim.results.drafts import draft_folder, settle
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = "tailtrim.image/1"
CPIO = Tool("cpio", "cpio")
#: The release that guests have their programs of, if nothing else is asked for.
RELEASE = "bookworm"

#: The root file system in an image; containers need no more of it.
ROOT = "root.squashfs"
_RECORD = "image.json"
_FILES = ("vmlinuz", "initramfs", ROOT)
_VERSIONS = "packages.json"
_SCRIPTS = {"initramfs.sh": "init", "guest.sh": "guest.sh"}
#: Changes when the same input gives another image.
_RECIPE = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """Ingredients of an image.

    ``kernel`` is RELEASE/FLAVOUR of Debian or the path of a bzImage, and ``modules`` the folder of
    a bzImage's modules; containers need none. ``release`` and ``packages`` are of the root file
    system; ``drivers`` are modules for network cards that are passed through.
    """

    kernel: str | None
    release: str = RELEASE
    packages: tuple[str, ...] = ()
    modules: str | None = None
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a folder; nothing writes to it any more."""

    folder: Path
    record: dict[str, Any]

    @property
    def kernel(self) -> str:
        """The release of its kernel, as ``uname -r`` prints it."""
        return str(self.record["kernel"]["release"])

    @property
    def name(self) -> str:
        """The kernel's name in the recipe."""
        return str(self.record["kernel"]["name"])


def is_image(folder: Path) -> bool:
    """Whether a folder has an image."""
    return (folder / _RECORD).is_file()


def opened(folder: Path, names: tuple[str, ...] = _FILES) -> Image:
    """Open an image and make sure that its files are those of its record.

    Args:
        folder: where it is.
        names: the files that are needed of it; a container needs its :data:`ROOT` only.

    Raises:
        HostError: the image is missing, has no kernel, or one of the files has changed.

    """
    place = folder / _RECORD
    try:
        record = json.loads(place.read_text("utf-8"))
        if record["schema"] != SCHEMA:
            raise HostError(f"{place}: the schema is {record['schema']!r}, expected {SCHEMA!r}")
        known = record["sha256"]
        if "kernel" not in record and names == _FILES:
            raise HostError(f"{folder}: has no kernel, expected an image made with --kernel")
        sums = {name: known[name] for name in names}
        for name, expected in sums.items():
            if _sum(folder / name) != expected:
                raise HostError(f"{folder / name}: not the file of its record, build it again")
    except OSError as error:
        raise HostError(f"{error.filename}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{place}: not the record of an image ({error})") from error
    return Image(folder, record)


def built(recipe: Recipe, told: Callable[[str], None] = lambda _: None) -> Image:
    """Return the image of a recipe from the cache, building what is missing.

    Args:
        recipe: its ingredients.
        told: is called with what is being done, where it takes time.

    Raises:
        HostError: this host cannot build it.
        OutputError: the cache cannot be written.

    """
    root_key = _key(recipe.release, root.PACKAGES, root.HOOKS, sorted(recipe.packages))
    key, names = root_key, _FILES if recipe.kernel else (ROOT,)
    if recipe.kernel is not None:
        parts = [_SCRIPTS, *(_script(name) for name in _SCRIPTS), _sum(Path(agent.program()))]
        files = _files_of(recipe.kernel, recipe.modules)
        kernel_key = _key(recipe.kernel, kernel.MODULES, *files, *recipe.drivers)
        key = _key(kernel_key, root_key, parts)
    place = _cache() / "images" / key
    if (place / _RECORD).exists():
        return opened(place, names)

    def make_kernel(folder: Path) -> None:
        told(f"getting the kernel {recipe.kernel}")
        modules = Path(recipe.modules) if recipe.modules else None
        kernel.take(str(recipe.kernel), modules, folder, recipe.drivers)

    def make_root(folder: Path) -> None:
        told(f"making the root file system of Debian {recipe.release}")
        versions = root.build(recipe.release, recipe.packages, folder)
        (folder / _VERSIONS).write_text(json.dumps(versions), "utf-8")

    def make_image(folder: Path) -> None:
        if recipe.kernel is not None:
            told(f"making the image of {recipe.kernel}")
        _assemble(recipe, kernels, roots, folder)

    kernels = None
    if recipe.kernel is not None:
        kernels = _kept(_cache() / "kernels" / kernel_key, make_kernel)
    roots = _kept(_cache() / "roots" / root_key, make_root)
    return opened(_kept(place, make_image), names)


def copied(image: Image, out: Path) -> Image:
    """Copy an image to a folder that does not exist or is empty.

    Raises:
        OutputError: it cannot be written, or has something else.

    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: exists and is not empty, so nothing is written to it")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (*image.record["sha256"], _RECORD):
            shutil.copyfile(image.folder / name, out / name)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
    return Image(out, image.record)


def _assemble(recipe: Recipe, kernels: Path | None, roots: Path, folder: Path) -> None:
    # The same file in all images of the cache: each agent and kernel has an image.
    os.link(roots / ROOT, folder / ROOT)
    versions = json.loads((roots / _VERSIONS).read_text("utf-8"))
    asked = {"release": recipe.release, "asked": sorted(recipe.packages)}
    record: dict[str, Any] = {"schema": SCHEMA}
    if kernels is not None:
        os.link(kernels / "vmlinuz", folder / "vmlinuz")
        release, program = kernel.release_of(folder / "vmlinuz"), Path(agent.program())
        busybox = roots / "busybox"
        _initramfs(kernel.Kernel(kernels, release), busybox, program, folder / "initramfs")
        record["kernel"] = {"name": recipe.kernel, "release": release}
    record |= {"root": asked, "packages": versions}
    if kernels is not None:
        record |= {"recipe": asdict(recipe), "agent": {"sha256": _sum(program)}}
    record["sha256"] = {name: _sum(folder / name) for name in _FILES if (folder / name).exists()}
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def _initramfs(of: kernel.Kernel, busybox: Path, program: Path, out: Path) -> None:
    """Write what a kernel begins with: a program that finds the root, modules and the agent."""
    local_host.require(CPIO)
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        files = {top / "bin" / "busybox": busybox, top / "tailtrim-agent": program}
        files |= {top / path.relative_to(of.folder): path for path in of.modules}
        for place, source in files.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
        for name, called in _SCRIPTS.items():
            (top / called).write_text(_script(name), "utf-8")
        for name in ("bin/busybox", "tailtrim-agent", *_SCRIPTS.values()):
            (top / name).chmod(0o755)
        for place in [top, *top.rglob("*")]:
            os.utime(place, (0, 0))
        names = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
        with out.open("wb") as archive:
            # Not compressed: an emulated CPU would take longer than the disk.
            ended = subprocess.run(
                ["cpio", "--quiet", "--create", "--format=newc", "--owner=+0:+0", "--reproducible"],
                input="\n".join(names).encode(),
                stdout=archive,
                stderr=subprocess.PIPE,
                cwd=top,
                check=False,
                env=local_host.environment(),
            )
    if ended.returncode != 0:
        raise HostError(f"cpio: {ended.stderr.decode(errors='replace').strip()}")


def _script(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _files_of(name: str, modules: str | None) -> list[Any]:
    """Return what tells a kernel that is a file from another one of the same name."""
    if kernel.NAME.fullmatch(name):
        return []
    try:
        found = sorted(Path(modules).rglob("*.ko*")) if modules else []
        stats = [(path, path.stat()) for path in found]
        # Of thousands of modules, size and time of change tell that they were built again.
        times = [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats]
        return [_sum(Path(name)), str(modules), *times]
    except OSError as error:
        known = ", ".join(f"RELEASE/{name}" for name in kernel.FLAVOURS)
        told = f"kernel {name}: neither {known} of Debian nor a file: {error.strerror}"
        raise HostError(told) from error


def _cache() -> Path:
    known = os.environ.get("XDG_CACHE_HOME")
    return (Path(known) if known else Path.home() / ".cache") / "tailtrim"


def _kept(place: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, made if it is missing; it is whole at any time."""
    if place.is_dir():
        return place
    try:
        with draft_folder(place) as draft:
            make(draft)
            if not place.is_dir():
                settle(draft, place)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return place


def _key(*parts: Any) -> str:
    text = json.dumps([_RECIPE, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
