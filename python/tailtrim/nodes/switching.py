"""The power of a testbed's nodes: read, and switched where the testbed file allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import HostError, PlanError
from tailtrim.nodes.ssh.connection import Connection
from tailtrim.nodes.ssh.session import remove_reservation

if TYPE_CHECKING:
    from tailtrim.nodes.power import Power
    from tailtrim.nodes.testbed_file import TestbedDescription

#: A node that does not answer within this time is not used by others.
_ANSWER_S = 15.0


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
    try:
        connection = Connection(node, description.nodes[node].ssh, ready_s=_ANSWER_S)
    except HostError:
        # That it cannot be reached is a reason to switch its power.
        return power
    with connection:
        remove_reservation(connection)
    return power
