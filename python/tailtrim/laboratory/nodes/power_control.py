"""The power of a testbed's nodes: switched for users, and cycled for hosts that die."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, PlanError, TailtrimError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.nodes.power import Power
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription

_POLL_S = 1.0


def power_of(description: TestbedDescription, node: str) -> Power:
    """Return what switches the power of a node.

    Raises:
        PlanError: the testbed file lacks the node, or its power.

    """
    entry = description.nodes.get(node)
    if entry is None:
        raise PlanError(f"unknown node {node!r}, expected one of {', '.join(description.nodes)}")
    if entry.power is None:
        raise PlanError(f"node {node} has no power: in the testbed file, add nodes.{node}.power")
    return entry.power


def switchable(description: TestbedDescription, node: str) -> Power:
    """Return the same for a node that may be switched off now.

    Raises:
        HostError: others have reserved it.
        PlanError: as of :func:`power_of`, or the testbed file does not allow it.

    """
    power = power_of(description, node)
    refused = description.forbids(node, "reboot")
    if refused:
        raise PlanError(*refused)
    # That it cannot be reached is a reason to switch its power.
    if description.nodes[node].answers(node):
        description.nodes[node].free(node)
    return power


class PowerRecovery:
    """Dead hosts are brought back by their power, each once, where that is allowed."""

    def __init__(self) -> None:
        """Nothing was done yet."""
        self._cycled: set[str] = set()

    def recover(self, node: str, entry: NodeEntry, told: Callable[[str], None]) -> str:
        """Bring a dead host back by its power, once, and say how.

        Raises:
            HostError: it may not be, was before, or does not come back; says so.

        """
        why = _not_allowed(node, entry) or (
            "its power was cycled before" if node in self._cycled else None
        )
        power = entry.cycled_by
        if why or power is None:
            raise HostError(f"node {node} died and is left out: {why}")
        self._cycled.add(node)
        told(f"{node} died: switching its power off and on")
        try:
            power.cycle()
            took_s = _until_reached(node, entry)
        except TailtrimError as error:
            message = f"node {node} died and is left out: its power was cycled once: {error}"
            raise HostError(message) from error
        return f"node {node} died; its power was cycled, and it was back {took_s:.0f} s later"


def _not_allowed(node: str, entry: NodeEntry) -> str | None:
    missing = [] if entry.power is not None else [f"nodes.{node}.power"]
    missing += [] if "reboot" in entry.may else [f"reboot in nodes.{node}.may"]
    added = " and ".join(missing)
    return (
        f"its power may not be cycled, which takes {added} in the testbed file" if added else None
    )


def _until_reached(node: str, entry: NodeEntry) -> float:
    began_s = time.monotonic()
    while not entry.answers(node):
        if time.monotonic() - began_s > entry.boot_s:
            raise HostError(f"not reached by SSH within {entry.boot_s:g} s (boot_s)")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s
