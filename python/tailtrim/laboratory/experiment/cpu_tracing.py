"""Recording of the device's CPUs during a run: a trace, or counters by minute.

Of a run of hours, the trace around the worst packets is kept: its last seconds are in memory.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.results import EVENTS
from tailtrim.results.layout import AROUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.devices.running_device import RunningDevice
    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: A packet is matched within 5 s and told of within 1 s; the tap behind the device may be 2 s late.
#: Half a second before the packet is wanted, and one more to know who had the CPU then.
_LAST = "30s"
#: Time limit for writing the last traces. One takes half a second.
_END_S = 60.0
#: Fields of a packet that are sent to the agent.
_TOLD = ("ingress_ns", "from_ns", "until_ns")


class CpuRecording:
    """A trace if the run is traced; of a run by minute counters, and the trace of the last seconds.

    A context manager: entering it returns when everything records, leaving it ends that.

    Raises:
        HostError: the node cannot do it.
        RunError: it did not begin.

    """

    def __init__(self, context: InlineRunContext, device: RunningDevice) -> None:
        """Set everything up, on the device's node."""
        at, dut, run, by_minute = context.at, context.dut, context.run, context.by_minute
        self._trace: Agent | None = None
        self._counters: Agent | None = None
        self._worst: WorstPacketTrace | None = None
        with ExitStack() as stack:
            if run.traced:
                at.stand_off()
            if by_minute is not None:
                counting = Agent(at.dut.outside, *by_minute.counting(dut.serving(at)))
                self._counters = stack.enter_context(counting)
            if by_minute is not None and run.traced:
                worst = WorstPacketTrace(at, dut.serving(at), _quota(device))
                self._worst = stack.enter_context(worst)
            elif run.traced:
                trace = Agent(at.dut.outside, *tracing(at, dut), *_quota(device), tidies_up=True)
                self._trace = stack.enter_context(trace)
            for one in (self._counters, self._worst, self._trace):
                if one is not None:
                    one.ready()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    def look(self, worst: list[dict[str, Any]]) -> None:
        """Have what happened around these packets kept, of a run by minute.

        Raises:
            RunError: a trace or a counter has ended.

        """
        if self._counters is not None and not self._counters.poll():
            self._counters.finished(1)
            raise RunError("the counters of the device's CPUs ended before the run did")
        if self._worst is not None:
            self._worst.follow(worst)

    def stop(self) -> dict[str, Any] | None:
        """End trace and counters; return what the trace counted, if there was one."""
        if self._counters is not None:
            self._counters.stop()
        return None if self._trace is None else self._trace.stop()

    def end(self, captured: dict[str, Any]) -> None:
        """End the trace of the last seconds once the taps have ended."""
        if self._worst is not None:
            self._worst.end(captured)


class WorstPacketTrace:
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


def tracing(at: Forwarding, dut: InlineDevice) -> list[str]:
    """Return those of the agent that traces the device's CPUs."""
    watched = ",".join(map(str, dut.serving(at)))
    return ["trace", "--events", "--cpus", watched, "--out", at.dut.path(EVENTS)]


def _quota(device: RunningDevice) -> list[str]:
    """Have the quota of the device's process looked at, if it is one."""
    with suppress(RunError):
        return ["--pid", str(device.pid)]
    return []


def tracing_last(at: Forwarding, cpus: Sequence[int]) -> list[str]:
    """Return those of the agent that traces the last seconds of these CPUs."""
    watched = ",".join(map(str, cpus))
    return ["trace", "--cpus", watched, "--last", _LAST, "--out", at.dut.path(AROUND)]
