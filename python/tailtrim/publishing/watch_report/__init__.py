"""The report of spans of a watch: a table of its targets, as page, text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Measured

__all__ = ["write"]


def write(found: Sequence[Measured], title: str, out: Path, now_ns: int) -> list[Path]:
    """Write ``report.html`` and ``targets.csv``, and return them.

    Raises:
        PicturesError: a package for pages is not installed.
        OutputError: ``out`` cannot be written.

    """
    write_files.require_pictures()
    from tailtrim.publishing.watch_report import page  # noqa: PLC0415 - brings matplotlib, which takes long

    return page.write(found, title, out, now_ns)
