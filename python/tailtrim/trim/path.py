"""From the baseline to all that is kept, one change more at each step: runs for a figure.

Nothing is decided by them. What is kept is measured with the baseline in the confirmation; here the
steps in between are, which no other phase tries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.trim.spending import FEWEST
from tailtrim.trim.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.trim.course import Course, Steps
    from tailtrim.trim.verdict import Found

PHASE = "path"


def steps(found: Sequence[Found]) -> list[frozenset[str]]:
    """Return the sets from no change to all that are kept; what brings most comes first."""
    kept = [one for one in found if one.verdict is Verdict.KEPT]
    kept.sort(key=lambda one: one.gain.share if one.gain else 0.0, reverse=True)
    return [frozenset(one.name for one in kept[:count]) for count in range(len(kept) + 1)]


def measure(course: Course, found: Sequence[Found]) -> Steps[None]:
    """Try each step in between as often as a test needs at least, if the budget allows it."""
    between = steps(found)[1:-1]
    for _ in range(FEWEST):
        if not between or not course.affords(len(between)):
            return
        yield from course.block(PHASE, between)
