"""Files and folders that are whole or not there, also after a kill or when the power fails.

They are written under another name in the same folder, as a draft. A draft is locked by its process
as long as that lives; the next draft of the same place removes drafts that are not locked any more.
A folder is locked by :func:`locked` against other processes that would write there.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from tailtrim._native import exchange
from tailtrim.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


#: Names of drafts begin with this, in the folder of what they become.
_PREFIX = ".tailtrim-draft-"

#: First bytes of pcap, with both orders of bytes, and of pcapng, gzip and zstd.
_KEPT = (
    *(bytes.fromhex(magic) for magic in ("a1b2c3d4", "a1b23c4d", "a1b2cd34")),
    *(bytes.fromhex(magic)[::-1] for magic in ("a1b2c3d4", "a1b23c4d", "a1b2cd34")),
    *(bytes.fromhex(magic) for magic in ("0a0d0d0a", "1f8b", "28b52ffd")),
)


def refuse_capture(place: Path) -> None:
    """Refuse to replace a capture by a result: options are easily mixed up.

    Raises:
        OutputError: it is one.

    """
    try:
        if not place.is_file():
            return
        with place.open("rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise _failed(place, error) from error
    if begin.startswith(_KEPT):
        raise OutputError(
            f"{place}: is a capture, or compressed, so it is not replaced: name another"
        )


@contextmanager
def replacing(place: Path) -> Iterator[BinaryIO]:
    """Write a file that gets its name, or takes the place of another one, when it is complete.

    Directories are made; leaving with an exception removes what was written.

    Raises:
        OutputError: when the file cannot be written.

    """
    draft, descriptor = _begun(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(draft, "wb", opener=lambda *_: descriptor) as file:
            yield file
            # A writer of tables closes the file that it is given.
            if not file.closed:
                file.flush()
            settle(draft, place)
    except OSError as error:
        raise _failed(place, error) from error
    finally:
        with suppress(OSError):
            draft.unlink()


@contextmanager
def draft_folder(place: Path) -> Iterator[Path]:
    """Make a folder next to its place, to be settled there; leaving without that removes it.

    Directories above are made. It is as open as the umask says.

    Raises:
        OutputError: when it cannot be written.

    """
    draft, descriptor = _begun(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield draft
    finally:
        # After an exchange this is the earlier folder.
        shutil.rmtree(draft, ignore_errors=True)
        os.close(descriptor)


def settle(draft: Path, place: Path) -> None:
    """Give a complete file or folder its place, once all of it is on the disk.

    A name that is on the disk before its content is an empty file after the power failed. A
    folder that has the place gets the name of the draft in exchange.

    Raises:
        OSError: it cannot be written there.

    """
    for path in [*draft.rglob("*"), draft]:
        # Files that a node left may be of any kind: devices and pipes are not opened.
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _sync(path)
    try:
        draft.replace(place)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        _exchange(draft, place)
    _sync(place.parent)


def is_temporary(path: Path) -> bool:
    """Return whether something is in a draft, as runs of spans are."""
    return any(folder.name.startswith(_PREFIX) for folder in path.parents)


def _begun(place: Path, flags: int) -> tuple[Path, int]:
    """Make a draft of a place and lock it; return it and the owner of the lock."""
    prefix = f"{_PREFIX}{place.name}-"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(place.parent, prefix)
        while True:
            draft = place.with_name(prefix + secrets.token_hex(4))
            if flags & os.O_DIRECTORY:
                draft.mkdir()
            descriptor = os.open(draft, flags | os.O_CLOEXEC, 0o666)
            _lock(descriptor, fcntl.LOCK_EX)
            # Before it was locked, others may have taken it for abandoned.
            if os.fstat(descriptor).st_nlink:
                return draft, descriptor
            os.close(descriptor)
    except OSError as error:
        raise _failed(place, error) from error


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove drafts whose process is gone."""
    for draft in folder.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError):
            descriptor = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if not _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    continue
                if draft.is_dir():
                    shutil.rmtree(draft)
                else:
                    draft.unlink()
            finally:
                os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    """Lock a draft; some network file systems lock nothing, and there all drafts stay."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _exchange(draft: Path, place: Path) -> None:
    """Let two folders have each other's name, at once where the file system can."""
    try:
        exchange(draft, place)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
            raise
        before = draft.with_name(f"{draft.name}-before")
        place.replace(before)
        draft.replace(place)
        before.replace(draft)


def _failed(place: Path, error: OSError) -> OutputError:
    return OutputError(f"{place}: cannot be written: {error.strerror or error}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and keep other processes out of it for as long as the context lasts.

    Some network file systems lock no directories; there, users have to know.

    Raises:
        OutputError: the folder cannot be written, or another process has it.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _failed(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            os.close(descriptor)
            raise OutputError(f"{folder}: another process is running it") from error
    try:
        yield
    finally:
        os.close(descriptor)
