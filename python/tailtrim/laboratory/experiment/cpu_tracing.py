"""Recording of the device's CPUs during a run: a trace, or counters by minute."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.experiment.worst_packet_trace import Surroundings
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.results import EVENTS

if TYPE_CHECKING:
    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.devices.started import Running
    from tailtrim.laboratory.experiment.by_minute import ByMinute
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Run


class Watching:
    """A trace if the run is traced; of a run by minute counters, and the trace of the last seconds.

    A context manager: entering it returns when everything records, leaving it ends that.

    Raises:
        HostError: the node cannot do it.
        RunError: it did not begin.

    """

    def __init__(
        self,
        at: Forwarding,
        dut: InlineDevice,
        device: Running,
        run: Run,
        by_minute: ByMinute | None,
    ) -> None:
        """Set everything up, on the device's node."""
        self._trace: Agent | None = None
        self._counters: Agent | None = None
        self._surroundings: Surroundings | None = None
        with ExitStack() as stack:
            if run.traced:
                at.stand_off()
            if by_minute is not None:
                counting = Agent(at.dut.outside, *by_minute.counting(dut.serving(at)))
                self._counters = stack.enter_context(counting)
            if by_minute is not None and run.traced:
                surroundings = Surroundings(at, dut.serving(at), _quota(device))
                self._surroundings = stack.enter_context(surroundings)
            elif run.traced:
                trace = Agent(at.dut.outside, *tracing(at, dut), *_quota(device), tidies_up=True)
                self._trace = stack.enter_context(trace)
            for one in (self._counters, self._surroundings, self._trace):
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
        if self._surroundings is not None:
            self._surroundings.follow(worst)

    def stop(self) -> dict[str, Any] | None:
        """End trace and counters; return what the trace counted, if there was one."""
        if self._counters is not None:
            self._counters.stop()
        return None if self._trace is None else self._trace.stop()

    def end(self, captured: dict[str, Any]) -> None:
        """End the trace of the last seconds once the taps have ended, see :class:`Surroundings`."""
        if self._surroundings is not None:
            self._surroundings.end(captured)


def tracing(at: Forwarding, dut: InlineDevice) -> list[str]:
    """Return those of the agent that traces the device's CPUs."""
    watched = ",".join(map(str, dut.serving(at)))
    return ["trace", "--cpus", watched, "--out", at.dut.path(EVENTS)]


def _quota(device: Running) -> list[str]:
    """Have the quota of the device's process looked at, if it is one."""
    with suppress(RunError):
        return ["--device", str(device.pid)]
    return []
