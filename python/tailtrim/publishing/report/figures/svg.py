"""Write a drawing as SVG, the same bytes for the same drawing."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.publishing.report.figures.shapes import FAMILY, Path, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.publishing.report.figures.shapes import Box, Drawing

_HALO = 'stroke="#fff" stroke-width="2" stroke-opacity="0.8" paint-order="stroke"'


def svg(drawing: Drawing, title: str) -> bytes:
    """Return the file. Text stays text: it can be searched, and edited."""
    width, height = _number(drawing.width), _number(drawing.height)
    boxes: dict[Box, str] = {}
    body = [line for shape in drawing.shapes for line in _shape(shape, boxes)]
    clips = [
        f'<clipPath id="{name}"><rect x="{_number(box.left)}" y="{_number(box.top)}"'
        f' width="{_number(box.right - box.left)}" height="{_number(box.bottom - box.top)}"/>'
        "</clipPath>"
        for box, name in boxes.items()
    ]
    size = f'width="{width}pt" height="{height}pt" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FAMILY}, sans-serif">',
        f"<title>{escape(title)}</title>",
        f"<defs>{''.join(clips)}</defs>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *body,
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _shape(shape: Path | Text, boxes: dict[Box, str]) -> Iterator[str]:
    if isinstance(shape, Text):
        yield _text(shape)
        return
    if not shape.parts:
        return
    # In hundredths of a point. All parts at once: a cloud has thousands, each a point.
    places = np.rint(np.concatenate(shape.parts) * 100).astype(np.int64).tolist()
    ends = itertools.accumulate(map(len, shape.parts))
    parts = (places[end - len(part) : end] for part, end in zip(shape.parts, ends, strict=True))
    data = "".join(map(_part, parts))
    words = [f'<path d="{data}"', f'fill="{shape.fill or "none"}"']
    if shape.stroke:
        words.append(f'stroke="{shape.stroke}" stroke-width="{_number(shape.width)}"')
    if shape.dash:
        words.append(f'stroke-dasharray="{" ".join(map(_number, shape.dash))}"')
    if shape.round:
        words.append('stroke-linecap="round"')
    if shape.opacity < 1:
        words.append(f'opacity="{shape.opacity:.3g}"')
    if shape.clip is not None:
        name = boxes.setdefault(shape.clip, f"panel-{len(boxes)}")
        words.append(f'clip-path="url(#{name})"')
    yield " ".join(words) + "/>"


def _part(places: list[list[int]]) -> str:
    """Return a line through places, in hundredths of a point; back at its begin it is closed."""
    # The first one absolute, then differences: shorter, and errors do not add up.
    (x, y), last = places[0], places[-1]
    begin = f"M{_hundredths(x)} {_hundredths(y)}"
    steps = []
    for to_x, to_y in places:
        if (to_x, to_y) != (x, y):
            steps.append(_step(to_x - x, to_y - y))
            x, y = to_x, to_y
    if not steps:
        return f"{begin}h0"
    closed = len(places) > 2 and places[0] == last  # noqa: PLR2004 - a triangle
    return begin + "".join(steps[:-1] if closed else steps) + "z" * closed


def _step(x: int, y: int) -> str:
    if y == 0:
        return f"h{_hundredths(x)}"
    if x == 0:
        return f"v{_hundredths(y)}"
    return f"l{_hundredths(x)} {_hundredths(y)}"


def _hundredths(value: int) -> str:
    whole, rest = divmod(abs(value), 100)
    text = f"{whole}.{rest:02d}".rstrip("0").rstrip(".") if rest else str(whole)
    return f"-{text}" if value < 0 else text


def _number(value: float) -> str:
    return _hundredths(round(value * 100))


def _text(text: Text) -> str:
    x, y = _number(text.x), _number(text.y)
    words = [f'<text x="{x}" y="{y}" font-size="{_number(text.size)}"']
    if text.anchor != "start":
        words.append(f'text-anchor="{text.anchor}"')
    if text.upright:
        words.append(f'transform="rotate(-90 {x} {y})"')
    if text.halo:
        words.append(_HALO)
    # A control character is not allowed in XML.
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.text)
    return " ".join(words) + f">{escape(shown)}</text>"
