"""One run on the testbed: load, device, taps, and with ``trace: true`` the host's trace beside."""

from __future__ import annotations

import mmap
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.agent import Agent
from tailtrim.errors import RunError
from tailtrim.rundir import DISTURBED, EVENTS
from tailtrim.testbed import Testbed
from tailtrim.testbed.local import SEND, TAP_IN, TAP_OUT
from tailtrim.testbed.node import allowed
from tailtrim.testbed.presets import Device, destination_mac, serving
from tailtrim.testbed.ready import DESTINATION_IP, SOURCE_IP
from tailtrim.validity import clock_doubts, clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tailtrim.plan import Plan, Run

#: After the last departure the device may hold packets for so long without one leaving.
_SETTLE_S = 0.3
#: What a generator that cannot keep its schedule may take beyond its time.
_GRACE = 3.0
#: How often the device is looked at: on few cores every look takes time from it.
_LOOK_S = 0.2
#: So often Linux forgets which CPUs a process was on: it trims ``mm_cpumask``, since 6.14.
_FORGETS_S = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What the generator, the taps, the forwarder and the trace counted; why not to trust it."""

    generator: dict[str, Any]
    capture: dict[str, Any]
    device: dict[str, Any] | None
    trace: dict[str, Any] | None
    doubts: tuple[str, ...]


def measure(plan: Plan, run: Run, folder: Path, told: Callable[[str], None]) -> Measured:
    """Generate and capture, once.

    Args:
        plan: whose run.
        run: which one.
        folder: where captures, the device's log and the trace go.
        told: is called with what is being done.

    Raises:
        HostError: this host cannot do it.
        RunError: the device or a part of the meter died.

    """
    generating, others = placed()
    # Where there are three CPUs the taps have their own; of two, the generator lends them its one:
    # what they take there makes departures late, which is recorded, and on the device's it would
    # make packets late (98.7 % of a p99.9 of 2.5 ms on two cores, before).
    capturing = others[:-1] or [generating]
    with ExitStack() as stack:
        stack.enter_context(keeping_to(capturing))
        testbed = stack.enter_context(Testbed(run.traffic.largest_frame))
        device = stack.enter_context(
            Device(testbed, run.dut, folder, others, ip=run.traffic.ip, ready_s=plan.limits.ready_s)
        )
        capture = stack.enter_context(
            Agent(
                *("capture", "--tap", f"ingress={TAP_IN}", "--tap", f"egress={TAP_OUT}"),
                *("--out", str(folder), "--snap", str(plan.snap_bytes), "--zstd"),
                prefix=(*testbed.timestamper.prefix, *allowed(capturing)),
            )
        )
        capture.ready()
        # Armed when everything else stands: setting up sends interrupts to all CPUs.
        trace = None
        if run.traced:
            forgotten()
            watched = ",".join(map(str, serving(run.dut, generating, others)))
            trace = stack.enter_context(
                Agent(*("trace", "--cpus", watched, "--out", str(folder / EVENTS)), *_quota(device))
            )
            trace.ready()
        told("measuring")
        before = clocks()
        generator = stack.enter_context(
            Agent("generate", *_load(run, generating), prefix=testbed.loadgen.prefix)
        )
        generator.ready()
        disturbing = _disturbing(run, testbed, device, folder, others[-1])
        if disturbing is not None:
            stack.enter_context(disturbing).ready()
        # The device and the taps are looked at while the generator runs: who dies is told at once.
        until_s = time.monotonic() + run.traffic.duration_s * _GRACE + 10
        while generator.poll() and time.monotonic() < until_s:
            device.check()
            if not capture.poll():
                capture.result(1)
                raise RunError("the capture ended before the run did")
            told(f"measuring, {capture.packets:,} packets")
            time.sleep(_LOOK_S)
        sent = generator.result(5)
        device.check()
        time.sleep(_SETTLE_S)
        doubts = clock_doubts(before, clocks())
        # Who disturbs may do so from the device's CPU: the signal that ends it is not of the run.
        traced = trace.stop() if trace is not None else None
        if disturbing is not None:
            disturbing.stop()
        taps = capture.stop()
        return Measured(sent, taps, device.stop(), traced, tuple(doubts))


def placed() -> tuple[int, list[int]]:
    """Choose a CPU for the generator, and those for the device: all others, if there are any."""
    cpus = sorted(os.sched_getaffinity(0))
    generating = cpus[-2] if len(cpus) > 1 else cpus[0]
    return generating, [cpu for cpu in cpus if cpu != generating] or cpus


def _quota(device: Device) -> list[str]:
    """Have the quota of the device's process looked at, if it is one."""
    with suppress(RunError):
        return ["--device", str(device.pid)]
    return []


def _disturbing(run: Run, testbed: Testbed, device: Device, folder: Path, cpu: int) -> Agent | None:
    """Start what disturbs the device from outside, if anything is to."""
    what = run.dut.disturb
    if what is None or run.dut.disturbed_from_within:
        return None
    arguments = ["--cpu", str(cpu), "--pid", str(device.pid), "--log", str(folder / DISTURBED)]
    arguments += ["--port", testbed.storm(cpu)] if what.startswith("softirqs") else []
    return Agent("disturb", what, *arguments, prefix=testbed.loadgen.prefix)


@contextmanager
def keeping_to(cpus: list[int]) -> Iterator[None]:
    """Have this process, which looks at the others meanwhile, do so on these CPUs only.

    What it starts inherits that, unless it is told its own CPU.
    """
    before = {}
    for thread in [int(task.name) for task in Path("/proc/self/task").iterdir()]:
        with suppress(OSError):
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, cpus)
    try:
        yield
    finally:
        for thread, allowed in before.items():
            with suppress(OSError):
                os.sched_setaffinity(thread, allowed)


def forgotten() -> None:
    """Have Linux forget that this process was on CPUs from which it keeps off now.

    Otherwise a thread that ends, whose stack goes, interrupts all of them. Of what goes after a
    second, the interrupt is the last one.
    """
    time.sleep(_FORGETS_S)
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        page[0] = 1


def _load(run: Run, cpu: int) -> list[str]:
    traffic = run.traffic
    arguments = ["--port", SEND, "--dst-mac", destination_mac(run.dut)]
    arguments += ["--frame-bytes", str(traffic.frame_bytes), "--schedule", traffic.pattern]
    rate = traffic.rate if traffic.rate is not None else traffic.rate_pps
    arguments += ["--rate", str(rate)] if rate is not None else []
    arguments += ["--src-ip", SOURCE_IP[traffic.ip], "--dst-ip", DESTINATION_IP[traffic.ip]]
    arguments += ["--flows", str(traffic.flows), "--dscp", str(traffic.dscp)]
    # Repetitions are not the same again: each has a seed of its own, which the result tells.
    arguments += ["--seed", str(traffic.seed + run.repetition)]
    arguments += ["--stop-after", f"{traffic.duration_s:.9f}s"]
    arguments += ["--vlan", str(traffic.vlan)] if traffic.vlan is not None else []
    return [*arguments, "--cpu", str(cpu)]
