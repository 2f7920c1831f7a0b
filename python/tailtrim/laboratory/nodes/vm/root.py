"""The root file system of guests: files of Debian packages, which are never installed here."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MMDEBSTRAP = Tool("mmdebstrap", "mmdebstrap")
#: Folders that a guest has no use for.
_LEFT_OUT = ("doc", "info", "locale", "man")
SQFSTAR = Tool("sqfstar", "squashfs-tools")
#: Packages that nodes and devices of the kernel are made with, and that guests are reached by.
PACKAGES = ("busybox-static", "ethtool", "iproute2", "kmod", "mount", "openssh-server", "procps")

#: The host alone reaches a guest, by a port that has no name: there is nothing to keep others from.
#: Keys made while packages are installed would be the same in all guests.
HOOKS = (
    """sed -i 's/^root:[^:]*:/root::/' "$1/etc/shadow" """,
    """rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/machine-id" """,
)


def archive(
    release: str,
    packages: Iterable[str],
    out: Path,
    *,
    variant: str,
    hooks: Sequence[str] = (),
) -> None:
    """Write the files of packages, with all that they depend on, as a tar archive.

    Args:
        release: Debian's, by name, such as ``bookworm``.
        packages: which.
        out: the archive.
        variant: mmdebstrap's: ``extract`` for files only, ``essential`` for a whole system.
        hooks: commands for when all is there; ``$1`` is the root.

    Raises:
        HostError: mmdebstrap is missing, or it cannot.

    """
    local_host.require(MMDEBSTRAP)
    packages = list(packages)
    command = ["mmdebstrap", "--quiet", f"--variant={variant}", "--format=tar"]
    command += ['--aptopt=APT::Install-Recommends "false"', *_age_of_lists()]
    # Half of an archive, after a power cut, is thrown away anyway.
    command += ["--dpkgopt=force-unsafe-io"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    command += [f"--include={package}" for package in packages]
    command += [f"--customize-hook={hook}" for hook in hooks]
    # The same packages give the same bytes.
    ended = local_host.run([*command, release, str(out)], more={"SOURCE_DATE_EPOCH": "0"})
    if ended.returncode != 0:
        told = [line for line in ended.stderr.splitlines() if line.startswith("E:")]
        why = told[0] if told else (ended.stderr.strip().splitlines() or ["no reason told"])[-1]
        raise HostError(f"mmdebstrap {release} {' '.join(packages)}: {why.removeprefix('E: ')}")


def _age_of_lists() -> list[str]:
    """Return what apt of this host is told of the age of lists: a mirror may be an old copy."""
    lines = local_host.run(["apt-config", "dump"]).stdout.splitlines()
    return [f"--aptopt={line}" for line in lines if line.startswith("Acquire::Check-")]


def build(release: str, packages: Sequence[str], folder: Path) -> dict[str, str]:
    """Make ``root.squashfs`` in a folder, and ``busybox`` beside it.

    Args:
        release: Debian's.
        packages: which, beside :data:`PACKAGES`.
        folder: where.

    Returns:
        The version of each package that it has.

    Raises:
        HostError: this host cannot.

    """
    local_host.require(SQFSTAR)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "root.tar"
        wanted = sorted({*PACKAGES, *packages})
        archive(release, wanted, place, variant="essential", hooks=HOOKS)
        with tarfile.open(place) as files:
            found = _read(files)
        (folder / "busybox").write_bytes(found["busybox"])
        # Not compressed: an emulated CPU would take longer than the disk.
        options = ["-quiet", "-no-progress", "-noI", "-noId", "-noD", "-noF", "-noX"]
        with place.open("rb") as tar:
            ended = subprocess.run(
                ["sqfstar", *options, str(folder / "root.squashfs")],
                stdin=tar,
                capture_output=True,
                check=False,
                env=local_host.environment() | {"SOURCE_DATE_EPOCH": "0"},
            )
    if ended.returncode != 0:
        told = ended.stderr.decode(errors="replace").strip()
        raise HostError(f"sqfstar: {told or f'ended with {ended.returncode}'}")
    return versions(found["status"].decode())


def _read(archive: tarfile.TarFile) -> dict[str, bytes]:
    """Return busybox, and dpkg's list of what is installed."""
    wanted = {"bin/busybox": "busybox", "var/lib/dpkg/status": "status"}
    found = {}
    for member in archive:
        name = wanted.get(member.name.removeprefix("./").removeprefix("usr/"))
        file = archive.extractfile(member) if name and member.isfile() else None
        if name and file is not None:
            found[name] = file.read()
    for name, key in wanted.items():
        if key not in found:
            raise HostError(f"the root file system has no {name}")
    return found


def versions(status: str) -> dict[str, str]:
    """Return the version of each package that dpkg's ``status`` lists."""
    found = {}
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line)
        if "Package" in fields:
            found[fields["Package"]] = fields.get("Version", "")
    return dict(sorted(found.items()))
