"""Names of the sides of a comparison, taken from the parts in which their paths differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.analysis import Analysis
from tailtrim.analysis.compare.sources import captures_of
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.compare.sources import Group, Source


def named_apart(
    a: Sequence[Group], b: Sequence[Group], sources: tuple[Source, Source]
) -> tuple[list[Group], list[Group]]:
    """Return the groups of two sources, named by what differs in the paths of these.

    Groups of the same source, or of one without a path, keep their names.
    """
    for one, two in zip(*map(_paths, sources), strict=False):
        if one != two:
            names = apart(one, two)
            return _named(a, names[0]), _named(b, names[1])
    return list(a), list(b)


def apart(a: Path, b: Path) -> tuple[str, str]:
    """Return the part of each path that the other has not.

    >>> apart(Path("results/hw/x.pcap"), Path("results/vm/x.pcap"))
    ('hw', 'vm')
    >>> apart(Path("results/x"), Path("results/old/x"))
    ('x', 'old/x')

    """
    one, two = a.parts, b.parts
    while one and two and one[0] == two[0]:
        one, two = one[1:], two[1:]
    if not one or not two:
        # One is a folder of the other: its own name stands for it.
        return "/".join(one) or a.name, "/".join(two) or b.name
    short_one, short_two = one, two
    while short_one and short_two and short_one[-1] == short_two[-1]:
        short_one, short_two = short_one[:-1], short_two[:-1]
    if short_one and short_two:
        one, two = short_one, short_two
    return "/".join(one), "/".join(two)


def _paths(source: Source) -> list[Path]:
    """Return the paths that a source is known by; of captures that before the device first."""
    if isinstance(source, Analysis):
        taps = source.summary.ingress_tap, source.summary.egress_tap
        return [Path(tap.capture) for tap in taps]
    if isinstance(source, RunDirectory):
        return [source.path.resolve()]
    if Path(source).exists():
        return [Path(source).resolve()]
    return [path.resolve() for path in captures_of(str(source)) or ()]


def _named(groups: Sequence[Group], name: str) -> list[Group]:
    return [replace(one, name=f"{name}: {one.key}" if one.key else name) for one in groups]
