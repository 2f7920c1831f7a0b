"""Archives of nodes: what a script uploads, unpacked without leaving the folder it goes to.

``extractall(filter="data")`` would do that, but Python 3.11 has it since 3.11.4 only, and Debian 12
has 3.11.2.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files, folders and links of an archive to a folder, readable by their owner.

    Raises:
        OSError: a file cannot be written.
        tarfile.TarError: the archive is damaged, or a member leads out of the folder, or is
            neither a file, a folder nor a link.

    """
    root = folder.resolve()
    for member in archive:
        place = _inside(root, PurePosixPath(member.name), member)
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            place.mkdir(exist_ok=True)
        elif member.issym():
            _inside(root, PurePosixPath(member.name).parent / member.linkname, member)
            place.symlink_to(member.linkname)
        elif member.islnk():
            shutil.copyfile(_inside(root, PurePosixPath(member.linkname), member), place)
        elif (content := archive.extractfile(member)) is not None:
            with place.open("xb") as written:
                shutil.copyfileobj(content, written)
            place.chmod(0o600 | member.mode & 0o755)
        else:
            raise tarfile.TarError(f"{member.name}: not a file, a folder or a link")


def _inside(root: Path, name: PurePosixPath, member: tarfile.TarInfo) -> Path:
    """Return where a name is, links in its path followed."""
    try:
        place = (root / name).parent.resolve() / name.name
    except RuntimeError as error:
        raise tarfile.TarError(f"{member.name}: a link leads to itself") from error
    if name.is_absolute() or name.name == ".." or not place.resolve().is_relative_to(root):
        raise tarfile.TarError(f"{member.name}: leads out of the folder")
    return place
