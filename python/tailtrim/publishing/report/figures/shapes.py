"""Shapes of a drawing: in points (1/72 inch) from the upper left corner, painted in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.report.inputs.run_tables import Floats

#: Family of all text; where DejaVu is not installed, an SVG falls back to another one.
FAMILY = "DejaVu Sans"


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Path:
    """Lines through points, each of ``parts`` an array of shape (n, 2).

    ``dash`` is on and off in points. ``round`` ends make a part of a single point a dot.
    """

    parts: Sequence[Floats]
    stroke: str = ""
    width: float = 0.0
    dash: tuple[float, ...] = ()
    fill: str = ""
    opacity: float = 1.0
    round: bool = False
    clip: Box | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text with its base line at a point.

    ``halo`` keeps it readable where lines cross; ``upright`` text reads from below.
    """

    x: float
    y: float
    text: str
    size: float
    anchor: Literal["start", "middle", "end"] = "start"
    halo: bool = False
    upright: bool = False


Shape: TypeAlias = Path | Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing with its size."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


# Characters that are narrower or wider than most, and widths in shares of the size.
_NARROW, _WIDE = frozenset(" ',.:;/|\\!()[]{}fijlrtIJ-"), frozenset("mwMW%@+<=>#&")
_WIDTHS = 0.39, 0.65, 0.98


def text_width(text: str, size: float) -> float:
    """Return the width of a text, or a little more."""
    narrow, usual, wide = _WIDTHS
    shares = (narrow if c in _NARROW else wide if c in _WIDE else usual for c in text)
    return size * sum(shares)
