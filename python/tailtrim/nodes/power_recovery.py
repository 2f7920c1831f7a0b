"""Hosts that die during an experiment: their power is cycled once, where that is allowed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, TailtrimError
from tailtrim.nodes.ssh.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.nodes.testbed_file import NodeEntry

#: A host that lives answers within this time.
_ANSWER_S = 15.0
_POLL_S = 1.0


class Revival:
    """What was done to bring hosts back."""

    def __init__(self) -> None:
        """Nothing was done yet."""
        self._cycled: set[str] = set()

    def revived(self, node: str, entry: NodeEntry, told: Callable[[str], None]) -> str:
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


def dead(node: str, entry: NodeEntry) -> bool:
    """Whether a host cannot be reached now."""
    try:
        Connection(node, entry.ssh, ready_s=_ANSWER_S).close()
    except HostError:
        return True
    return False


def _not_allowed(node: str, entry: NodeEntry) -> str | None:
    missing = [] if entry.power is not None else [f"nodes.{node}.power"]
    missing += [] if "reboot" in entry.may else [f"reboot in nodes.{node}.may"]
    added = " and ".join(missing)
    return (
        f"its power may not be cycled, which takes {added} in the testbed file" if added else None
    )


def _until_reached(node: str, entry: NodeEntry) -> float:
    began_s = time.monotonic()
    while dead(node, entry):
        if time.monotonic() - began_s > entry.boot_s:
            raise HostError(f"not reached by SSH within {entry.boot_s:g} s (boot_s)")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s
