"""On which node, kernel, boot line and clock each number of a run was taken: ``nodes.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.experiment.tap_clocks import REALTIME, clock_of_stamps
from tailtrim.nodes.environment import environment, port

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailtrim.nodes.node import Node
    from tailtrim.nodes.testbed import Forwarding, Reflection

SCHEMA = "tailtrim.nodes/1"
_MONOTONIC = "CLOCK_MONOTONIC"


class Where:
    """The nodes of a run as they are when it begins.

    Args:
        at: the run's testbed.
        guest: what is known of the guest that has the device, if there is one.
        before: the nodes of an earlier run of the same boot: a guest is asked once, since it takes
            long where its CPU is emulated.

    Raises:
        RunError: a node does not say how it is set up.

    """

    def __init__(
        self,
        at: Forwarding | Reflection,
        guest: dict[str, Any] | None = None,
        before: Where | None = None,
    ) -> None:
        """Ask the nodes."""
        self._guest = guest
        self._roles = {role: node.host_name for role, node in at.nodes.items()}
        own = at.nodes["dut"].host_name if guest is not None else None
        #: What the ports are, by what they are for.
        self.ports: dict[str, dict[str, str]] = {
            role: before.ports[role]
            if before is not None and one.node.host_name == own
            else port(one)
            for role, one in at.ports.items()
        }
        nodes = [node for node in at.nodes.values() if node.host_name != own]
        #: How each node is set up that outlives a boot, by its name.
        self.environment = _environments(nodes)
        self._booted: dict[str, dict[str, str]] = {}
        if guest is not None:
            known = before._booted if before is not None else None  # noqa: SLF001 - of this class
            self._booted = known or _environments([at.nodes["dut"]])

    def record(self, capture: dict[str, Any] | None) -> dict[str, Any]:
        """Return what ``nodes.json`` holds.

        Args:
            capture: what the taps counted; ``None`` with round trips.

        """
        return {
            "schema": SCHEMA,
            "nodes": self.environment | self._booted,
            "roles": self._roles,
            "ports": self.ports,
            "numbers": self._round_trips() if capture is None else self._passing(capture),
            **({} if self._guest is None else {"guest": self._guest}),
        }

    def _passing(self, capture: dict[str, Any]) -> dict[str, Any]:
        taps = {"ingress": "tap_in", "egress": "tap_out"}
        clocks = {
            name: clock_of_stamps(str(tap["stamps"]), self.ports.get(taps.get(name, ""), {}))
            for name, tap in capture["taps"].items()
        }
        return {
            "summary": {"node": self._roles["timestamper"], "clocks": clocks},
            "capture": {"node": self._roles["timestamper"], "clocks": clocks},
            "generator": {"node": self._roles["loadgen"], "clocks": {"departures": _MONOTONIC}},
            "device": {"node": self._roles["dut"], "clocks": {}},
            "trace": {"node": self._roles["dut"], "clocks": {"events": REALTIME}},
        }

    def _round_trips(self) -> dict[str, Any]:
        client = {"node": self._roles["client"], "clocks": {"round trips": REALTIME}}
        return {
            "summary": client,
            "generator": client,
            "device": {"node": self._roles["reflector"], "clocks": {}},
        }


def _environments(nodes: Iterable[Node]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        if node.host_name not in found:
            found[node.host_name] = environment(node)
    return found
