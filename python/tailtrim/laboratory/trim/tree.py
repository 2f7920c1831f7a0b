"""The tree of the trials of a search with their duration, for a dry run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.laboratory.trim.alpha_spending import FEWEST, Looks
from tailtrim.laboratory.trim.screening import FEWEST_CANDIDATES, design, rows_allowed
from tailtrim.laboratory.trim.search import CONFIRM, CONFIRM_MOST, EXPLAINED, affordable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.laboratory.trim.trial import Candidate, Settings
    from tailtrim.laboratory.trim.verdict import Found

_MINUTE_S, _HOUR_MIN = 60, 90
_BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class _Phase:
    """A phase: its title, its number of trials, and the sets of changes in them."""

    title: str
    least: int
    most: int
    sets: tuple[str, ...]
    note: str

    def lines(self, each_s: float) -> Iterator[str]:
        trials = (
            f"{self.least:,} to {self.most:,} trials"
            if self.most > self.least
            else (f"{self.least:,} trials")
        )
        low, high = duration(self.least * each_s), duration(self.most * each_s)
        yield f"{self.title}: {trials}, {low if low == high else f'{low} to {high}'}"
        *others, last = self.sets
        for one in others:
            yield f"  ├─ {one}"
        yield f"  └─ {last}"
        yield f"  {self.note}"


def tree(
    candidates: Sequence[Candidate],
    impossible: Sequence[Found],
    settings: Settings,
    each_s: float,
) -> Iterator[str]:
    """Yield the lines of the tree, with estimated times.

    Args:
        candidates: in the order of expected gain.
        impossible: changes that cannot be tried on this host.
        settings: of the search.
        each_s: duration of a trial, in s.

    """
    first = EXPLAINED if settings.explain else 0
    tried, beyond = affordable(candidates, settings, done=first)
    groups: dict[str, list[str]] = {}
    for one in tried:
        groups.setdefault(one.group, []).append(one.name)
    yield f"{len(tried)} changes in {len(groups)} groups, in the order of expected gain"
    yield from _listed(groups)
    for found in (*beyond, *impossible):
        yield f"  not tried: {found.name}: {found.reason}"
    yield ""
    yield (
        f"A trial takes about {duration(each_s)}; the budget allows {settings.trials:,} trials,"
        f" {duration(settings.seconds or settings.trials * each_s)}"
    )
    for number, phase in enumerate(_phases(tried, groups, settings), start=1):
        title, *lines = phase.lines(each_s)
        yield ""
        yield f"{number}. {title}"
        yield from (f"   {line}" for line in lines)
    yield ""
    most = duration(settings.seconds or settings.trials * each_s)
    yield "Trials of a round follow each other in random order. The search ends when all is"
    yield f"decided, at the latest after {most}."


def duration(time_s: float) -> str:
    """Return a time with its unit.

    >>> duration(45), duration(240), duration(7_300)
    ('45 s', '4 min', '2.1 h')

    """
    if time_s < _MINUTE_S:
        return f"{time_s:.0f} s"
    minutes = math.ceil(time_s / _MINUTE_S)
    return f"{minutes} min" if minutes <= _HOUR_MIN else f"{math.ceil(minutes / 6) / 10:g} h"


def _listed(groups: dict[str, list[str]]) -> Iterator[str]:
    width = max(map(len, groups), default=0)
    for group, names in groups.items():
        yield f"  {group:<{width}}  {', '.join(names)}"


def _phases(
    tried: Sequence[Candidate], groups: dict[str, list[str]], settings: Settings
) -> Iterator[_Phase]:
    names = [one.name for one in tried]
    left = settings.trials
    if settings.explain:
        note = "their causes order the changes of the host"
        yield _Phase("Baselines with a trace", EXPLAINED, EXPLAINED, (_BASELINE,), note)
        left -= EXPLAINED
    booting = [one.name for one in tried if one.boots]
    if booting:
        trials = len(booting) + 1
        note = "what does not come up is left out; later rounds boot anew, too"
        yield _Phase("Boot with each change", trials, trials, (_BASELINE, *booting), note)
        left -= trials
    screened = False
    if len(tried) >= FEWEST_CANDIDATES and len(groups) > 1:
        matrix = design(len(groups))
        pair, allowed = 2 * (len(matrix) + 1), rows_allowed(left, len(matrix))
        screened = allowed >= pair
        if screened:
            yield _screening(list(groups), pair, allowed)
    each = len(names) + 2
    longest = Looks((left - 2 * CONFIRM) // (len(names) // 2 + 2)).longest
    yield _Phase(
        "Backward elimination",
        FEWEST * each,
        min(longest * each, max(left - 2 * CONFIRM, FEWEST * each)),
        (_BASELINE, f"all: {' + '.join(names)}", *(f"all but {name}" for name in names)),
        f"{FEWEST} to {longest} rounds; what is decided"
        f"{', and what screening left out,' * screened} is in none any more",
    )
    yield _Phase(
        "Confirmation",
        2 * CONFIRM,
        2 * CONFIRM_MOST,
        (_BASELINE, "all that is kept"),
        f"{CONFIRM} to {CONFIRM_MOST} rounds, if anything is kept",
    )
    if len(names) > 1:
        yield _Phase(
            "Path, for the figure of the report",
            0,
            FEWEST * (len(names) - 1),
            ("what brings most of what is kept", "one kept change more, and so on"),
            f"{FEWEST} rounds, if more than one change is kept and time is left",
        )


def _screening(groups: Sequence[str], pair: int, allowed: int) -> _Phase:
    rows = design(len(groups))

    def named(row: Sequence[bool]) -> str:
        on = [name for name, there in zip(groups, row, strict=True) if there]
        return " + ".join(on) or "no group"

    sets = (_BASELINE, *(named(row) for row in rows))
    return _Phase(
        "Screening of the groups",
        pair,
        allowed,
        sets,
        "every second round has the opposites, on for off; until each group is decided",
    )
