"""``tailtrim compare`` of two spans of all targets of a watch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tailtrim.cli import spans
from tailtrim.cli.console import Progress, say, say_json, show, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.cli.spans import Selected

SCHEMA = "tailtrim.watch-comparison/1"
_SIDES = 2


def chosen(sides: Sequence[str], *, one_run: bool) -> list[tuple[str, Selected]]:
    """Return the sides if they are spans of several targets; nothing if they are runs.

    Args:
        sides: as typed.
        one_run: an option is given that is for runs, not for many targets.

    Raises:
        ValueError: an option is for runs, or not both sides are spans.
        RoundTripError: no target is there.

    """
    found = [spans.selected(side) for side in sides]
    if not any(one is not None and len(one.targets) > 1 for one in found):
        return []
    known = [(side, one) for side, one in zip(sides, found, strict=True) if one is not None]
    if len(known) != len(sides) or len(sides) != _SIDES:
        raise ValueError("expected two spans of a watch, such as WATCH@yesterday WATCH@today")
    if one_run:
        raise ValueError(
            "--halves, --assert and --out are for runs or for one target: WATCH/TARGET@SPAN"
        )
    return known


def compare(sides: list[tuple[str, Selected]], *, json: bool, **how: Any) -> bool:
    """Print a table with a row for each target; return whether one is worse."""
    from tailtrim.analysis.watched import Side, compared  # noqa: PLC0415 - others start without
    from tailtrim.publishing.watch_report import comparison_table  # noqa: PLC0415

    a, b = (Side(name, one.targets, one.span) for name, one in sides)
    with Progress("comparing targets") as progress:
        found = list(compared(a, b, folder=spans.folder(), progress=progress, **how))
    now_ns = time.time_ns()
    for name, note in comparison_table.remarks(found, now_ns):
        warn(f"{name}: {note}")
    if json:
        told = {"schema": SCHEMA, "a": a.name, "b": b.name, "confidence": how["confidence"]}
        say_json({**told, **comparison_table.as_json(found)}, indent=2, ensure_ascii=False)
    else:
        show(comparison_table.table(found).terminal(gap=1))
        say(comparison_table.headline(found, a.name, b.name, how["confidence"]))
    return any(one.verdict == "worse" for one in found)
