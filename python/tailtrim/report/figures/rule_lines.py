"""Lines across a panel: where nothing differs, and the limits of objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tailtrim.report.figures.figure import Panel

# The line of a limit; rules.js has the same.
_LIMIT: Any = (0, (4, 3))


def draw_rules(axes: Axes, panel: Panel) -> None:
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
