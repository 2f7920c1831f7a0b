"""One run of round trips on the testbed: client, reflector, and what lies between."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.agent import Agent
from tailtrim.errors import HostError
from tailtrim.measurement import keeping_to, placed
from tailtrim.plan import TOGETHER
from tailtrim.roundtrip.log import leave_runs
from tailtrim.testbed.far_host import Hosts
from tailtrim.testbed.node import allowed
from tailtrim.validity import clock_doubts, clocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.plan import Limits, Plan, Run

#: A reply that comes later is late.
_TIMEOUT_S = 2.0
#: What a client that cannot keep its schedule may take beyond its time.
_GRACE = 3.0
_LOOK_S = 0.1
#: Addresses, EtherType and FCS of a frame.
_AROUND = 18


@dataclass(frozen=True, slots=True)
class Reflected:
    """What client and reflector counted; why not to trust it; what was left out, and why."""

    client: dict[str, Any]
    reflector: dict[str, Any] | None
    doubts: tuple[str, ...]
    left_out: tuple[str, ...]


def reflect(plan: Plan, run: Run, folder: Path, told: Callable[[str], None]) -> Reflected:
    """Measure round trips, once, and leave them as a run directory.

    Args:
        plan: whose run.
        run: which one.
        folder: gets the client's records, and the run directory as ``run`` in it.
        told: is called with what is being done.

    Raises:
        HostError: this host cannot do it.
        RunError: the reflector or the client died.

    """
    asking, others = placed()
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
        stack.enter_context(keeping_to([asking]))
        hosts = stack.enter_context(Hosts(run.dut, others, [asking], lacking))
        client = stack.enter_context(
            Agent(
                *("ping", *hosts.asking(), *_schedule(run), "--events", "--log", str(folder)),
                *("--timeout", f"{_TIMEOUT_S:g}", "--cpu", str(asking), "--spin", "--same-clock"),
                prefix=(*hosts.client.prefix, *allowed([asking])),
            )
        )
        told("measuring")
        before = clocks()
        client.ready()
        until_s = time.monotonic() + run.traffic.duration_s * _GRACE + _TIMEOUT_S + 10
        while client.poll() and time.monotonic() < until_s:
            hosts.check()
            time.sleep(_LOOK_S)
        pinged = client.result(5)
        doubts = clock_doubts(before, clocks()) + ping_doubts(plan.limits, pinged)
        counted = hosts.stop()
    told("analysing")
    leave_runs(folder, folder / "run")
    return Reflected(pinged, counted, tuple(doubts), tuple(left_out))


def ping_doubts(limits: Limits, pinged: dict[str, Any]) -> list[str]:
    """Return how the client missed its schedule, or what it missed of the replies."""
    doubts = []
    late = {q["p"]: q["value"] for q in pinged["lateness_ns"]["quantiles"]}["0.99"]
    if late is not None and late > limits.lateness_p99_us * 1e3:
        doubts.append(f"the client was late: p99 {late / 1e3:,.0f} µs")
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
        *("--rate", rate, "--schedule", traffic.pattern),
        *("--packet-bytes", str(int(traffic.frame_bytes) - _AROUND), "--dscp", str(traffic.dscp)),
        # Repetitions are not the same again: each has a seed of its own, which the result tells.
        *("--seed", str(traffic.seed + run.repetition)),
        *("--stop-after", f"{traffic.duration_s:.9f}s"),
    ]
