"""Differences that the runs of a plan can show, before any is done: :func:`told`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.laboratory.plan.run_order import LEAST_BOOTS
from tailtrim.verdict import fewest_runs, shown_from

if TYPE_CHECKING:
    from tailtrim.laboratory.plan.model import Plan

#: Spread of runs for which a difference is told. That of a device is known after its runs only.
_SPREAD = 0.1


def told(plan: Plan) -> str | None:
    """Say which differences the values of a plan could show; ``None`` if none are compared."""
    if plan.boots_node:
        key, runs, each, least = "boots", plan.boots, "boots a kernel and boot line", LEAST_BOOTS
    elif plan.factors:
        key, runs, each, least = "repeat", plan.repeat, "runs a value", 2
    else:
        return None
    fewest = fewest_runs()
    if runs < least:
        return (
            f"{key}: {runs} is too few to show how {each.split()[0]} of one kind differ, expected"
            f" {fewest} or more"
        )
    shown = f"{100 * shown_from(runs, _SPREAD):.0f} %"
    text = (
        f"{runs} {each}: if they differ by {100 * _SPREAD:.0f} % among themselves, a difference of"
        f" {shown} or more is shown in four of five cases"
    )
    if runs < fewest:
        return f'{text}; "no difference" cannot be, of fewer than {fewest} ({key}: {fewest})'
    return f"{text}, and smaller ones are none beyond what is told, or not decided"
