"""Figures for papers: SVG and PDF by matplotlib, the same bytes for the same input."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tailtrim.publishing.report.figures.figure import MOST_BANDS, Line
from tailtrim.publishing.report.figures.looks import dash, distinct
from tailtrim.publishing.report.figures.values import csv
from tailtrim.publishing.report.write_files import FIGURES
from tailtrim.units import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Ticked

    from tailtrim.publishing.report.figures.figure import Axis, Band, Bars, Figure, Interval, Panel
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.inputs.run_tables import Flags, Floats

# Text stays text: it can be searched, and edited in an SVG; PDFs carry their fonts as TrueType,
# which publishers ask for. The salt makes ids in SVG a function of the content.
_STYLE: dict[Any, Any] = {
    # By its generic name, so that an SVG falls back to sans-serif where DejaVu is not installed.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "lines.solid_capstyle": "butt",
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tailtrim",
    "pdf.fonttype": 42,
    "pdf.compression": 9,
}
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_WIDTH_IN = 6.0
_HEIGHT_IN = {1: 3.3, 2: 4.0, 3: 5.2, 4: 6.4}
# Of one of more panels, of a lane where all panels have them, and of what is around those.
_PANEL_IN, _LANE_IN, _AROUND_LANES_IN = 1.6, 0.17, 0.5
# A decade or two have room for labels at 1, 2 and 5.
_FEW_DECADES = 2.6
_MANY_POINTS, _FEW_POINTS = 2_000, 50
# Height of a row of the legend, and the rows for which the figure has room.
_KEY_IN, _FEW_KEYS, _COLUMNS = 0.17, 3, 2
# Translucent, so that bands of several runs show through each other.
_BAND_ALPHA = 0.2
# Length over which a band without a bound fades, as a share of the axis; intervals.js has the same.
_FADE = 0.12
_FADE_STEPS = 12
# Resolution of clouds of points, which an SVG has as pixels: sharp in print.
_DOTS_PER_INCH = 300
_CLOUD = "cloud"
# The line of a limit; rules.js has the same.
_LIMIT: Any = (0, (4, 3))
# Share of its lane that a bar fills; lanes.js has the same.
_BAR = 0.64
_MANY_BARS = 200
# Dots across a figure, about; lanes.js has the same transparency for what is shorter than one.
_DOTS = 1_000
_SHORT_ALPHA = 0.4


def files(
    figures: Sequence[Figure],
    formats: Sequence[str],
    names: Sequence[str] = (),
    looks: Sequence[Look] | None = None,
) -> dict[str, bytes]:
    """Return the files of figures and of their values, by their paths in the folder of a report."""
    contents: dict[str, bytes] = {}
    for figure in figures:
        of = render(figure, names, looks, formats=formats) if formats else {}
        of["csv"] = csv(figure, names)
        contents |= {f"{FIGURES}/{figure.key}.{suffix}": data for suffix, data in of.items()}
    return contents


def render(
    figure: Figure,
    names: Sequence[str],
    looks: Sequence[Look] | None = None,
    *,
    formats: Sequence[str] = ("svg",),
) -> dict[str, bytes]:
    """Draw a figure; return the files' contents by their format: ``svg``, ``pdf``.

    ``names`` and ``looks`` are those of the runs; a figure may have its own.
    """
    names = figure.names or names
    looks = figure.looks or (looks if looks and not figure.names else distinct(len(names)))
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that the font lacks shows boxes in a PDF; the SVG keeps the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas = _draw(figure, names, looks)
        contents = {}
        for suffix in formats:
            # A PDF needs 16 bytes a point, an SVG 110: there clouds are pixels.
            for cloud in canvas.findobj(_is_cloud):
                cloud.set_rasterized(suffix == "svg")
            file = io.BytesIO()
            canvas.savefig(file, format=suffix, metadata=_METADATA[suffix], dpi=_DOTS_PER_INCH)
            contents[suffix] = file.getvalue()
            # The second format keeps the layout that was found for the first.
            canvas.set_layout_engine("none")
    return contents


def _draw(figure: Figure, names: Sequence[str], looks: Sequence[Look]) -> Canvas:
    rows = len(figure.panels)
    height_in = _height_in([len(panel.y.names) for panel in figure.panels])
    entries = len(figure.used)
    keys_in = _KEY_IN * max(-(-entries // _COLUMNS) - _FEW_KEYS, 0)
    canvas = Canvas(figsize=(_WIDTH_IN, height_in + keys_in), layout="constrained")
    grid: list[Axes] = list(canvas.subplots(rows, sharex=True, squeeze=False)[:, 0])
    for axes, panel in zip(grid, figure.panels, strict=True):
        axes.set_axisbelow(True)
        axes.grid(visible=True)
        _rules(axes, panel)
        for band in panel.bands if len(panel.bands) <= MOST_BANDS else ():
            _band(axes, band, panel.y, looks[band.run])
        for line in panel.lines:
            _line(axes, line, panel.y, looks[line.run])
        for interval in panel.intervals:
            _interval(axes, interval, panel.y, looks[interval.run])
        for bars in panel.bars:
            _bars(axes, bars, panel.x, looks[bars.run])
        axes.set_yscale(_scale(panel.y))
        _ticks(axes.yaxis, panel.y)
        axes.set_ylim(panel.y.low, panel.y.high)
        axes.set_ylabel(panel.y.label)
        if panel.title:
            axes.set_title(panel.title, loc="left", fontsize=8.5, pad=3)
    x = figure.panels[-1].x
    grid[-1].set_xscale(_scale(x))
    _ticks(grid[-1].xaxis, x)
    grid[-1].set_xlim(x.low, x.high)
    grid[-1].set_xlabel(x.label)
    canvas.align_ylabels()
    _legend(canvas, figure, names, looks)
    return canvas


def _height_in(lanes: Sequence[int]) -> float:
    """Return the height of panels, each with so many lanes."""
    if all(lanes):
        return _AROUND_LANES_IN * (1 + len(lanes)) + _LANE_IN * sum(lanes)
    return _HEIGHT_IN.get(len(lanes), _PANEL_IN * len(lanes))


def _rules(axes: Axes, panel: Panel) -> None:
    """Draw the rules and uprights of a panel, beneath its lines."""
    for rule in panel.rules:
        end = panel.x.high if rule.until is None else rule.until
        corner = ([panel.x.low, end], [rule.at, rule.at])
        if rule.until is not None:
            corner = ([*corner[0], end], [*corner[1], panel.y.low])
        style: Any = _LIMIT if rule.label else "solid"
        axes.plot(*corner, color="black", linewidth=0.8, linestyle=style, zorder=1.4)
        _label(axes, rule.label, (panel.x.low, rule.at), (3, 2))
    for rule in panel.uprights:
        axes.axvline(rule.at, color="black", linewidth=0.8, linestyle=_LIMIT, zorder=1.4)
        _label(axes, rule.label, (rule.at, panel.y.high), (3, -8))


def _label(axes: Axes, text: str, at: tuple[float, float], away: tuple[float, float]) -> None:
    if text:
        shown = axes.annotate(
            text, at, xytext=away, textcoords="offset points", fontsize=7, parse_math=False
        )
        shown.set_zorder(5)
        # A halo keeps it readable where lines cross.
        shown.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.6})


def _is_cloud(artist: Artist) -> bool:
    return artist.get_gid() == _CLOUD


def _line(axes: Axes, line: Line, y_axis: Axis, look: Look) -> None:
    colour, marker = look.light, look.marker
    y = np.maximum(line.y, y_axis.low) if y_axis.scale == "log" else line.y
    if line.draw == "points":
        size = 1.6 if line.x.size > _MANY_POINTS else 4.0 if line.x.size < _FEW_POINTS else 2.6
        axes.plot(
            line.x,
            y,
            marker,
            color=colour,
            markersize=size,
            markeredgewidth=0,
            alpha=0.75,
            gid=None if line.x.size < _FEW_POINTS else _CLOUD,
        )
        return
    pattern = dash(look, line.part)
    axes.plot(
        line.x,
        y,
        color=colour,
        alpha=0.55 if line.faded else 1,
        linewidth=1.1,
        dashes=pattern or (None, None),
        drawstyle="steps-post" if line.draw == "steps" else "default",
        marker=marker if line.draw == "line" else "",
        markersize=3,
        markeredgewidth=0,
    )


def _band(axes: Axes, band: Band, y_axis: Axis, look: Look) -> None:
    """Fill the cells; at a side without a bound they fade out from the line on."""
    colour = look.light
    bounded = np.isfinite(band.low), np.isfinite(band.high)
    low = np.where(bounded[0], band.low, band.value[:-1])
    high = np.where(bounded[1], band.high, band.value[1:])

    def fill(cells: Flags, foot: Floats, head: Floats, alpha: float) -> None:
        if cells.any():
            axes.stairs(
                np.where(cells, head, np.nan),
                band.x,
                baseline=np.where(cells, foot, np.nan),
                fill=True,
                color=colour,
                alpha=alpha,
                linewidth=0,
                zorder=1.5,
            )

    fill(bounded[0] | bounded[1], low, high, _BAND_ALPHA)
    # Slab by slab: laid one over the other, their colours would be rounded once too often.
    for step in range(_FADE_STEPS):
        alpha = _BAND_ALPHA * (1 - (step + 0.5) / _FADE_STEPS)
        near, far = (_FADE * n / _FADE_STEPS for n in (step, step + 1))
        above = _shifted(high, near, y_axis), _shifted(high, far, y_axis)
        below = _shifted(low, -far, y_axis), _shifted(low, -near, y_axis)
        fill(bounded[0] & ~bounded[1], *above, alpha)
        fill(bounded[1] & ~bounded[0], *below, alpha)
    for bound in (band.low, band.high):
        axes.stairs(
            bound, band.x, baseline=None, color=colour, alpha=0.55, linewidth=0.4, zorder=1.6
        )


def _shifted(values: Floats, share: float, axis: Axis) -> Floats:
    """Move values up by a share of the axis."""
    if axis.scale == "linear":
        return values + share * (axis.high - axis.low)
    return values * float((axis.high / axis.low) ** share)


def _interval(axes: Axes, interval: Interval, y_axis: Axis, look: Look) -> None:
    """Mark a value, hollow where there is no upper bound, with its bars or an arrow."""
    colour, at, open_above = look.light, (interval.x, interval.value), interval.high is None
    if interval.bars:
        low = y_axis.low if interval.low is None else interval.low
        high = interval.high or interval.value
        ends = [[max(interval.value - low, 0)], [max(high - interval.value, 0)]]
        style: dict[str, Any] = {"ecolor": colour, "elinewidth": 0.9, "capsize": 2.2}
        axes.errorbar(*at, yerr=ends, fmt="none", zorder=4, **style)
    if interval.bars and open_above:
        arrow = {"arrowstyle": "<-", "color": colour, "linewidth": 0.8, "shrinkB": 1}
        place: dict[str, Any] = {"xytext": (0, 15), "textcoords": "offset points"}
        axes.annotate("", at, arrowprops=arrow, annotation_clip=False, **place)
    face = "white" if open_above else colour
    width: dict[str, Any] = {"markersize": 3.6, "markeredgewidth": 0.8, "zorder": 4.5}
    axes.plot(*at, look.marker, color=colour, markerfacecolor=face, **width)


def _bars(axes: Axes, bars: Bars, x: Axis, look: Look) -> None:
    colour = look.light
    long = bars.end - bars.start
    if x.scale == "linear":
        short = long < (x.high - x.low) / _DOTS
    else:
        short = bars.end < bars.start * (x.high / x.low) ** (1 / _DOTS)
    # The edge shows what is shorter than a dot, paler than it would be if it were that long.
    for chosen, alpha in ((short, _SHORT_ALPHA), (~short, 1.0)):
        if chosen.any():
            axes.broken_barh(
                list(zip(bars.start[chosen], long[chosen], strict=True)),
                (bars.lane - _BAR / 2, _BAR),
                facecolor=colour,
                edgecolor=colour,
                linewidth=0.3,
                alpha=alpha,
                gid=_CLOUD if long.size > _MANY_BARS else None,
            )


def _scale(axis: Axis) -> Literal["linear", "log"]:
    return "linear" if axis.scale == "linear" else "log"


def _ticks(axis: Ticked, model: Axis) -> None:
    if model.names:
        axis.set_major_locator(FixedLocator(range(len(model.names))))
        axis.set_major_formatter(FuncFormatter(lambda value, _: model.names[round(value)]))
        axis.set_tick_params(length=0)
        for label in axis.get_ticklabels():
            label.set_parse_math(False)
        return
    if model.scale == "linear":
        axis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        return
    decades = np.log10(model.high / model.low)
    if model.scale == "nines":
        axis.set_major_locator(FixedLocator([10.0**n for n in range(int(decades) + 1)]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: nines(value)))
    else:
        subs = (1.0, 2.0, 5.0) if decades < _FEW_DECADES else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=20))
    axis.set_minor_formatter(NullFormatter())


def number(value: float) -> str:
    """Return a tick's number, thousands apart."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"  # noqa: PLR2004
    return text.replace("-", "\N{MINUS SIGN}")


