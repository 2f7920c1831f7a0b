"""The trace around the worst packets of a run of hours: the last seconds are kept in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.results.layout import AROUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.testbed import Forwarding

#: A packet is matched within 5 s and told of within 1 s; the tap behind the device may be 2 s late.
#: Half a second before the packet is wanted, and one more to know who had the CPU then.
_LAST = "30s"
#: Time limit for writing the last traces. One takes half a second.
_END_S = 60.0
#: Fields of a packet that are sent to the agent.
_TOLD = ("ingress_ns", "from_ns", "until_ns")


class Surroundings:
    """Trace of the device's CPUs, written out around the worst packets.

    A context manager: leaving it ends the trace.
    """

    def __init__(self, at: Forwarding, cpus: Sequence[int], words: Sequence[str]) -> None:
        """Set the trace up, on the device's node.

        Args:
            at: where.
            cpus: those that serve the packets.
            words: further arguments of the agent that traces.

        """
        self._agent = Agent(at.dut.outside, *tracing_last(at, cpus), *words, tidies_up=True)
        self._told: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        """Return the trace itself."""
        self._agent.__enter__()
        return self

    def __exit__(self, *told: object) -> None:
        """End the trace."""
        self._agent.__exit__(*told)

    def ready(self) -> None:
        """Wait until it records. The errors are those of :meth:`Agent.ready`."""
        self._agent.ready()

    def follow(self, worst: list[dict[str, Any]]) -> None:
        """Have it write what happened around these packets, and forget others.

        Raises:
            RunError: it has ended.

        """
        if not self._agent.poll():
            self._agent.finished(1)
            raise RunError("the trace of the device's CPUs ended before the run did")
        if worst != self._told:
            self._told = worst
            self._agent.tell(json.dumps([{key: one[key] for key in _TOLD} for one in worst]))

    def end(self, captured: dict[str, Any]) -> None:
        """End it once the taps have ended, and note in ``around`` of theirs what it has written."""
        self.follow(captured["around"])
        written = {one["ingress_ns"]: one for one in self._agent.end_input(_END_S)["around"]}
        for one in captured["around"]:
            trace = written[one["ingress_ns"]]
            one["trace"] = {key: trace[key] for key in ("events", "error_ns", "complete")}


def tracing_last(at: Forwarding, cpus: Sequence[int]) -> list[str]:
    """Return those of the agent that traces the last seconds of these CPUs."""
    watched = ",".join(map(str, cpus))
    return ["trace", "--cpus", watched, "--last", _LAST, "--out", at.dut.path(AROUND)]
