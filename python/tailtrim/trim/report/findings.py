"""All that a search found, in numbers: :func:`findings`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.trim.report.costs import Costs, costs_of
from tailtrim.trim.report.curves import Curve, path
from tailtrim.trim.report.tradeoff import Tried, tradeoff

if TYPE_CHECKING:
    from tailtrim.trim.recorded import RecordedSearch

SCHEMA = "tailtrim.trim-report/1"


@dataclass(frozen=True, slots=True)
class Findings:
    """A search, the path of its tail, what it costs, and tail against watts."""

    search: RecordedSearch
    path: list[Curve]
    costs: Costs
    tradeoff: list[Tried]

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it: times in ns, rates in packets/s."""
        search = self.search
        told = search.result.as_json() if search.result else {}
        return {
            "schema": SCHEMA,
            "quantile": search.quantile,
            **told,
            "costs": asdict(self.costs),
            "path": [_curve(one) for one in self.path],
            "tradeoff": [asdict(one) for one in self.tradeoff],
        }


def findings(search: RecordedSearch) -> Findings:
    """Return what a search found.

    Raises:
        RunDirectoryError: the experiment or a run is damaged.

    """
    return Findings(search, path(search), costs_of(search), tradeoff(search))


def _curve(one: Curve) -> dict[str, Any]:
    names = ("quantile_x", "value_ns", "low_ns", "high_ns")
    columns = (one.x, one.value_ns, one.low_ns, one.high_ns)
    return {
        "name": one.name,
        "changes": sorted(one.changes),
        "runs": list(one.runs),
        "samples": one.samples,
        "tail_ns": asdict(one.tail),
        "curve": {
            name: [None if math.isnan(value) else value for value in column.tolist()]
            for name, column in zip(names, columns, strict=True)
        },
    }
