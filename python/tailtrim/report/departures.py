"""How late the generator of a live run sent, and what that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.rundir import RunDirectory

#: What the columns are called, in two lines of a table's head and in one line; times are in µs.
COLUMNS = (
    (("Late", "50"), "Late p50, µs"),
    (("", "99"), "Late p99, µs"),
    (("", "Max"), "Late max, µs"),
    (("Sent", "late, %"), "Sent late, %"),
    (("Latency", "of all"), "Latency of all"),
    (("", "on time"), "Latency, on time"),
    (("Set", "aside"), "Set aside"),
)
#: The highest of these that the samples support shows what late departures changed.
_SHOWN = ("0.9999", "0.999", "0.99", "0.5")


@dataclass(frozen=True, slots=True)
class DepartureRow:
    """Departure lateness of a run: the cells of a table, see :data:`COLUMNS`.

    ``note`` says what else a reader must know, if anything.
    """

    name: str
    cells: tuple[str, ...]
    note: str | None


def departure_rows(runs: Sequence[tuple[str, RunDirectory]]) -> list[DepartureRow]:
    """Return a row for each run whose generator told how late it sent."""
    return [row for name, run in runs if (row := _row(name, run)) is not None]


def _row(name: str, run: RunDirectory) -> DepartureRow | None:
    generator, summary = run.generator(), run.summary
    try:
        lateness, stalls = generator["lateness_ns"], generator.get("stalls")
        late = {quantile["p"]: quantile["value"] for quantile in lateness["quantiles"]}
        times = [late.get("0.5"), late.get("0.99"), lateness["max"]]
        share, note = units.NONE, None
        if stalls is not None:
            share = units.loss(stalls["departed_late"], generator["sent"])
            note = _note(stalls, shared=generator.get("shares_cpu", False))
    except (KeyError, TypeError):
        return None
    changed = (units.NONE, units.NONE)
    known = {quantile.p: quantile for quantile in summary.latency_ns.quantiles}
    supported = [p for p in _SHOWN if p in known and known[p].supported]
    if supported and summary.departed_late is not None:
        p = supported[0]
        changed = (
            f"p{units.percent(p)} {_us(known[p].value)}",
            _us(summary.departed_late.without_ns.get(p)),
        )
    aside = units.count(summary.ingress.stalled)
    return DepartureRow(name, (*(_us(ns) for ns in times), share, *changed, aside), note)


def _us(ns: int | None) -> str:
    return units.NONE if ns is None else units.microseconds(ns)


def _note(stalls: dict[str, dict[str, int]], *, shared: bool) -> str | None:
    sending, waiting = stalls["sending"], stalls["waiting"]
    if not sending["count"] and not waiting["count"]:
        return None
    longest = max(sending["longest_ns"], waiting["longest_ns"])
    total = sending["total_ns"] + waiting["total_ns"]
    told = (
        f"the generator's CPU stood still {units.count(sending['count'] + waiting['count'])} times"
        f" ({units.time(total)}, {units.time(longest)} at most),"
        f" {units.count(sending['count'])} times in the middle of sending"
    )
    if shared and sending["count"]:
        told += "; that CPU serves the device, too, so no packet is set aside"
    return told


def legend(rows: Sequence[DepartureRow]) -> str:
    """Return what the columns mean."""
    text = (
        "How late packets were sent in µs; sent late: by more than 20 µs. Latency: of all samples,"
        " and of those sent on time."
    )
    if any(row.cells[-1] != "0" for row in rows):
        text += " Set aside: the generator stood still while it sent them."
    return text
