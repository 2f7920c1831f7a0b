"""Evaluation of statements on the runs of a combination, or of a pair of combinations."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.compare import (
    BETTER,
    WORSE,
    Group,
    Repetition,
    compare_groups,
)
from tailtrim.publishing.claims.pooled import known, sentence
from tailtrim.publishing.claims.statement import Near, Threshold
from tailtrim.publishing.report.wording import undelivered, with_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.compare import Comparison, Row, SentRow
    from tailtrim.analysis.slo import Objective
    from tailtrim.publishing.claims.selection import Combination
    from tailtrim.publishing.claims.statement import Counted, Ordered
    from tailtrim.results import RunDirectory

_SIGNS = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
_WORDS = {"<": "below", "<=": "at most", "=": "exactly", ">=": "at least", ">": "above"}


class Conclusion(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim holds, and a sentence with the value and its interval."""

    claim: str
    verdict: Conclusion
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """Verdict of one combination, or of one pair of them."""

    verdict: Conclusion
    text: str


def together(parts: Sequence[Part]) -> Part:
    """Return what all combinations say: a claim is about each of them.

    The text is that of the combinations that decide.
    """
    if deciding := _deciding(parts, "combinations"):
        return deciding
    others = len(parts) - 1
    many = f"{others} combinations" if others > 1 else "combination"
    more = f" (likewise the other {many})" if others else ""
    return Part(Conclusion.HOLDS, parts[0].text + more)


def all_of(parts: Sequence[Part]) -> Part:
    """Return what all statements of a claim say; the text is that of the one that decides."""
    return _deciding(parts, "statements") or Part(
        Conclusion.HOLDS, "; ".join(part.text for part in parts)
    )


def _deciding(parts: Sequence[Part], what: str) -> Part | None:
    """Return the first part that fails, or is not decided, with how many there are."""
    for verdict in (Conclusion.FAILS, Conclusion.UNDECIDED):
        deciding = [part for part in parts if part.verdict is verdict]
        if deciding:
            more = f" ({len(deciding)} of {len(parts)} {what})" if len(parts) > 1 else ""
            return Part(verdict, deciding[0].text + more)
    return None


def evaluate(one: Combination, statement: Threshold | Near | Counted, confidence: float) -> Part:
    """Evaluate a statement on the runs of a combination."""
    runs = _directories(one)
    if not runs:
        told = f"{one.name} has no run that can be trusted: {'; '.join(one.left_out)}"
        return Part(Conclusion.UNDECIDED, told)
    if isinstance(statement, Threshold):
        part = _bound(one.name, runs, statement, confidence)
    elif isinstance(statement, Near):
        part = _near(one.name, runs, statement)
    else:
        part = _counted(one.name, runs, statement)
    left_out = f"; left out: {'; '.join(one.left_out)}" if one.left_out else ""
    return Part(part.verdict, part.text + left_out)


def _directories(one: Combination) -> list[RunDirectory]:
    return [run.directory for run in one.runs if run.directory is not None]


def _quantity(objective: Objective) -> str:
    """Return the name of a quantity: an objective's text without its limit."""
    return objective.text.partition("<")[0].strip()


def _bound(name: str, runs: Sequence[RunDirectory], bound: Threshold, confidence: float) -> Part:
    objective = bound.objective
    one = known(runs, objective, confidence)
    limit = float(objective.limit)
    verdict = Conclusion.UNDECIDED
    if one.decisive and one.high is not None and one.high < limit:
        verdict = Conclusion.FAILS if bound.above else Conclusion.HOLDS
    elif one.decisive and one.low is not None and one.low >= limit:
        verdict = Conclusion.HOLDS if bound.above else Conclusion.FAILS
    at = with_interval(objective, limit, limit, limit)
    expected = f"{'above' if bound.above else 'below'} {at} is expected"
    text = sentence(name, _quantity(objective), one, objective)
    return Part(verdict, f"{text}; {expected}")


