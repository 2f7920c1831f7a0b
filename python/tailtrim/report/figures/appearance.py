"""Looks of the runs of an experiment: a device and its floor alike, rates in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.report.figures.palette import MARKERS, Look, distinct, ordered, shaded
from tailtrim.report.inputs.combinations import floor_of, series, variables

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tailtrim.experiment import RecordedRun
    from tailtrim.report.inputs.combinations import Variable

#: Of the wire, which is the floor of what has the same colour.
FLOOR_DASH = (3.5, 2)
_GREY = "#5A6068", "#A9B0B7"


def looks_of(runs: Sequence[RecordedRun]) -> list[Look]:
    """Return a look for each run.

    Where a loop variable has numbers, colours are in its order: of one device those of a ramp, of
    several the shades of a colour each. The floor is dashed: in its device's colour, or grey where
    it is that of several. Repetitions differ in their markers.
    """
    if not runs:
        return []
    swept = next(iter(variables(runs)), None)
    groups = list(dict.fromkeys(_group(run, swept) for run in runs if not run.outcome.floor))
    plain = distinct(len(groups))
    found: list[Look | None] = [
        None if run.outcome.floor else _device_look(run, swept, groups, plain) for run in runs
    ]
    for place, run in enumerate(runs):
        if found[place] is None:
            found[place] = _floor_look(run, runs, found, swept)
    return [look for look in found if look is not None]


def _group(run: RecordedRun, swept: Variable | None) -> Hashable:
    if swept is None:
        return run.traced, tuple((name, str(value)) for name, value in run.loop.items())
    return series(run, swept)


def _device_look(
    run: RecordedRun, swept: Variable | None, groups: list[Hashable], plain: Sequence[Look]
) -> Look:
    group = groups.index(_group(run, swept))
    marker = MARKERS[(group + run.repetition) % len(MARKERS)]
    value = None if swept is None else swept.of(run)
    if swept is None or value is None:
        return replace(plain[group], dash=(), marker=marker)
    rank, count = swept.values.index(value), len(swept.values)
    if len(groups) == 1:
        return Look(*ordered(rank, count), MARKERS[(rank + run.repetition) % len(MARKERS)])
    return _shaded((plain[group].light, plain[group].dark), rank, count, marker)


def _shaded(colours: tuple[str, str], rank: int, count: int, marker: str) -> Look:
    return Look(*shaded(colours, rank, count), marker)


def _floor_look(
    run: RecordedRun,
    runs: Sequence[RecordedRun],
    found: Sequence[Look | None],
    swept: Variable | None,
) -> Look:
    mine = [
        look
        for one, look in zip(runs, found, strict=True)
        if look is not None and floor_of(one, runs) is not None and one.traffic == run.traffic
    ]
    if len({(look.light, look.dark) for look in mine}) == 1:
        return replace(mine[0], dash=FLOOR_DASH)
    value = None if swept is None else swept.of(run)
    if swept is None or value is None:
        return Look(*_GREY, "s", FLOOR_DASH)
    look = _shaded(_GREY, swept.values.index(value), len(swept.values), "s")
    return replace(look, dash=FLOOR_DASH)
