"""``tailtrim testbed power``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tailtrim.cli.console import say

if TYPE_CHECKING:
    from tailtrim.nodes.description import TestbedDescription

_EXPECTED = "expected NODE and state, on, off, cycle, next pxe or next disk"


def switch(description: TestbedDescription, words: list[str], *, hard: bool) -> None:
    """Do to a node what the words say, and print its state.

    Raises:
        HostError: it cannot be done, or others have reserved the node.
        PlanError: the testbed file does not allow it, or does not know the node.
        typer.BadParameter: that is not understood.

    """
    from tailtrim.nodes.switching import power_of, switchable  # noqa: PLC0415 - for the help

    if hard and words[1:] != ["off"]:
        raise typer.BadParameter("--hard belongs to off")
    match words:
        case [node, "state"]:
            say(f"{node} is {power_of(description, node).state()}")
        case [node, "on"]:
            power_of(description, node).on()
            say(f"{node} is on")
        case [node, "off"]:
            switchable(description, node).off(hard=hard)
            say(f"{node} is off")
        case [node, "cycle"]:
            switchable(description, node).cycle()
            say(f"{node} was off and is on")
        case [node, "next", ("pxe" | "disk") as source]:
            switchable(description, node).boot_next(source)
            say(f"{node} boots from {source} the next time")
        case _:
            told = f", not {' '.join(words)!r}" if words else ""
            raise typer.BadParameter(f"{_EXPECTED}{told}")
