"""The files of a capture that is being written to one after the other: :class:`Rotation`."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tailtrim.errors import CaptureError

_WILD = re.compile(r"[*?\[]")
#: Extensions of the files that rotating writers compress.
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".lz4")


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was found. A ring writes to one of this name again."""

    path: Path
    changed_ns: int
    bytes: int
    #: Device and inode.
    place: tuple[int, int] = (0, 0)

    @classmethod
    def at(cls, path: Path) -> File:
        """Look at a file."""
        status = path.stat()
        return cls(path, status.st_mtime_ns, status.st_size, (status.st_dev, status.st_ino))

    @property
    def key(self) -> str:
        """Name, time and size: they differ from those of a later file in its place."""
        return f"{self.path.name} {self.changed_ns} {self.bytes}"

    @property
    def original(self) -> Path | None:
        """The uncompressed original of this file, by its name."""
        return self.path.with_suffix("") if self.path.suffix in _COMPRESSED else None

    def was_compressed(self) -> bool:
        """Whether the file is gone and a compressed copy is there, or in the making."""
        copies = (self.path.with_name(self.path.name + suffix) for suffix in _COMPRESSED)
        return not self.path.exists() and any(copy.exists() for copy in copies)


class Rotation:
    """The files of one capture: those of a folder, or those that a pattern names.

    Args:
        source: a folder, where all files count, or a pattern such as ``/captures/in-*.pcap``.

    """

    def __init__(self, source: str) -> None:
        """Take the files that are there, and those to come."""
        self.source = source
        path = Path(source)
        self._folder, self._pattern = path, "*"
        if not path.is_dir():
            self._folder, self._pattern = path.parent, path.name
        if not self._folder.is_dir() or _WILD.search(str(self._folder)):
            failure = CaptureError(f"{source}: expected a folder or a pattern for its files")
            failure.add_note("name such as captures/ or 'captures/in-*.pcap'")
            raise failure

    def files(self) -> list[File]:
        """Return the files in the order in which they were written to last."""
        found = []
        for path in self._folder.glob(self._pattern):
            try:
                if path.is_file() and not path.name.startswith("."):
                    found.append(File.at(path))
            except FileNotFoundError:
                continue  # a ring removed it
        return sorted(found, key=lambda file: (file.changed_ns, _natural(file.path.name)))

    def complete(self) -> list[File]:
        """Return the files that are complete: no process has them open for writing.

        Where the kernel does not tell that, it is all but the newest. A compressed copy is complete
        when the file is gone that it is a copy of.
        """
        files = self.files()
        found = []
        for file in files:
            closed = _is_closed(file.path)
            if closed is None:
                closed = file is not files[-1]
            whole = file.original is None or not file.original.exists()
            if closed and whole and (file.bytes or file is not files[-1]):
                found.append(file)
        return found


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort ``out9`` before ``out10``."""
    return [(int(part or 0), text) for text, part in re.findall(r"(\D*)(\d*)", name)]


def _is_closed(path: Path) -> bool | None:
    """Whether no process has the file open for writing, ``None`` where the kernel does not tell.

    It grants a lease for reading only then (fcntl(2), F_SETLEASE), and only to the file's owner.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return False
        if error.errno not in {errno.EACCES, errno.EINVAL, errno.EPERM}:
            raise
        return None
    finally:
        os.close(descriptor)
    return True
