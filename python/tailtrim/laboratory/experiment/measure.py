"""One run of packets that pass: load, device, taps, and with ``trace: true`` the host's trace."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunError
from tailtrim.laboratory.devices.running_device import DeviceUnderTest
from tailtrim.laboratory.devices.wire import Wire
from tailtrim.laboratory.experiment.cpu_tracing import CpuRecording
from tailtrim.laboratory.experiment.metered import RunMeters, meters_of
from tailtrim.laboratory.experiment.tap_clocks import TapClocks
from tailtrim.laboratory.experiment.taps import Taps
from tailtrim.laboratory.experiment.validity import clock_doubts
from tailtrim.laboratory.nodes.agent import Agent, result_in_time
from tailtrim.laboratory.nodes.container.group import since
from tailtrim.laboratory.nodes.testbed import DESTINATION_IP, SOURCE_IP
from tailtrim.results import DEPARTURES, DISTURBED

if TYPE_CHECKING:
    from tailtrim.laboratory.devices.running_device import RunningDevice
    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Run

#: After the last departure the device may hold packets for so long without one leaving.
_SETTLE_S = 0.3
#: Interval between checks of the device: on few cores every check takes time from it.
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Measurement:
    """Counts of generator, taps, forwarder and trace in a run, and reasons to doubt them."""

    generator: dict[str, Any]
    capture: dict[str, Any]
    device: dict[str, Any] | None
    trace: dict[str, Any] | None
    #: Whether the generator's CPU handles packets for the device, too.
    shares_cpu: bool
    doubts: tuple[str, ...]
    clocks: TapClocks
    #: Counters of the device's control group during the run, if it has one.
    counted: dict[str, int] = field(default_factory=dict)
    #: The meters of the nodes.
    meters: RunMeters | None = None


def measure(context: InlineRunContext, *, with_meters: bool = True) -> Measurement:
    """Generate and capture, once. Captures, logs and the trace stay on their nodes.

    Args:
        context: the run, with its nodes and its device.
        with_meters: whether to read the meters of the nodes, if they have any.

    Raises:
        HostError: a node cannot do it.
        RunError: the device or a part of the meter died.

    """
    at, dut, run = context.at, context.dut, context.run
    with ExitStack() as stack:
        stack.enter_context(at.aside())
        meters = RunMeters(context, meters_of(context.plan) if with_meters else {})
        stack.enter_context(meters)
        if context.device is None:
            meters.idle()
        device = context.device or stack.enter_context(
            DeviceUnderTest(dut, at, ip=run.traffic.ip, ready_s=context.plan.limits.ready_s)
        )
        clocks = TapClocks(at)
        capture = stack.enter_context(Taps(context, clocks.stamps))
        meters.ready(loaded=False)
        # Armed when everything else stands: setting up sends interrupts to all CPUs.
        recording = stack.enter_context(CpuRecording(context, device))
        context.progress("measuring")
        meters.before_load()
        before, counted = at.timestamper.clocks(), at.dut.counted()
        # A reading before its first packets: page faults that they cause count, too, and on a busy
        # machine a second may pass until the next reading.
        device.check()
        logged = context.by_minute is None
        generator = stack.enter_context(
            Agent(at.loadgen, *generating(run, dut.destination(at), at, logged=logged))
        )
        generator.ready()
        disturbing = _disturbing(context, device)
        if disturbing is not None:
            stack.enter_context(disturbing).ready()
        look = partial(_look, context, device, capture, recording)
        with meters.loaded():
            sent, doubts = result_in_time(
                generator, "generator", look, duration_s=run.traffic.duration_s, every_s=_LOOK_S
            )
        device.check()
        time.sleep(_SETTLE_S)
        doubts += clock_doubts(before, at.timestamper.clocks())
        counted = since(counted, at.dut.counted())
        # A disturbance may run on the device's CPU: the trace ends before the signal that ends it.
        traced = recording.stop()
        if disturbing is not None:
            disturbing.stop()
        meters.ready(loaded=True)
        captured = capture.stop()
        recording.end(captured)
        clocks.ended()
        _reached(at.dut)
        return Measurement(
            generator=sent,
            capture=captured,
            device=device.stop(),
            trace=traced,
            shares_cpu=not isinstance(dut, Wire) and bool({*at.loadgen.cpus} & {*dut.serving(at)}),
            doubts=tuple(doubts),
            clocks=clocks,
            counted=counted,
            meters=meters,
        )


def _look(
    context: InlineRunContext, device: RunningDevice, capture: Taps, recording: CpuRecording
) -> None:
    """Report at once if a node, the device, the taps or the traces end while packets are sent."""
    for node in context.at.nodes.values():
        if node.lost:
            node.check()
    device.check()
    capture.check()
    recording.look(capture.around)
    context.progress(", ".join(filter(None, ("measuring", capture.told))))


def _reached(dut: Node) -> None:
    """Make sure that the device's node is there: of a device in the kernel only it can tell."""
    if dut.outside.call("true").returncode != 0:
        raise RunError(f"{dut.named}: cannot be reached any more")


def _disturbing(context: InlineRunContext, device: RunningDevice) -> Agent | None:
    """Start the disturbance of the device from outside, if the plan has one."""
    at, what = context.at, context.dut.disturbance
    if what is None:
        return None
    cpu, node = at.dut.cpus[-1], at.dut.outside
    arguments = ["--cpu", str(cpu), "--pid", str(device.pid)]
    if what.startswith("softirqs"):
        storm = at.storm(cpu)
        node, arguments = storm.node, [*arguments, "--interface", storm.name]
    log = ("--log", node.path(DISTURBED))
    # A quota is a control group of the host, which goes when the agent has ended.
    return Agent(node, "disturb", what, *arguments, *log, tidies_up=what.startswith("quota"))


def generating(run: Run, target: Port, at: Forwarding, *, logged: bool) -> list[str]:
    """Return the arguments of the agent that sends the load of a run.

    Without captures nothing can be set aside afterwards; then it does not log when it was late.
    """
    traffic = run.traffic
    arguments = ["generate", "--interface", at.send.name, "--dst-mac", target.mac]
    arguments += ["--frame-bytes", str(traffic.frame_bytes), "--schedule", str(traffic.schedule)]
    rate = traffic.rate if traffic.rate is not None else traffic.rate_pps
    arguments += ["--rate", str(rate)] if rate is not None else []
    arguments += ["--src-ip", SOURCE_IP[traffic.ip], "--dst-ip", DESTINATION_IP[traffic.ip]]
    arguments += ["--flows", str(traffic.flows), "--dscp", str(traffic.dscp)]
    # Repetitions are not the same again: each has a seed of its own, which the result tells.
    arguments += ["--seed", str(traffic.seed + run.repetition)]
    arguments += ["--duration", f"{traffic.duration_s:.9f}s"]
    arguments += ["--vlan", str(traffic.vlan)] if traffic.vlan is not None else []
    arguments += ["--cpu", str(at.loadgen.cpus[0])]
    arguments += [] if traffic.departures == "software" else ["--departures", traffic.departures]
    log = ["--stall-log", at.loadgen.path(DEPARTURES)] if logged else []
    return [*arguments, *log]
