"""The tables of the page of a search, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailtrim.report import units
from tailtrim.trim.report import cost_words
from tailtrim.trim.report.curves import folder_of
from tailtrim.trim.verdict import Verdict
from tailtrim.trim.wording import ORDER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tailtrim.trim.recorded import RecordedSearch
    from tailtrim.trim.report.curves import Curve
    from tailtrim.trim.report.findings import Findings
    from tailtrim.trim.report.spread import Spread
    from tailtrim.trim.report.tradeoff import Tried
    from tailtrim.trim.trial import Observation
    from tailtrim.trim.verdict import Gain

_PHASES = {
    "explain": "baselines with a trace",
    "boot": "first boots",
    "screen": "screening",
    "eliminate": "one at a time",
    "confirm": "confirmation",
    "path": "path",
}
_UNKNOWN = (units.NONE, "")


class CurveRow(NamedTuple):
    """A curve of the path, and the runs that it is made of."""

    name: str
    tail: str
    interval: str
    change: str
    runs: str


class VerdictRow(NamedTuple):
    """A change and what became of it; ``values`` are those of a change of the plan."""

    name: str
    values: str
    group: str
    verdict: str
    good: str
    gain: str
    interval: str
    reason: str
    throughput: tuple[str, str]
    power: tuple[str, str]


class PointRow(NamedTuple):
    """A set of changes with its tail and its power; ``number`` is that of the figure."""

    number: int
    changes: str
    tail: tuple[str, str]
    watts: tuple[str, str]
    runs: int
    best: bool


class TrialRow(NamedTuple):
    """A trial."""

    run: str
    phase: str
    changes: str
    tail: str
    loss: str
    rate: str
    watts: str
    seconds: str
    problem: str


def changes_text(changes: Collection[str]) -> str:
    """Name a set of changes."""
    return " + ".join(sorted(changes)) or "baseline"


def curve_rows(path: Sequence[Curve]) -> list[CurveRow]:
    """Return a row for each curve."""
    return [
        CurveRow(
            one.name,
            _us(one.tail.value),
            _span(one.tail),
            f"{100 * (one.tail.value / path[0].tail.value - 1):+.1f} %" if one.changes else "",
            f"{len(one.runs)} run{'s' * (len(one.runs) != 1)} of the"
            f" {' and '.join(_phase(phase) for phase in one.phases)}"
            f" ({units.count(one.samples)} samples): {_listed(one.runs)}",
        )
        for one in path
    ]


def verdict_rows(found: Findings) -> list[VerdictRow]:
    """Return a row for each change, those that are kept first."""
    result = found.search.result
    rows = []
    for verdict, _ in ORDER:
        for one in result.found if result else ():
            if one.verdict is not verdict:
                continue
            cost = found.costs.each.get(one.name)
            rate, watts = (cost.delivered_pps, cost.watts) if cost else (None, None)
            of_group = f" (all of {one.group} together)" if one.of_group else ""
            rows.append(
                VerdictRow(
                    one.name,
                    " → ".join(found.search.values(one.name) or ()),
                    one.group,
                    str(verdict),
                    {Verdict.KEPT: "better", Verdict.WORSE: "worse"}.get(verdict, ""),
                    f"{-100 * one.gain.share:+.1f} %" if one.gain else units.NONE,
                    _gain_span(one.gain),
                    f"{one.reason}{of_group}",
                    cost_words.share(rate) if rate else _UNKNOWN,
                    cost_words.watts(watts) if watts else _UNKNOWN,
                )
            )
    return rows


def point_rows(points: Sequence[Tried], kept: Collection[str]) -> list[PointRow]:
    """Return a row for each set of changes, from the fewest watts on."""
    return [
        PointRow(
            number,
            changes_text(one.changes) + (" (kept)" if kept and set(one.changes) == kept else ""),
            (_us(one.tail_ns.value), _span(one.tail_ns)),
            (f"{one.watts.value:,.2f}", _watts_span(one.watts)),
            one.watts.runs,
            one.best,
        )
        for number, one in enumerate(points, start=1)
    ]


def trial_rows(search: RecordedSearch) -> list[TrialRow]:
    """Return a row for each trial, in their order."""
    return [
        TrialRow(
            folder_of(one),
            f"{_phase(one.trial.phase)}, block {one.trial.block + 1}",
            changes_text(one.trial.changes),
            _us(one.observation.tail_ns),
            f"{100 * one.observation.loss:.3g}",
            units.rate(one.observation.rate_pps),
            units.NONE if one.observation.watts is None else f"{one.observation.watts:,.1f}",
            f"{one.observation.seconds:,.0f}",
            _problem(one.observation),
        )
        for one in search.seen
    ]


def _problem(seen: Observation) -> str:
    return "; ".join(filter(None, (seen.failed, seen.doubt, seen.untried)))


def _phase(phase: str) -> str:
    return _PHASES.get(phase, phase)


def _us(ns: float | None) -> str:
    return units.NONE if ns is None else units.microseconds(round(ns))


def _span(of: Spread) -> str:
    return "" if of.low is None or of.high is None else f"{_us(of.low)} to {_us(of.high)}"


def _watts_span(of: Spread) -> str:
    return "" if of.low is None or of.high is None else f"{of.low:,.2f} to {of.high:,.2f}"


def _gain_span(gain: Gain | None) -> str:
    if gain is None:
        return ""
    low, high = sorted((-100 * gain.low, -100 * gain.high))
    return f"{low:+.1f} to {high:+.1f} % ({100 * gain.confidence:.4g} %)"


def _listed(runs: Sequence[str]) -> str:
    return ", ".join(run.removeprefix("run-") for run in runs)
