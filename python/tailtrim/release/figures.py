"""The level ``figures``: pages and figures drawn again from the tables of the runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import PicturesError, PlanError, TailtrimError
from tailtrim.nodes import drawing
from tailtrim.release import website
from tailtrim.release.layout import DRAWING, EXPERIMENT, INDEX, REPORT, SITE
from tailtrim.release.level import Level
from tailtrim.release.versions import drawn_otherwise

if TYPE_CHECKING:
    from tailtrim.release.opened import Opened

_VALUES = (".csv", ".json", ".md")


def check(release: Opened) -> Level:
    """Draw again; values are compared with any version, drawings with the same ones."""
    try:
        drawn = _drawn(release)
    except PicturesError as error:
        return Level("figures", str(error), skipped=(str(error),), without=True)
    except TailtrimError as error:
        return Level("figures", "cannot be drawn again", (str(error),))
    there = {name for name in release.files if name == INDEX or name.startswith(f"{SITE}/")}
    there |= {name for name in release.files if name == f"{EXPERIMENT}/{DRAWING}"}
    wrong = [f"{name}: missing" for name in sorted(drawn.keys() - there)]
    wrong += [f"{name}: not of the website" for name in sorted(there - drawn.keys())]
    otherwise = drawn_otherwise(release.versions)
    for name in sorted(there & drawn.keys()):
        if otherwise and not name.endswith(_VALUES):
            continue
        if (release.root / name).read_bytes() != drawn[name]:
            wrong.append(f"{name}: {_first(release.root / name, drawn[name])}")
    skipped = []
    if otherwise:
        skipped.append(
            f"pages and drawings: not compared, nor their scripts looked at: {', '.join(otherwise)}"
        )
    told = f"{sum(name.endswith('.csv') for name in drawn):,} figures and their values"
    return Level("figures", told, tuple(wrong), tuple(skipped))


def _drawn(release: Opened) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder).resolve() / "report"
        website.report(release.root, out)
        drawn = {
            f"{REPORT}/{place.relative_to(out)}": place.read_bytes()
            for place in out.rglob("*")
            if place.is_file()
        }
    drawn |= website.pages(release.root)
    try:
        testbed = release.described
    except PlanError:
        testbed = None
    if testbed is not None:
        drawn[f"{EXPERIMENT}/{DRAWING}"] = drawing.svg(testbed).encode()
    return drawn


def _first(place: Path, drawn: bytes) -> str:
    """Return the first different line of values; drawings have no such."""
    if not place.name.endswith(_VALUES):
        return "not what is drawn from the data"
    released = place.read_bytes().decode(errors="replace").splitlines()
    here = drawn.decode().splitlines()
    for number, (one, other) in enumerate(zip(released, here, strict=False), 1):
        if one != other:
            return f"line {number}: {one!r} in the release, {other!r} derived again"
    return f"{len(released):,} lines in the release, {len(here):,} derived again"
