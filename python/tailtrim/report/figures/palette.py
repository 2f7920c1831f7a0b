"""How runs look: told apart by colour, dash and marker, each of which suffices alone.

The colours are those of Okabe and Ito, which people with any colour vision tell apart; on a dark
ground the darker ones are lightened.
"""

from __future__ import annotations

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

# Names of matplotlib's markers; the page draws the same shapes.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def dash(run: int, part: str) -> tuple[float, ...]:
    """Return the dash of a line: by its part where a run has several, else by its run."""
    return PARTS.get(part, ()) if part else DASHES[run % len(DASHES)]
