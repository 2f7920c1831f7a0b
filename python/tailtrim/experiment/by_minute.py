"""Runs of hours: packets are matched while they come, and what was measured is kept by minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.options import nanoseconds
from tailtrim.errors import HostError
from tailtrim.experiment.matching import TAPS, fetched
from tailtrim.rundir.layout import COUNTERS, MINUTES
from tailtrim.rundir.writing import provenance_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.nodes.node import Node
    from tailtrim.nodes.testbed import Forwarding

_MATCHED = "matched"
_AROUND = "around"
#: The taps of a testbed, in the order of matching.
_PORTS = ("tap_in", "tap_out")


@dataclass(frozen=True, slots=True)
class ByMinute:
    """How the packets of a run are matched on the timestamper."""

    at: Forwarding
    trim_s: float
    quantiles: Sequence[str]

    @property
    def node(self) -> Node:
        """The node of both taps.

        Raises:
            HostError: each tap is on another one.

        """
        one, other = self.at.tap_in.node, self.at.tap_out.node
        if one is not other:
            raise HostError(
                f"by_minute: the taps are on {one.named} and {other.named}, expected one node that"
                " has both, since it matches their packets"
            )
        return one

    @property
    def words(self) -> list[str]:
        """What the agent of the taps is told."""
        correction_ns = 0 if self.at.correction is None else self.at.correction.ns
        words = ["--analyze", self.node.path(_MATCHED), "--by-minute"]
        words += ["--trim", f"{nanoseconds('trim', self.trim_s)}ns"]
        words += ["--correction", str(correction_ns)]
        return [*words, *(part for p in self.quantiles for part in ("--quantile", p))]

    def counting(self, cpus: Sequence[int]) -> list[str]:
        """Return those of the agent that counts what slows CPUs of the device down."""
        watched = ",".join(map(str, cpus))
        return ["counters", "--cpus", watched, "--out", self.at.dut.path(COUNTERS)]

    def fetch(self, capture: dict[str, Any], result: Path) -> dict[str, Any]:
        """Fetch the result; return where packets were matched.

        Args:
            capture: what the agent of the taps told; its ``around`` are the worst packets.
            result: where the run directory is to be.

        Raises:
            RunError: a file is missing, or the connection was lost.

        """
        around = [
            f"{_AROUND}/{one['ingress_ns']}-{tap}.pcap.zst"
            for one in capture["around"]
            for tap in TAPS
        ]
        names = [f"{self.node.host_name}:{getattr(self.at, tap).name}" for tap in _PORTS]
        unknown = [None] * len(names)
        provenance = provenance_of(names, unknown, unknown)
        fetched(self.node, _MATCHED, result, [*MINUTES, *around], provenance)
        by = self.node.run(self.node.agent, "--version").strip()
        return {"matched_on": self.node.host_name, "by": by, "kept": None}
