"""Screening of the groups of changes by a Plackett-Burman design.

In n runs the design tells the effects of up to n - 1 groups, each as exactly as if all n runs were
about it alone (Plackett and Burman, Biometrika 33, 1946). Every second replicate is the first with
on and off swapped (fold-over: Box and Wilson, Journal of the Royal Statistical Society B 13, 1951),
so that interactions of two groups do not pass for effects of a third. Two groups of which each does
nothing alone have half of their common effect each.

Screening keeps nothing, so it spends none of the error: what goes on is tested with new runs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailtrim.laboratory.trim.schedule import BASELINE
from tailtrim.laboratory.trim.verdict import Found, Gain
from tailtrim.verdict import WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.laboratory.trim.schedule import Schedule, Steps
    from tailtrim.laboratory.trim.trial import Candidate, Observation

#: A group that is worth exactly as much as asked for is left out by mistake in one of 20 searches;
#: one that is worth twice as much in one of 2,000 (1.64 standard errors twice).
_MISSED = 0.05
#: Of the budget: elimination has twice as much, which is what decides.
_SHARE = 3
#: The largest design that the library has without a gap.
MOST_GROUPS = 23
#: With fewer candidates elimination alone takes fewer runs than the smallest design, twice.
FEWEST_CANDIDATES = 5


Design = list[list[bool]]


class Screened(NamedTuple):
    """The candidates that go on, and the verdicts of the others."""

    going: list[Candidate]
    out: list[Found]


@dataclass(frozen=True, slots=True)
class _Row:
    """A trial of the design."""

    on: tuple[bool, ...]
    block: int
    observation: Observation


def screen(schedule: Schedule, groups: Mapping[str, Sequence[Candidate]]) -> Steps[Screened]:
    """Leave out groups that clearly do not cut the tail.

    A group of several that makes the tail longer goes on: one of them may be the reason, and hide
    that another helps.
    """
    names = list(groups)
    matrix = design(len(names))
    budget = rows_allowed(schedule.left(), len(matrix))
    rows: list[_Row] = []
    gains: dict[str, Gain] = {}
    replicate = 0
    # Fold-over pairs: half of one would mix interactions into effects.
    while len(rows) < budget:
        opposite = [[not on for on in row] for row in matrix]
        for folded in (matrix, opposite):
            sets = [_changes(groups, names, row) for row in folded]
            # The baseline is in each block: limits are relative to it, and drift shows in it.
            seen = yield from schedule.block("screen", [*sets, BASELINE])
            off = tuple(False for _ in names)
            told = [*map(tuple, folded), off]
            rows += [_Row(on, replicate, one) for on, one in zip(told, seen, strict=True)]
            replicate += 1
        gains = _gains(names, rows)
        if gains and all(_decided(gains[name], groups[name], schedule) for name in names):
            break
    return _parted(schedule, groups, gains, rows)


def design(groups: int) -> Design:
    """Return the design: groups (columns) that are on in trials (rows)."""
    from pydoe import pbdesign  # noqa: PLC0415 - takes a second to load

    return [[bool(level > 0) for level in row] for row in pbdesign(groups)]


def rows_allowed(trials: int, rows: int) -> int:
    """Return the trials of a budget that screening may have: replicates with their fold-over."""
    pair = 2 * (rows + 1)
    return trials // _SHARE // pair * pair


def _changes(
    groups: Mapping[str, Sequence[Candidate]], names: Sequence[str], row: Sequence[bool]
) -> frozenset[str]:
    return frozenset(
        one.name for name, on in zip(names, row, strict=True) if on for one in groups[name]
    )


def _gains(names: Sequence[str], rows: Sequence[_Row]) -> dict[str, Gain]:
    """Estimate the gain of each group by least squares, with an intercept for each block."""
    from scipy.special import stdtrit  # noqa: PLC0415 - not before it is needed

    told = [(row, row.observation.tail_ns) for row in rows]
    known = [(row, math.log(tail)) for row, tail in told if tail]
    blocks = sorted({row.block for row, _ in known})
    columns = np.array(
        [[*row.on, *(row.block == block for block in blocks)] for row, _ in known], dtype=float
    )
    freedom = len(known) - columns.shape[1] if known else 0
    if freedom < 1 or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return {}
    logs = np.array([log for _, log in known])
    fitted, *_ = np.linalg.lstsq(columns, logs)
    variance = float(((logs - columns @ fitted) ** 2).sum()) / freedom
    errors = np.sqrt(variance * np.diag(np.linalg.inv(columns.T @ columns)))
    reach = -float(stdtrit(freedom, _MISSED))
    gains = {}
    for place, name in enumerate(names):
        mean, wide = -float(fitted[place]), reach * float(errors[place])
        gains[name] = Gain.of_logs(mean, mean - wide, mean + wide, 1 - 2 * _MISSED)
    return gains


def _decided(gain: Gain, members: Sequence[Candidate], schedule: Schedule) -> bool:
    return gain.low > 0 or _out(gain, members, schedule) or (gain.high < 0 and len(members) > 1)


def _out(gain: Gain, members: Sequence[Candidate], schedule: Schedule) -> bool:
    worth = schedule.settings.worth
    return gain.high < worth and (len(members) == 1 or gain.low > -worth)


def _parted(
    schedule: Schedule,
    groups: Mapping[str, Sequence[Candidate]],
    gains: Mapping[str, Gain],
    rows: Sequence[_Row],
) -> Screened:
    going: list[Candidate] = []
    out: list[Found] = []
    for place, (name, members) in enumerate(groups.items()):
        gain = gains.get(name)
        limit = _limit(schedule, rows, place) if len(members) == 1 else None
        if limit is not None:
            verdict, reason = Verdict(verdict=WORSE), limit
        elif gain is not None and _out(gain, members, schedule):
            worse = gain.high < 0
            less = f"gains less than {schedule.settings.worth:.0%} (screening)"
            reason = "makes the tail longer (screening)" if worse else less
            verdict = gain.verdict
        else:
            going += members
            continue
        several = len(members) > 1
        found = asdict(verdict) | {"of_group": several}
        out += [Found(one.name, name, reason, gain, **found) for one in members]
    return Screened(going, out)


def _limit(schedule: Schedule, rows: Sequence[_Row], place: int) -> str | None:
    """Return the limit that all runs with a group are beyond, and none without it."""
    told = [(row.on[place], schedule.beyond_limit(row.observation)) for row in rows]
    reasons = [reason for on, reason in told if on]
    if reasons and all(reasons) and not any(reason for on, reason in told if not on):
        return reasons[-1]
    return None
