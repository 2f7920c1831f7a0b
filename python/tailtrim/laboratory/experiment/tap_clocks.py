"""The clocks of a run's taps: which ones, how fine, and how far apart two of them may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim import units
from tailtrim.laboratory.nodes.clocks import BY_NIC, Difference, Discipline, difference, discipline
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.results import Summary

REALTIME, OF_A_NIC, _BY_KERNEL = "CLOCK_REALTIME", "the NIC's", "kernel"
#: The ports of the taps, and their columns in the samples.
_STAMPS = {"ingress": ("tap_in", "ingress_ns"), "egress": ("tap_out", "egress_ns")}


class TapClocks:
    """Observation of the taps' clocks during a run, if the taps are on two nodes.

    Args:
        at: the run's testbed.

    Raises:
        RunError: a node cannot be reached.

    """

    def __init__(self, at: Forwarding) -> None:
        """Ask both nodes, before the run."""
        self.nodes: list[Node] = list(dict.fromkeys(port.node for port in (at.tap_in, at.tap_out)))
        self._names = [node.host_name for node in self.nodes]
        self._before = self._after = self._asked()
        two = len(self.nodes) > 1
        #: Source of stamps: the best one on one node, one with a known error bound on two.
        self.stamps = "best"
        if two:
            by_nic = difference(self._before[0], self._before[1], BY_NIC).ns is not None
            self.stamps = BY_NIC if by_nic else _BY_KERNEL

    def ended(self) -> None:
        """Ask again, after the run."""
        self._after = self._asked()

    def apart(self) -> Difference | None:
        """Return how far the clocks were apart at most; ``None`` with one clock."""
        if len(self.nodes) == 1:
            return None
        asked = (self._before, self._after)
        found = [difference(one, other, self.stamps) for one, other in asked]
        unknown = next((one for one in found if one.ns is None), None)
        return unknown or max(found, key=lambda one: one.ns or 0)

    def doubts(self, summary: Summary) -> list[str]:
        """Return why the latency is not measurable with these clocks, if so."""
        apart = self.apart()
        if apart is None:
            return []
        told = f"latency is not measurable: the taps are on {' and '.join(self._names)}"
        if apart.ns is None:
            return [f"{told}, and how far their clocks are apart is not known: {apart.why}"]
        median = next((q.value for q in summary.latency_ns.quantiles if q.p == "0.5"), None)
        if median is not None and abs(median) <= apart.ns:
            # Not even its sign is known then.
            bound = f"their clocks may be {units.time(apart.ns)} apart ({apart.why})"
            return [f"{told}, {bound}, and the median is {units.time(median)}"]
        return []

    def record(self) -> dict[str, Any]:
        """Return what the record of a run says of them."""
        apart = self.apart()
        if apart is None:
            return {"clocks": 1, "bound_ns": 0, "why": "both taps have one clock"}
        return {
            "clocks": 2,
            "bound_ns": apart.ns,
            "why": apart.why,
            "not_known": "how the bound is shared out between offset and asymmetry of the ways",
            "before": self._told(self._before),
            "after": self._told(self._after),
        }

    def _asked(self) -> list[Discipline]:
        return [discipline(node) for node in self.nodes] if len(self.nodes) > 1 else []

    def _told(self, asked: list[Discipline]) -> dict[str, Any]:
        return {name: one.as_json() for name, one in zip(self._names, asked, strict=True)}


def taps(
    at: Forwarding, ports: dict[str, dict[str, str]], capture: dict[str, Any], result: Path
) -> dict[str, Any]:
    """Return which clock stamped at each tap, by whom, and how fine its stamps are.

    Args:
        at: the run's testbed.
        ports: facts on its ports.
        capture: counters of the taps.
        result: the run directory.

    """
    run = RunDirectory(result)
    # A run of hours keeps none.
    samples = run.table("sample") if "sample" in run.tables else None
    found: dict[str, Any] = {}
    for name, (place, column) in _STAMPS.items():
        port: Port = getattr(at, place)
        known = ports.get(place, {})
        stamps = () if samples is None else samples.column(column).to_numpy()
        stamped_by = str(capture["taps"][name]["stamps"])
        found[name] = {
            "node": port.node.host_name,
            "interface": port.name,
            "stamped_by": stamped_by,
            "clock": clock_of_stamps(stamped_by, known),
            **{key: known[key] for key in ("driver", "bus_info") if key in known},
            # All stamps are so many ns apart, or a multiple.
            "step_ns": int(np.gcd.reduce(np.diff(stamps))) if len(stamps) > 1 else None,
        }
    return found


def clock_of_stamps(stamped_by: str, port: dict[str, str]) -> str:
    """Return the clock of a tap, from the source of its stamps and the facts on its port."""
    return REALTIME if stamped_by != BY_NIC else port.get("hardware_clock", OF_A_NIC)
