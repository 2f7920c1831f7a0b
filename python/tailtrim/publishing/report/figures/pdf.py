"""Write a drawing as PDF by matplotlib, with its font; the same bytes for the same drawing."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke
from matplotlib.text import Text as Line
from matplotlib.transforms import Affine2D, IdentityTransform

from tailtrim.publishing.report.figures.shapes import FAMILY, Path, Text

if TYPE_CHECKING:
    from matplotlib.artist import Artist

    from tailtrim.publishing.report.figures.shapes import Drawing

# Fonts as TrueType, which publishers ask for.
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": [FAMILY],
    "path.simplify": False,
    "pdf.fonttype": 42,
    "pdf.compression": 9,
}
#: Of an inch: what a PDF counts in.
_POINT = 72
_ANCHORS: dict[str, Literal["left", "center", "right"]] = {
    "start": "left",
    "middle": "center",
    "end": "right",
}


def pdf(drawing: Drawing) -> bytes:
    """Return the file."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that the font lacks shows boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas = Figure(figsize=(drawing.width / _POINT, drawing.height / _POINT), dpi=_POINT)
        from_below = Affine2D().scale(1, -1).translate(0, drawing.height)
        for order, shape in enumerate(drawing.shapes):
            if isinstance(shape, Text):
                artist = _text(shape, drawing.height)
            else:
                artist = _path(shape, from_below)
            artist.set_zorder(order)
            canvas.add_artist(artist, clip=False)
        file = io.BytesIO()
        canvas.savefig(file, format="pdf", metadata={"CreationDate": None}, dpi=_POINT)
    return file.getvalue()


def _path(path: Path, from_below: Affine2D) -> Artist:
    # A part of a single point is a line to itself: with round ends, a dot.
    parts = [part if len(part) > 1 else np.repeat(part, 2, axis=0) for part in path.parts]
    codes = [[Outline.MOVETO, *[Outline.LINETO] * (len(part) - 1)] for part in parts]
    points = np.concatenate(parts) if parts else np.empty((0, 2))
    patch = PathPatch(
        Outline(points, np.concatenate(codes) if codes else None),
        facecolor=path.fill or "none",
        edgecolor=path.stroke or "none",
        linewidth=path.width,
        linestyle=(0, path.dash) if path.dash else "solid",
        alpha=path.opacity,
        capstyle="round" if path.round else "butt",
        joinstyle="miter",
        transform=from_below,
    )
    if path.clip is not None:
        left, top, right, bottom = path.clip
        frame = Rectangle((left, top), right - left, bottom - top, transform=from_below)
        patch.set_clip_path(frame)
    return patch


def _text(text: Text, height: float) -> Artist:
    line = Line(
        text.x,
        height - text.y,
        text.text,
        fontsize=text.size,
        horizontalalignment=_ANCHORS[text.anchor],
        verticalalignment="baseline",
        rotation=90 if text.upright else 0,
        rotation_mode="anchor",
        parse_math=False,
        transform=IdentityTransform(),
    )
    if text.halo:
        line.set_path_effects([withStroke(linewidth=2, foreground="white", alpha=0.8)])
    return line
