"""Looks of lines: told apart by colour, dash and marker; of the runs of an experiment, in order.

The first seven colours are those of Okabe and Ito, which people with any colour vision tell apart;
on a dark ground the darker ones are lightened. Beyond seven, and for values in an order, they are
mixed with black or white: no two of a figure are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.publishing.report.inputs.run_groups import series, variables
from tailtrim.results.experiments import floor_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tailtrim.publishing.report.inputs.run_groups import Variable
    from tailtrim.results.experiments import RecordedRun

LIGHT = ("#0072B2", "#D55E00", "#009E73", "#A6548A", "#8A6D00", "#3A3A3A", "#3E8FC4")
DARK = ("#56B4E9", "#F28E4B", "#35C99B", "#E08FC0", "#F0D264", "#D8D8D8", "#9BD0F5")

# On and off in points; the order differs in length from the colours, so that pairs repeat late.
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 1.5), (7, 2, 1.5, 2))
PARTS: dict[str, tuple[float, ...]] = {
    "p99": (5, 2),
    "max": (1.5, 1.5),
    "egress": (2, 1.5),
    "without": (4, 2),
}

#: Of the wire, which is the floor of what has the same colour.
FLOOR_DASH = (3.5, 2)
_GREY = "#5A6068", "#A9B0B7"

# Circle, square, triangle, diamond, triangle, plus, cross; the page draws the same shapes.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: The colours of plasma (S. van der Walt and N. Smith, matplotlib) at each sixteenth.
_RAMP = (
    *("#0d0887", "#310597", "#4c02a1", "#6600a7", "#7e03a8", "#9511a1", "#aa2395", "#bc3587"),
    *("#cc4778", "#da5a6a", "#e66c5c", "#f0804e", "#f89540", "#fdac33", "#fdc527", "#f8df25"),
    "#f0f921",
)
# As much of it as stands out from white, and from the page's dark ground.
_RAMP_LIGHT, _RAMP_DARK = (0.02, 0.68), (0.42, 0.97)
# Shares of black and white in the darkest and the lightest shade of a colour.
_MOST_BLACK, _MOST_WHITE = 0.45, 0.4
# On a dark ground the darkest shade has to stand out, too.
_MOST_BLACK_ON_DARK = 0.25


@dataclass(frozen=True, slots=True)
class Look:
    """Colour on a light and on a dark ground, marker, and dash (on and off in points)."""

    light: str
    dark: str
    marker: str = "o"
    dash: tuple[float, ...] = ()


def distinct(count: int) -> tuple[Look, ...]:
    """Return looks without an order; no two have the same colours."""
    shades = -(-count // len(LIGHT))
    return tuple(
        Look(
            *shaded(
                (LIGHT[place % len(LIGHT)], DARK[place % len(DARK)]), place // len(LIGHT), shades
            ),
            MARKERS[place % len(MARKERS)],
            DASHES[place % len(DASHES)],
        )
        for place in range(count)
    )


def ordered(place: int, count: int) -> tuple[str, str]:
    """Return the colours, on light and dark ground, of the value at ``place`` of so many."""
    at = place / (count - 1) if count > 1 else 0.3
    light, dark = (low + (high - low) * at for low, high in (_RAMP_LIGHT, _RAMP_DARK))
    return _of_ramp(light), _of_ramp(dark)


def _of_ramp(at: float) -> str:
    places = np.linspace(0, 1, len(_RAMP))
    parts = zip(*map(_parts, _RAMP), strict=True)
    return _colour([float(np.interp(at, places, part)) for part in parts])


def _parts(colour: str) -> list[float]:
    """Return red, green and blue, from 0 to 1."""
    return [part / 255 for part in bytes.fromhex(colour[1:])]


def _colour(parts: Sequence[float]) -> str:
    return "#" + bytes(round(part * 255) for part in parts).hex()


def shaded(colours: tuple[str, str], place: int, count: int) -> tuple[str, str]:
    """Return one of so many shades of the colours on light and dark ground."""
    light, dark = colours
    return shade(light, place, count), shade(dark, place, count, _MOST_BLACK_ON_DARK)


def shade(colour: str, place: int, count: int, most_black: float = _MOST_BLACK) -> str:
    """Return one of so many shades of a colour, from dark to light; a single one is the colour."""
    if count <= 1:
        return colour
    at = 2 * place / (count - 1) - 1
    towards, share = (0.0, -most_black * at) if at < 0 else (1.0, _MOST_WHITE * at)
    return _colour([part + (towards - part) * share for part in _parts(colour)])


def dash(look: Look, part: str) -> tuple[float, ...]:
    """Return the dash of a line: by its part where a run has several, else by its look."""
    return PARTS.get(part, ()) if part else look.dash


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