def _near(name: str, runs: Sequence[RunDirectory], near: Near) -> Part:
    """Compare the value of each run with what was published; no interval decides."""
    quantity = _quantity(near.objective)
    unknown: Part | None = None
    text = ""
    for run in runs:
        one = known([run], near.objective, float(run.summary.latency_ns.confidence))
        of = name if len(runs) == 1 else f"{name} ({run.name})"
        text = f"{sentence(of, quantity, one, near.objective)}; published is {near.told}"
        if one.value is None:
            unknown = unknown or Part(Conclusion.UNDECIDED, text)
        elif abs(_exact(one.value, run, near.objective) - near.value) > near.within:
            return Part(Conclusion.FAILS, text)
    return unknown or Part(Conclusion.HOLDS, text)


def _exact(value: float, run: RunDirectory, objective: Objective) -> Fraction:
    """Return a value of a run without the rounding of a share: half of a digit may decide."""
    if objective.what == "loss":
        return Fraction(*undelivered(run.summary))
    return Fraction(value)


def _counted(name: str, runs: Sequence[RunDirectory], counted: Counted) -> Part:
    """Compare a count of each run."""
    expected = f"{_WORDS[counted.sign]} {counted.count:,} is expected"
    for run in runs:
        summary = run.summary
        if counted.what == "lost" and summary.loss is None:
            return Part(Conclusion.UNDECIDED, f"how many packets {name} lost is not known")
        lost = summary.ingress.lost + summary.ingress.beyond_window
        count = summary.samples if counted.what == "samples" else lost
        text = f"{name} ({run.name}) has {count:,} {counted.what}; {expected}"
        if not _SIGNS[counted.sign](count, counted.count):
            return Part(Conclusion.FAILS, text)
    return Part(Conclusion.HOLDS, text)


def evaluate_order(a: Combination, b: Combination, statement: Ordered, confidence: float) -> Part:
    """Compare the runs of two combinations, as ``tailtrim compare`` does."""
    groups = []
    for one in (a, b):
        runs = _directories(one)
        if not runs:
            told = f"{one.name} has no run that can be trusted: {'; '.join(one.left_out)}"
            return Part(Conclusion.UNDECIDED, told)
        lacking = next((run for run in runs if "sample" not in run.tables), None)
        if lacking is not None:
            told = f"{one.name} ({lacking.name}) has no samples, which a comparison needs"
            return Part(Conclusion.UNDECIDED, told)
        groups.append(Group(one.name, tuple(Repetition(run.name, run) for run in runs)))
    objective = statement.objective
    wanted = str(objective.p)
    compared = compare_groups(*groups, quantiles=(wanted,), confidence=str(confidence), margin=0.0)
    row = _row(compared, objective, wanted)
    # B / A: above one, B is slower.
    holds, fails = (BETTER, WORSE) if statement.larger else (WORSE, BETTER)
    verdict = {holds: Conclusion.HOLDS, fails: Conclusion.FAILS}.get(
        row.verdict, Conclusion.UNDECIDED
    )
    return Part(verdict, _compared(compared, row, objective))


def _row(compared: Comparison, objective: Objective, p: str) -> Row | SentRow:
    # Without losses the packets sent are those delivered.
    rows = compared.sent if objective.adjusted and compared.sent else compared.quantiles
    return next(row for row in rows if row.p == p)


def _compared(compared: Comparison, row: Row | SentRow, objective: Objective) -> str:
    style = units.Times.of([[row.a_ns, row.b_ns]], compared.resolution_ps)
    values = [
        f"{'unknown' if ns is None else style.text(ns)} ({name})"
        for ns, name in ((row.a_ns, compared.a.name), (row.b_ns, compared.b.name))
    ]
    text = f"{_quantity(objective)} is {values[0]} and {values[1]}"
    if not row.supported or row.ratio is None:
        return f"{text}; the samples do not support a comparison"
    low, high = (units.UNSUPPORTED if end is None else f"{end:.3f}" for end in (row.low, row.high))
    return (
        f"{text}: B / A is {row.ratio:.3f}, between {low} and {high}"
        f" ({units.percent(compared.confidence)} % confidence)"
    )
