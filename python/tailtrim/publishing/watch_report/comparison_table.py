"""The table of two spans of a watch, with a row for each target."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.publishing.report.table import Cell, Column, Row, Table
from tailtrim.publishing.watch_report.account_wording import notes
from tailtrim.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDED, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.compare import Comparison
    from tailtrim.analysis.watched import ComparedTarget

SHOWN = ("0.5", "0.99", "0.999")
#: Order of the rows: what needs a look comes first.
_ORDER = (WORSE, BETTER, NOT_DECIDED, NO_DIFFERENCE, "not_compared")


def table(found: Sequence[ComparedTarget]) -> Table:
    """Return the table: the ratio B / A of percentiles, bad probes of both, the verdict."""
    has_hosts = len({one.host for one in found}) > 1
    columns = [
        Column("target", kind="left"),
        *([Column("host", kind="left")] if has_hosts else []),
        *(Column(f"B / A\np{units.percent(p)}") for p in SHOWN),
        Column("bad %\nA"),
        Column("bad %\nB"),
        Column("verdict", kind="left"),
    ]
    ordered = sorted(found, key=lambda one: _ORDER.index(one.verdict))
    rows = [
        Row(
            units.printable(one.name),
            [*([units.printable(one.host)] if has_hosts else []), *_cells(one.comparison)],
        )
        for one in ordered
    ]
    return Table(columns, rows)


def _cells(one: Comparison | None) -> Iterator[str | Cell]:
    if one is None:
        yield from [units.NONE] * (2 + len(SHOWN))
        yield "not compared"
        return
    rows = {row.p: row for row in one.quantiles}
    for p in SHOWN:
        row = rows[p]
        if row.ratio is None:
            yield units.NONE
            continue
        ends = [units.UNSUPPORTED if end is None else f"{end:.2f}" for end in (row.low, row.high)]
        yield Cell(f"{row.ratio:.3f}", "\N{EN DASH}".join(ends) if row.supported else "", row.kind)
    for side in (one.a, one.b):
        known = side.outcomes["matched"] + side.outcomes["lost"] + side.outcomes["beyond_window"]
        bad = side.outcomes["lost"] + side.outcomes["beyond_window"]
        yield units.loss(bad, known)
    verdict = Verdict(verdict=one.verdict)
    yield Cell(f"{verdict.told()}{_of_what(one)}", kind=verdict.kind)


def _of_what(one: Comparison) -> str:
    """Return which percentiles differ, and whether the loss does."""
    told = [f"p{units.percent(row.p)}" for row in one.quantiles if row.verdict == one.verdict]
    if one.losses and one.losses.verdict == one.verdict:
        told.append("loss")
    return f": {', '.join(told)}" if one.verdict in {WORSE, BETTER} and told else ""


def headline(found: Sequence[ComparedTarget], a: str, b: str, confidence: object) -> str:
    """Return how many targets have each verdict, and what that is worth."""
    counts = Counter(one.verdict for one in found)
    words = {"not_compared": "not compared"}
    told = ", ".join(
        f"{counts[verdict]:,} {words.get(verdict, Verdict(verdict=verdict).told())}"
        for verdict in _ORDER
        if counts[verdict]
    )
    compared = len(found) - counts["not_compared"]
    return (
        f"{units.printable(b)} compared with {units.printable(a)}: {told}. All verdicts together"
        f" hold with a confidence of {confidence}: each of {units.counted(compared, 'target')} has"
        " its share of the error."
    )


def remarks(found: Sequence[ComparedTarget], now_ns: int) -> Iterator[tuple[str, str]]:
    """Yield names of targets, each with what a reader has to know of it."""
    for one in found:
        name = units.printable(f"{one.host}/{one.name}")
        if one.fault:
            yield name, units.printable(one.fault)
            continue
        for side, account in zip("AB", one.accounts, strict=True):
            for note in notes(account, now_ns):
                yield f"{name}, {side}", units.printable(note)


def as_json(found: Sequence[ComparedTarget]) -> dict[str, Any]:
    """Return the comparisons, and what was not compared."""
    return {
        "comparisons": [one.comparison.as_json() for one in found if one.comparison is not None],
        "not_compared": [
            {"host": one.host, "target": one.name, "why": one.fault}
            for one in found
            if one.comparison is None
        ],
    }
