"""One run of round trips: client, reflector, and the nodes between them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.errors import HostError
from tailtrim.laboratory.devices.reflector import RunningReflector
from tailtrim.laboratory.experiment.validity import clock_doubts
from tailtrim.laboratory.nodes.agent import Agent, result_in_time
from tailtrim.laboratory.plan import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.devices.reflector import Reflector
    from tailtrim.laboratory.experiment.context import RunContext
    from tailtrim.laboratory.nodes.testbed import Reflection
    from tailtrim.laboratory.plan import Limits, Run

#: A reply that comes later is late.
_TIMEOUT_S = 2.0
_LOOK_S = 0.1
#: Addresses, EtherType and FCS of a frame.
_AROUND = 18


@dataclass(frozen=True, slots=True)
class RoundTripMeasurement:
    """Counts of client and reflector; reasons to doubt them; what was left out, and why."""

    client: dict[str, Any]
    reflector: dict[str, Any] | None
    doubts: tuple[str, ...]
    left_out: tuple[str, ...]


def reflect(context: RunContext, at: Reflection, reflector: Reflector) -> RoundTripMeasurement:
    """Measure round trips, once. The client's log stays on its node.

    Args:
        context: the run.
        at: its nodes.
        reflector: its device.

    Raises:
        HostError: a node cannot do it.
        RunError: the reflector or the client died.

    """
    run, plan = context.run, context.plan
    left_out: list[str] = []

    def lacking(change: Callable[[], None]) -> None:
        try:
            change()
        except HostError as error:
            # All together is what this host can do of it; one factor alone is not measured then.
            if run.varied != TOGETHER:
                raise
            left_out.append(str(error))

    with ExitStack() as stack:
        stack.enter_context(at.aside())
        answering = stack.enter_context(RunningReflector(reflector, at, lacking))
        asked = pinging(reflector, run, at)
        asked += [part for p in context.experiment.quantiles for part in ("--quantile", p)]
        client = stack.enter_context(Agent(at.client, *asked, cpus=at.client.cpus))
        context.progress("measuring")
        before = at.client.clocks()
        client.ready()
        pinged, doubts = result_in_time(
            client,
            "client",
            answering.check,
            duration_s=run.traffic.duration_s,
            waits_s=_TIMEOUT_S,
            every_s=_LOOK_S,
        )
        doubts += clock_doubts(before, at.client.clocks())
        doubts += ping_doubts(plan.limits, pinged)
        counted = answering.stop()
    return RoundTripMeasurement(
        client=pinged, reflector=counted, doubts=tuple(doubts), left_out=tuple(left_out)
    )


def pinging(reflector: Reflector, run: Run, at: Reflection) -> list[str]:
    """Return verb and arguments of the agent that asks."""
    how = ["--events", "--timeout", f"{_TIMEOUT_S:g}", "--spin"]
    how += ["--same-clock"] if at.one_clock else []
    how += ["--log", at.client.path(), "--cpu", str(at.client.cpus[0])]
    return ["ping", *reflector.asking(), *_schedule(run), *how]


def ping_doubts(limits: Limits, pinged: dict[str, Any]) -> list[str]:
    """Return how the client missed its schedule, or what it missed of the replies."""
    doubts = []
    late = {q["p"]: q["value"] for q in pinged["lateness_ns"]["quantiles"]}["0.99"]
    if late is not None and late > limits.lateness_p99_us * 1e3:
        doubts.append(f"the client was late: p99 {units.time(late)}")
    (stream,) = pinged["streams"]
    probes = stream["probes"]
    if probes["due"] - probes["refused"] < limits.sent_share * probes["due"]:
        doubts.append(f"the client's host refused {probes['refused']:,} probes")
    if stream["overflowed"]:
        doubts.append(f"the client's socket had no room for {stream['overflowed']:,} replies")
    if probes["answered"] == 0:
        doubts.append("no probe was answered")
    return doubts


def _schedule(run: Run) -> list[str]:
    traffic = run.traffic
    rate = traffic.rate if traffic.rate is not None else f"{traffic.rate_pps}pps"
    return [
        *("--rate", rate, "--schedule", str(traffic.schedule)),
        *("--packet-bytes", str(int(traffic.frame_bytes) - _AROUND), "--dscp", str(traffic.dscp)),
        # Repetitions are not the same again: each has a seed of its own, which the result tells.
        *("--seed", str(traffic.seed + run.repetition)),
        *("--duration", f"{traffic.duration_s:.9f}s"),
    ]