def nines(value: float) -> str:
    """Return the percentile at ``1/(1 - p)``, which is a power of ten.

    >>> nines(1000.0)
    '99.9 %'

    """
    digits = round(np.log10(value))
    return f"{percent('0.' + '9' * digits) if digits else '0'} %"


def _legend(canvas: Canvas, figure: Figure, names: Sequence[str], looks: Sequence[Look]) -> None:
    lines = {line.run: line for panel in reversed(figure.panels) for line in reversed(panel.lines)}
    marked = any(panel.intervals for panel in figure.panels)
    shown = figure.used
    marks = {one.run for panel in figure.panels for one in panel.intervals}
    handles = [
        _key(lines.get(run, _MARK), looks[run], marked=marked)
        if run in lines or run in marks
        else Patch(color=looks[run].light, linewidth=0)
        for run in shown
    ]
    labels = [names[run] for run in shown]
    legend = canvas.legend(
        handles, labels, loc="outside upper left", ncols=_COLUMNS, handlelength=2.8
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


#: A mark that belongs to no line.
_MARK = Line(0, np.empty(0), np.empty(0), draw="points")


def _key(line: Line, look: Look, *, marked: bool) -> Line2D:
    # Before 3.11 matplotlib refuses dashes of a line without a width.
    drawn = line.draw != "points"
    return Line2D(
        [],
        [],
        color=look.light,
        linewidth=1.1 if drawn else 0,
        dashes=(drawn and dash(look, line.part)) or (None, None),
        marker=look.marker if marked or line.draw != "steps" else "",
        markersize=4,
        markeredgewidth=0,
    )
