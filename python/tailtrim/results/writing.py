"""Run directories that are whole or not there, and where they come from."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim._native import VERSION
from tailtrim.errors import OutputError
from tailtrim.results.drafts import draft_folder, settle
from tailtrim.results.layout import ANALYSIS, PROVENANCE, SUMMARY

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

SCHEMA = "tailtrim.provenance/1"

#: Files that ``convert`` names after captures and pings, behind the names of the former.
_CONVERTED = re.compile(
    r"Ping-.+\.hpct\.xz|.+\.((percentiles|hist|worst|jitterpre|jitterpost)(-filtered)?"
    r"|transferrate|packetratepre|packetratepost)\.csv"
)
_CONVERTED_OF_RUN = ("hgrm", "hlog", "prom", "openmetrics", "openmetrics2")


class Draft:
    """A run directory being written: complete or not there at all.

    Used as a context manager; :meth:`commit` moves the draft to its place, leaving without a
    commit removes it. The next process removes the files that a killed one leaves behind.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        """Make a draft next to ``place``."""
        self.place = Path(place)
        self._check_replaceable()
        with ExitStack() as stack:
            self.path = stack.enter_context(draft_folder(self.place))
            self._left = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the draft itself."""
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        """Remove a draft that was not committed; errors name the place, not the draft."""
        self._left.close()
        if isinstance(error, OutputError) and str(self.path) in str(error):
            raise OutputError(str(error).replace(str(self.path), str(self.place))) from error

    def _check_replaceable(self) -> None:
        if not self.place.exists():
            return
        inside = {path.name for path in self.place.iterdir()} if self.place.is_dir() else None
        if inside is None or (inside and SUMMARY not in inside):
            message = f"{self.place}: exists and is not a run directory, so it is not replaced"
            raise OutputError(message)
        if others := sorted(name for name in inside - ANALYSIS if not self._is_derived(name)):
            shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else "")
            raise OutputError(
                f"{self.place}: is not replaced, since it also holds what an analysis does not"
                f" write ({shown}): move this away, or choose another directory"
            )

    def _is_derived(self, name: str) -> bool:
        """Tell whether it was made of the run's numbers: by ``report`` or ``convert``."""
        if name == "report":
            return (self.place / name / "report.html").is_file()
        run = self.place.resolve().name
        of_run = {f"{run}.{format_}" for format_ in _CONVERTED_OF_RUN}
        return name in of_run or _CONVERTED.fullmatch(name) is not None

    def commit(self, summary: str, provenance: dict[str, Any]) -> None:
        """Write summary and provenance and move the directory to its place."""
        try:
            (self.path / SUMMARY).write_text(summary + "\n", encoding="utf-8")
            text = json.dumps(provenance, indent=2) + "\n"
            (self.path / PROVENANCE).write_text(text, encoding="utf-8")
            # Something may have been put there meanwhile.
            self._check_replaceable()
            settle(self.path, self.place)
        except OSError as error:
            raise OutputError(f"{self.place}: cannot be written: {error.strerror}") from error


def provenance(inputs: Sequence[Path], hashes: Sequence[str | None]) -> dict[str, Any]:
    """Say how a run came about: the command, versions, inputs."""
    sizes = [path.stat().st_size if path.is_file() else None for path in inputs]
    return provenance_of([str(path) for path in inputs], sizes, hashes)


def provenance_of(
    inputs: Sequence[str], sizes: Sequence[int | None], hashes: Sequence[str | None]
) -> dict[str, Any]:
    """Say the same of inputs that may be on another host."""
    return {
        "schema": SCHEMA,
        "command": sys.argv,
        "versions": {"tailtrim": VERSION, "python": sys.version.split()[0]},
        "inputs": [
            {"path": path, "bytes": size, "sha256": digest}
            for path, size, digest in zip(inputs, sizes, hashes, strict=True)
        ],
    }


def sha256(path: Path) -> str | None:
    """Hash a file; ``None`` for pipes, which can be read only once."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
