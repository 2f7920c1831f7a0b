"""The root file system of guests: Debian packages as one file that is never written to."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.nodes import host
from tailtrim.nodes.tool import Tool
from tailtrim.nodes.vm import debian

if TYPE_CHECKING:
    from collections.abc import Sequence

SQFSTAR = Tool("sqfstar", "squashfs-tools")
#: What nodes and the devices of kernels are made with, and how to reach a guest.
PACKAGES = ("busybox-static", "ethtool", "iproute2", "kmod", "mount", "openssh-server", "procps")

#: The host alone reaches a guest, by a port that has no name: there is nothing to keep others from.
#: Keys made while packages are installed would be the same in all guests.
HOOKS = (
    """sed -i 's/^root:[^:]*:/root::/' "$1/etc/shadow" """,
    """rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/machine-id" """,
)


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
    if host.find(SQFSTAR) is None:
        raise SQFSTAR.missing()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "root.tar"
        wanted = sorted({*PACKAGES, *packages})
        debian.archive(release, wanted, place, variant="essential", hooks=HOOKS)
        with tarfile.open(place) as archive:
            found = _read(archive)
        (folder / "busybox").write_bytes(found["busybox"])
        # Not compressed: an emulated CPU would take longer than the disk.
        options = ["-quiet", "-no-progress", "-noI", "-noId", "-noD", "-noF", "-noX"]
        with place.open("rb") as tar:
            ended = subprocess.run(
                ["sqfstar", *options, str(folder / "root.squashfs")],
                stdin=tar,
                capture_output=True,
                check=False,
                env=host.environment() | {"SOURCE_DATE_EPOCH": "0"},
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
