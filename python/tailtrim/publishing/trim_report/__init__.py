"""The report of a search: a table of its changes, the path of its tail, all numbers as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.publishing.report import write_files
from tailtrim.publishing.trim_report.costs import Costs, costs_of
from tailtrim.publishing.trim_report.path import Step, path

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.trim.recorded import RecordedSearch

__all__ = ["Findings", "findings", "write"]

SCHEMA = "tailtrim.trim-report/2"


@dataclass(frozen=True, slots=True)
class Findings:
    """A search, the path of its tail, and the costs of what it keeps."""

    search: RecordedSearch
    path: list[Step]
    costs: Costs

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it: times in ns, rates in packets/s."""
        search = self.search
        told = search.result.as_json() if search.result else {}
        return {
            "schema": SCHEMA,
            "quantile": search.quantile,
            **told,
            "costs": asdict(self.costs),
            "path": [asdict(one) | {"changes": sorted(one.changes)} for one in self.path],
        }


def findings(search: RecordedSearch) -> Findings:
    """Return the findings of a search.

    Raises:
        RunDirectoryError: the experiment or a run is damaged.

    """
    return Findings(search, path(search), costs_of(search))


def write(found: Findings, out: Path, *, pdf: bool = False) -> list[Path]:
    """Write the report of a search.

    ``out`` gets ``report.html``, ``findings.json``, and ``figures/`` with the figure as SVG, as
    PDF where ``pdf`` asks for it, and its values as CSV. Files of an earlier report are replaced.

    Returns:
        The files written, the page first.

    Raises:
        PicturesError: a package for pages and figures is not installed.
        OutputError: ``out`` cannot be written.

    """
    formats = write_files.formats(pdf=pdf)
    write_files.require_pictures(formats)
    from tailtrim.publishing.trim_report import page  # noqa: PLC0415 - brings pages and figures

    return page.write(found, out, formats)
