"""The run directory: what an analysis leaves behind so that others can look again.

::

    summary.json            the numbers, as ``--json`` prints them
    provenance.json         command, versions, inputs with their hashes
    sample.parquet          one row a matched packet
    histogram.parquet       latency → count, exact
    quantile.parquet        quantiles with their intervals along the whole curve
    worst.parquet           the worst packets, worst first
    gap.parquet             inter-packet gaps at both taps → count
    delay_variation.parquet RFC 3393 delay variation → count
    second.parquet          packets, bytes, losses and the maximum of each second
    burst.parquet           position in the burst, latency → count
    roundtrip.parquet       every round trip with its stamps (of ``tailtrim ping`` alone)

The columns of the tables are in ``schema/``. A directory is written beside its final place and
moved there when it is complete: what exists is whole.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from tailtrim._native import VERSION
from tailtrim.errors import OutputError, RunDirectoryError
from tailtrim.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

PROVENANCE = "tailtrim.provenance/1"

TABLES = ("sample", "histogram", "quantile", "worst", "gap", "delay_variation", "second", "burst")

#: Beside them, where a trace was recorded or the device disturbed: who had the CPU, how often each
#: interrupt came, when the device was disturbed on purpose, and when its own work stood still.
EVENTS, INTERRUPTS = "events.jsonl.zst", "interrupts.csv"
DISTURBED, STALLS = "disturbed.csv", "stalls.csv"


class RunDirectory:
    """A run directory that exists.

    Args:
        path: where it is.

    Raises:
        RunDirectoryError: when there is none, or not a whole one.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the directory and read its summary."""
        self.path = Path(path)
        summary = self.path / "summary.json"
        try:
            text = summary.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"{self.path}: this is no run directory, expected one with a summary.json"
            raise RunDirectoryError(message) from error
        self.summary = Summary.from_json(text, source=str(summary))

    @property
    def name(self) -> str:
        """The directory's own name, which stands for the run in tables and figures."""
        return self.path.resolve().name

    def table(self, name: str, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a table, see ``schema/``, or some of its columns.

        Raises:
            RunDirectoryError: when the directory lacks the table or its file is damaged.

        """
        import pyarrow.parquet  # noqa: PLC0415 - takes longer to import than most commands run

        path = self.path / f"{name}.parquet"
        try:
            return pyarrow.parquet.read_table(path, columns=columns and list(columns))
        except (OSError, pyarrow.ArrowException) as error:
            raise RunDirectoryError(f"{path}: the table cannot be read: {error}") from error

    def provenance(self) -> dict[str, Any]:
        """Command, versions and inputs of the run; empty where the directory has none."""
        try:
            text = (self.path / "provenance.json").read_text(encoding="utf-8")
            provenance = json.loads(text)
        except (OSError, ValueError):
            return {}
        return provenance if isinstance(provenance, dict) else {}


class Draft:
    """A run directory being written: complete or not there at all.

    Used as a context manager; :meth:`commit` moves the draft to its place, leaving without a
    commit removes it. What a killed process leaves behind, the next one removes.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        """Make a draft beside ``place``."""
        self.place = Path(place)
        if self.place.exists() and not self._replaceable():
            message = f"{self.place}: exists and is no run directory, so it is not replaced"
            raise OutputError(message)
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            prefix = f".tailtrim-draft-{self.place.name}-"
            _remove_abandoned(self.place.parent, prefix)
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=self.place.parent))
            # The lock goes with the process, however that ends.
            self._lock = os.open(self.path, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            # mkdtemp is private; a run directory is as open as any other.
            umask = os.umask(0)
            os.umask(umask)
            self.path.chmod(0o777 & ~umask)
        except OSError as error:
            raise OutputError(f"{self.place}: cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        """Return the draft itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was not committed."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def _replaceable(self) -> bool:
        if not self.place.is_dir():
            return False
        return (self.place / "summary.json").exists() or not any(self.place.iterdir())

    def commit(self, summary: str, provenance: dict[str, Any]) -> None:
        """Write summary and provenance and move the directory to its place."""
        try:
            (self.path / "summary.json").write_text(summary + "\n", encoding="utf-8")
            text = json.dumps(provenance, indent=2) + "\n"
            (self.path / "provenance.json").write_text(text, encoding="utf-8")
            if self.place.exists():
                shutil.rmtree(self.place)
            self.path.rename(self.place)
        except OSError as error:
            raise OutputError(f"{self.place}: cannot be written: {error.strerror}") from error


#: A younger draft may belong to a process that has not locked it yet.
_ABANDONED_AFTER_S = 60


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove drafts whose process is gone."""
    for draft in folder.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError):
            lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - draft.stat().st_mtime > _ABANDONED_AFTER_S:
                    shutil.rmtree(draft)
            finally:
                os.close(lock)


@contextmanager
def replacing(place: Path) -> Iterator[BinaryIO]:
    """Write a file under another name that gets its own when it is complete.

    Directories are made; leaving with an exception removes what was written.

    Raises:
        OutputError: when the file cannot be written.

    """
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            yield file
        draft.replace(place)
    except OSError as error:
        message = f"{place}: cannot be written: {error.strerror or error}"
        raise OutputError(message) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def provenance(inputs: Sequence[Path], hashes: Sequence[str | None]) -> dict[str, Any]:
    """Say how a run came about: the command, versions, inputs."""
    return {
        "schema": PROVENANCE,
        "command": sys.argv,
        "versions": {"tailtrim": VERSION, "python": sys.version.split()[0]},
        "inputs": [
            {
                "path": str(path),
                "bytes": path.stat().st_size if path.is_file() else None,
                "sha256": digest,
            }
            for path, digest in zip(inputs, hashes, strict=True)
        ],
    }


def sha256(path: Path) -> str | None:
    """Hash a file; ``None`` for pipes, which can be read only once."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
