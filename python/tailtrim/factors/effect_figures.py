"""Figures as in the reflector paper: quartiles and tail of each case; medians over positions."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tailtrim.compare import BETTER, WORSE
from tailtrim.report.figures.palette import LIGHT, MARKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tailtrim.factors.effects import Case, Effects
    from tailtrim.factors.slope import Slope

# As the report's figures: text stays text, and the same data give the same bytes.
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tailtrim",
    "pdf.fonttype": 42,
}
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_COLOURS = {BETTER: LIGHT[2], WORSE: LIGHT[1]}
_NEUTRAL = LIGHT[5]
_WIDTH_IN, _LANE_IN, _AROUND_IN = 7.2, 0.17, 0.9
#: What is free beside the smallest and the largest value, as a factor.
_ROOM = 1.12
_DECADE = 10
#: Of these positions of a rule the figure of all factors has the first and the last only.
_MANY = 4


def render(effects: Effects) -> dict[str, dict[str, bytes]]:
    """Draw the figures there are data for: contents by key and suffix."""
    with mpl.rc_context(_STYLE):
        drawn = {effects.kind: _saved(_cases(effects))}
        if effects.slopes:
            drawn["rules"] = _saved(_rules(effects))
        return drawn


def _saved(canvas: Figure) -> dict[str, bytes]:
    contents = {}
    for suffix, metadata in _METADATA.items():
        file = io.BytesIO()
        canvas.savefig(file, format=suffix, metadata=metadata)
        contents[suffix] = file.getvalue()
    return contents


def _cases(effects: Effects) -> Figure:
    names = _shown(effects)
    height = _LANE_IN * len(names) + _AROUND_IN
    canvas = Figure(figsize=(_WIDTH_IN, height), layout="constrained")
    panels = canvas.subplots(1, len(effects.loops), sharex=True, sharey=True, squeeze=False)[0]
    for axes, loop in zip(panels, effects.loops, strict=True):
        known = {case.name: case for case in effects.of(loop)}
        for lane, name in enumerate(names):
            case = known.get(name)
            if case is not None and case.quantiles_ns is not None:
                _box(axes, lane, case)
            else:
                axes.text(
                    0.02, lane, "skipped", transform=axes.get_yaxis_transform(), va="center",
                    color="#808080",
                )  # fmt: skip
        baseline = known.get(names[0])
        if baseline is not None and baseline.quantiles_ns is not None:
            middle = baseline.quantiles_ns["0.5"] / 1000
            axes.axvline(middle, color="#808080", linewidth=0.6, linestyle=(0, (2, 2)))
        axes.set_title(loop, fontsize=8)
        axes.grid(axis="x", zorder=0)
        axes.tick_params(axis="y", length=0)
    _logarithmic(panels, effects)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    canvas.supxlabel(
        f"{effects.measured} (µs): quartiles, median, to p99 (line), maximum (dot);"
        " orange: median worse than the baseline's, green: better",
        fontsize=7.5,
    )
    return canvas


def _shown(effects: Effects) -> list[str]:
    """Return the lanes: all cases, but of many positions of a rule only the first and the last."""
    cases = list({case.name: case for case in effects.cases}.values())
    ruled: dict[str, list[str]] = {}
    for case in cases:
        kind, colon, _ = case.value.partition(":")
        if colon:
            ruled.setdefault(f"{case.factor} {kind}", []).append(case.name)
    hidden = {name for names in ruled.values() if len(names) > _MANY for name in names[1:-1]}
    return [case.name for case in cases if case.name not in hidden]


def _box(axes: Axes, lane: int, case: Case) -> None:
    at = {p: value / 1000 for p, value in (case.quantiles_ns or {}).items()}
    verdict = case.median.verdict if case.median else ""
    colour = _COLOURS.get(verdict, _NEUTRAL)
    axes.hlines(lane, at["0.75"], at["0.99"], color=colour, linewidth=0.8, zorder=2)
    axes.barh(
        lane, max(at["0.75"] - at["0.25"], 0), left=at["0.25"], height=0.62,
        facecolor=f"{colour}40", edgecolor=colour, linewidth=0.7, zorder=2,
    )  # fmt: skip
    axes.vlines(at["0.5"], lane - 0.31, lane + 0.31, color=colour, linewidth=1.6, zorder=3)
    axes.plot(at["1"], lane, ".", color=colour, markersize=2.5, zorder=3)


def _rules(effects: Effects) -> Figure:
    loops = list(dict.fromkeys(slope.loop for slope in effects.slopes))
    kinds = list(dict.fromkeys(slope.firewall for slope in effects.slopes))
    canvas = Figure(figsize=(_WIDTH_IN, 2.6), layout="constrained")
    panels = canvas.subplots(1, len(loops), sharex=True, sharey=True, squeeze=False)[0]
    for axes, loop in zip(panels, loops, strict=True):
        for slope in (one for one in effects.slopes if one.loop == loop):
            _line(axes, slope, kinds.index(slope.firewall))
        axes.set_title(loop, fontsize=8)
        axes.grid(zorder=0)
        # Lines rise from left to right: there is room below.
        axes.legend(fontsize=7, loc="lower right")
    panels[0].set_ylim(0, 1.08 * _highest(effects))
    canvas.supxlabel("Position of the rule that accepts the probes", fontsize=7.5)
    panels[0].set_ylabel("Median round trip of a run (µs)")
    return canvas


def _line(axes: Axes, slope: Slope, place: int) -> None:
    colour = LIGHT[place % len(LIGHT)]
    x = np.array([one.rule for one in slope.positions], float)
    y = np.array([one.median_ns for one in slope.positions], float) / 1000
    axes.plot(
        x, y, MARKERS[place % len(MARKERS)], color=colour, markersize=3, alpha=0.5, zorder=2,
        markeredgewidth=0,
    )  # fmt: skip
    ends = np.array([0.0, float(x.max())])
    name = f"{slope.firewall}: {slope.ns_per_rule:,.1f} ns a rule"
    fitted = (slope.at_zero_ns + slope.ns_per_rule * ends) / 1000
    axes.plot(ends, fitted, color=colour, linewidth=1, label=name, zorder=3)


def _highest(effects: Effects) -> float:
    positions = (one for slope in effects.slopes for one in slope.positions)
    return max(one.median_ns for one in positions) / 1000


def _logarithmic(panels: Sequence[Axes], effects: Effects) -> None:
    """Give all panels the same axis, on which everything is that they show."""
    known = [case.quantiles_ns for case in effects.cases if case.quantiles_ns is not None]
    low = min((min(at.values()) for at in known), default=1_000) / 1000
    high = max((max(at.values()) for at in known), default=1_000_000) / 1000
    low = max(low, 0.001)
    subs = (1.0, 2.0, 5.0) if high / low > _DECADE else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    for axes in panels:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", labelrotation=45, labelsize=6.5)
    panels[0].set_xlim(low / _ROOM, high * _ROOM)
