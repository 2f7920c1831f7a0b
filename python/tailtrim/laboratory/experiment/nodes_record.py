"""On which node, kernel, boot line and clock each number of a run was taken: ``nodes.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.experiment.tap_clocks import REALTIME, clock_of_stamps
from tailtrim.laboratory.nodes.environment import environment, port

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.testbed import Forwarding, Reflection

SCHEMA = "tailtrim.nodes/1"
_MONOTONIC = "CLOCK_MONOTONIC"


class NodesRecord:
    """The nodes of a run as they are when it begins.

    Args:
        at: the run's testbed.
        boot: how the device's node was booted for this run, if it was.
        before: the nodes of an earlier run of the same boot: a booted node is asked only once.
        apart: the name of a node that boots during the experiment: how it is set up differs.

    Raises:
        RunError: a node does not say how it is set up.

    """

    def __init__(
        self,
        at: Forwarding | Reflection,
        *,
        boot: dict[str, Any] | None = None,
        before: NodesRecord | None = None,
        apart: str | None = None,
    ) -> None:
        """Ask the nodes."""
        self._boot = boot
        self._roles = {role: node.host_name for role, node in at.nodes.items()}
        #: Facts of each port, by its role.
        self.ports: dict[str, dict[str, str]] = {
            role: before.ports[role]
            if before is not None and one.node.host_name == apart
            else port(one)
            for role, one in at.ports.items()
        }
        nodes = {node.host_name: node for node in at.nodes.values()}
        self._nodes = dict(nodes)
        booted = [nodes.pop(apart)] if apart in nodes else []
        #: Settings of each node that outlives a boot, by its name.
        self.environment = _environments(nodes.values())
        #: Likewise of the node that boots.
        self.booted: dict[str, dict[str, str]] = (
            before.booted if before is not None else _environments(booted)
        )

    @property
    def told(self) -> list[tuple[Node, dict[str, str]]]:
        """The nodes, each with how it is set up."""
        known = self.environment | self.booted
        return [(node, known[name]) for name, node in self._nodes.items() if name in known]

    def record(self, capture: dict[str, Any] | None) -> dict[str, Any]:
        """Return what ``nodes.json`` holds.

        Args:
            capture: counters of the taps; ``None`` with round trips.

        """
        return {
            "schema": SCHEMA,
            "nodes": self.environment | self.booted,
            "roles": self._roles,
            "ports": self.ports,
            "numbers": self._round_trips() if capture is None else self._passing(capture),
            **({} if self._boot is None else {"boot": self._boot}),
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
    return {node.host_name: environment(node) for node in nodes}
