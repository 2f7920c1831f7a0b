"""What a search found, for people: a page, figures, and all numbers as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.report import pictures
from tailtrim.trim.report.findings import Findings, findings

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Findings", "findings", "write"]


def write(found: Findings, out: Path, *, pdf: bool = False) -> list[Path]:
    """Write the report of a search.

    ``out`` gets ``report.html``, ``findings.json``, and ``figures/`` with each figure as SVG, as
    PDF where ``pdf`` asks for it, and its values as CSV. Files of an earlier report are replaced.

    Returns:
        The files written, the page first.

    Raises:
        PicturesError: what makes pages and figures is not installed.
        RunDirectoryError: the experiment is damaged.
        OutputError: ``out`` cannot be written.

    """
    pictures.require()
    from tailtrim.trim.report import files  # noqa: PLC0415 - brings matplotlib, which takes long

    return files.write(found, out, pictures.formats(pdf=pdf))
