"""All that an experiment would do to each node: nothing is changed, and no host is connected.

Devices and testbeds do it to nodes that note it (:mod:`tailtrim.laboratory.nodes.dry`). Facts
that only a host knows are shown as such: numbers of CPUs that its testbed file does not name, MAC
addresses, and the source of stamps on two nodes.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.reflector import Reflector, RunningReflector
from tailtrim.laboratory.experiment.by_minute import ByMinute
from tailtrim.laboratory.experiment.cpu_tracing import tracing, tracing_last
from tailtrim.laboratory.experiment.estimate import Effort
from tailtrim.laboratory.experiment.guests import passed_ports
from tailtrim.laboratory.experiment.measure import generating
from tailtrim.laboratory.experiment.reflector_run import pinging
from tailtrim.laboratory.experiment.steady_state import WINDOW_S
from tailtrim.laboratory.experiment.taps import capturing, needed_mb
from tailtrim.laboratory.nodes import local_host, wiring
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.laboratory.nodes.boot.host import BootRequest
from tailtrim.laboratory.nodes.dry import DryNode, Step, UnknownCpu
from tailtrim.laboratory.nodes.host import Facts, ReservedHost
from tailtrim.laboratory.nodes.namespace_testbed import LocalForwarding, LocalReflection
from tailtrim.laboratory.nodes.ports import Port
from tailtrim.laboratory.nodes.ssh_testbed import HostsForwarding, HostsReflection
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.vm import pci
from tailtrim.laboratory.nodes.vm.guest import NAMED, PORTS
from tailtrim.laboratory.nodes.vm.machine import COMMON
from tailtrim.laboratory.plan import device_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.nodes.testbed import Forwarding, Reflection
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
    from tailtrim.laboratory.plan import Boot, Plan, Run

SCHEMA = "tailtrim.dry-run/1"
#: Of a host that is not asked.
_UNKNOWN = Facts("", "", 2, root=True)
_NOWHERE = Path("/nonexistent")
#: The roles whose hosts those of round trips are.
_OF_ROUND_TRIPS = {"client": "loadgen", "reflector": "dut", "middle": "timestamper"}


@dataclass(slots=True)
class NodeSteps:
    """Steps that an experiment would do to a node, in order, each with its runs."""

    roles: list[str]
    steps: dict[Step, list[str]] = field(default_factory=dict)

    def add(self, step: Step, run: str | None = None) -> None:
        """Add a step; without a run it is of the whole experiment."""
        runs = self.steps.setdefault(step, [])
        if run is not None and run not in runs:
            runs.append(run)


@dataclass(frozen=True, slots=True)
class DryRun:
    """Expected runs and time of an experiment, and its steps on each node."""

    name: str
    expected: Effort
    nodes: dict[str, NodeSteps]

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        takes = self.expected
        return {
            "schema": SCHEMA,
            "name": self.name,
            "runs": takes.runs,
            "boots": takes.boots,
            "configurations": takes.configurations,
            "expected_s": takes.takes_s,
            "expected_is": "about" if takes.known else "at least",
            "nodes": [
                {
                    "node": name,
                    "roles": node.roles,
                    "steps": [
                        {"do": step.do, "what": step.what, "runs": runs}
                        for step, runs in node.steps.items()
                    ],
                }
                for name, node in self.nodes.items()
            ],
        }


def dry_run(plan: Plan, runs: list[Run]) -> DryRun:
    """Return what an experiment would do to each node.

    Args:
        plan: the experiment.
        runs: its runs in order.

    """
    nodes: dict[str, NodeSteps] = {}
    if plan.testbed != LOCAL:
        for name in dict.fromkeys(plan.testbed.roles_of_nodes.values()):
            nodes[name] = NodeSteps([])
            for step in _of_host(plan, plan.testbed, name):
                nodes[name].add(step)
    up: Hashable = None
    for run in runs:
        if run.boot is not None:
            where, step = _boot(plan, run.boot)
            node = nodes.setdefault(where, NodeSteps([]))
            for each in (*_passing_through(plan), step):
                node.add(each, run.folder)
        before, up = up, device_of(run)
        for role, name, steps in _steps(plan, run, is_up=up is not None and up == before):
            node = nodes.setdefault(name, NodeSteps([]))
            if role not in node.roles:
                node.roles.append(role)
            for step in steps:
                node.add(step, run.folder)
    return DryRun(plan.name, Effort.of(plan, runs), nodes)


def _of_host(plan: Plan, testbed: TestbedDescription, name: str) -> Iterable[Step]:
    """Yield what is done to a host once."""
    entry = testbed.nodes[name]
    yield Step("reserve", f"for {plan.name}, until the experiment ends")
    yield Step("copy agent", "to ~/.cache/tailtrim, if this version is not there")
    for role in (role for role, node in testbed.roles_of_nodes.items() if node == name):
        ports = ", ".join(testbed.interfaces(role))
        yield Step("ports", f"{ports}: into a network namespace of the {role}, and back")
    yield Step("power", _power(entry))


def _power(entry: NodeEntry) -> str:
    if entry.cycled_by is None:
        lacks = "power" if entry.power is None else "reboot in may"
        return f"not switched (no {lacks} in the testbed file)"
    return f"off and on once if the node dies ({entry.cycled_by.place})"


def _boot(plan: Plan, boot: Boot) -> tuple[str, Step]:
    """Return which node boots, and into what."""
    if plan.testbed == LOCAL:
        line = f"{COMMON} {boot.cmdline}".strip()
        return "dut (virtual machine)", Step("boot", f"QEMU, kernel {boot.kernel}, line: {line}")
    name = plan.testbed.roles.dut.node
    entry = plan.testbed.nodes[name]
    asked = BootRequest(boot.kernel, boot.cmdline)
    if entry.boot is None:
        raise HostError(f"{name}: nodes.{name}.boot is not in the testbed file")
    line = " ".join(asked.words(entry.boot))
    return name, Step("boot", f"by {entry.boot.by}, kernel {asked.release}, line: {line}")


def _passing_through(plan: Plan) -> list[Step]:
    """Return what is done to PCI devices of this host for a boot, or why it cannot be done here."""
    if plan.testbed != LOCAL or not plan.vm.ports:
        return []
    try:
        found = passed_ports(plan)
    except HostError as error:
        asked = ", ".join(f"{name} {port.pci}" for name, port in plan.vm.ports.items())
        return [Step("ports", f"{asked}: cannot be passed through here: {error}")]
    return [step for name, port in found.items() for step in _passed(NAMED[name], port)]


def _passed(name: str, port: pci.PassedPort) -> Iterator[Step]:
    """Yield what is done to a device, and to the settings that a physical function has of it."""
    yield Step(
        "ports",
        f"{name}: {port.pci} ({port.interface}, {port.mac}, IOMMU group {port.iommu_group}) from"
        f" {port.driver} to {pci.DRIVER}, and back after the boot",
    )
    for one in port.settings:
        what = f"{one.interface} vf {one.function} {one.name} {one.value}"
        yield Step("ports", f"ip link set {what}, and {one.before} after the boot")


def _steps(plan: Plan, run: Run, *, is_up: bool) -> Iterable[tuple[str, str, list[Step]]]:
    """Return role, name and steps of each node of a run, whose device may be up already."""
    if isinstance(run.dut, Reflector):
        nodes = _round_trips(plan, run, run.dut)
    else:
        nodes = _passing(plan, run, cast("InlineDevice", run.dut), is_up=is_up)
    in_guest = run.boot is not None and plan.testbed == LOCAL
    for node in nodes:
        name = node.role if plan.testbed == LOCAL else _host_of(plan.testbed, node.role)
        if in_guest and node.role == "dut":
            name = "dut (virtual machine)"
        yield node.role, name, list(dict.fromkeys(node.steps))


def _passing(plan: Plan, run: Run, dut: InlineDevice, *, is_up: bool) -> list[DryNode]:
    nodes: list[DryNode] = []
    at = _forwarding(plan, run, nodes)
    if run.boot is not None and plan.testbed == LOCAL:
        at.dut.cpus, at.dut.spared = list(range(plan.vm.cpus)), [0]
    if dut.node == "container":
        limits = ", ".join(f"{name} {value}" for name, value in dut.container.limits.items())
        root = dut.container.root or "this machine's files, read-only"
        contained = Step("container", f"{root}; {limits}")
        next(node for node in nodes if node is at.dut).steps.append(contained)
    with ExitStack() as stack:
        dut.start(at, run.traffic.ip, stack)
        if is_up:
            for made in nodes:
                made.steps.clear()
        elif dut.lifetime == "configuration":
            for made in nodes:
                made.note("warm up", _warm_up(plan, run))
        by_minute = ByMinute(at, plan.skip_s, (), run.folder)
        matching = by_minute.words if plan.by_minute else []
        trace = tracing_last(at, dut.serving(at)) if plan.by_minute else tracing(at, dut)
        for node, words, cpus in (
            *((node, words, node.cpus) for node, words in _capturing(plan, run, at, matching)),
            *([(at.dut, trace, ())] if run.traced else []),
            *([(at.dut, by_minute.counting(dut.serving(at)), ())] if plan.by_minute else []),
            (at.loadgen, generating(run, dut.destination(at), at, logged=not plan.by_minute), ()),
        ):
            stack.enter_context(Agent(node, *words, cpus=cpus))
        if dut.disturbance is not None:
            disturbing = Step("start", f"tailtrim-agent disturb {dut.disturbance}")
            nodes[-1].steps.append(disturbing)
    return nodes


def _capturing(
    plan: Plan, run: Run, at: Forwarding, matching: list[str]
) -> Iterator[tuple[Node, list[str]]]:
    # With two clocks, the source of stamps is what has a bound when the run begins.
    one_clock = at.tap_in.node is at.tap_out.node
    # As much as a node with memory enough has.
    memory_mb = needed_mb(run.traffic, plan.snap_bytes, held=not matching)
    buffer = ["--buffer", str(memory_mb)]
    stamps = "best" if one_clock else "STAMPS"
    for node, words in capturing(at, plan.snap_bytes, stamps, matching):
        yield node, [*words, *buffer]


def _warm_up(plan: Plan, run: Run) -> str:
    limit_s = plan.limits.warm_up_s
    until = f"until the device is steady, for {max(limit_s, WINDOW_S):g} s at most"
    return f"packets as in {run.folder}, {WINDOW_S:g} s at a time, {until}"


def _reflection(plan: Plan, reflector: Reflector, nodes: list[DryNode]) -> Reflection:
    between = reflector.joined
    if plan.testbed == LOCAL:
        made = partial(_local, nodes)
        return LocalReflection(_NOWHERE, local_host.facts(), between=between, made=made)
    testbed = plan.testbed
    return HostsReflection(testbed, _hosts(nodes, testbed), _NOWHERE, between=between)


def _hosts(nodes: list[DryNode], testbed: TestbedDescription) -> dict[str, ReservedHost]:
    return dict.fromkeys(testbed.roles_of_nodes, _DryHost(nodes, testbed))


def _forwarding(plan: Plan, run: Run, nodes: list[DryNode]) -> Forwarding:
    largest = run.traffic.largest_frame
    if plan.testbed == LOCAL:
        made, facts = partial(_local, nodes), local_host.facts()
        if run.boot is None:
            return LocalForwarding(_NOWHERE, largest, facts, made)
        return _WithGuest(plan, largest, facts, made)
    testbed = plan.testbed
    return HostsForwarding(testbed, _hosts(nodes, testbed), _NOWHERE, largest)


class _WithGuest(LocalForwarding):
    """The testbed of this machine with a virtual machine as the device's node."""

    def __init__(
        self, plan: Plan, largest_frame: int, facts: Facts, made: Callable[..., Any]
    ) -> None:
        """Make the nodes; some ports are PCI devices."""
        self._passed = {NAMED[name]: port for name, port in plan.vm.ports.items()}
        super().__init__(_NOWHERE, largest_frame, facts, made)

    def _connect_device(self, stack: ExitStack, make: Callable[[], Any]) -> None:
        del stack
        dut, timestamper = make(), cast("DryNode", self.timestamper)
        self.dut = dut
        usual = [name for name in PORTS if name not in self._passed]
        if usual:
            dut.note("ports", f"{' and '.join(usual)}: virtio-net, on taps of the timestamper")
        dut.note("set up", f"{' and '.join(PORTS)} up, in a network namespace of the run")
        macs = {name: "MAC" if name in self._passed else one.mac for name, one in PORTS.items()}
        self.dut_in, self.dut_out = (Port(dut, name, mac) for name, mac in macs.items())
        ends = {"d0": self._to_dut, "d1": self.tap_out}
        for name, port in self._passed.items():
            what = f"{port.cable}: into a network namespace of the timestamper, and back"
            timestamper.note("ports", what)
            ends[name] = Port(timestamper, port.cable, "MAC")
        self._to_dut, self.tap_out = ends.values()
        wiring.tap_inline(self, self._to_dut, self._to_loadgen)


def _local(
    nodes: list[DryNode],
    role: str,
    _: Path,
    facts: Facts,
    *,
    cpus: Sequence[int] = (),
    spared: Sequence[int] = (),
) -> DryNode:
    node = DryNode(role, facts, cpus=cpus, spared=spared)
    nodes.append(node)
    return node


class _DryHost(ReservedHost):
    """A host of a testbed file that is not connected: its nodes note what would be done."""

    def __init__(self, nodes: list[DryNode], testbed: TestbedDescription) -> None:
        """Add its nodes to these."""
        self._nodes, self._testbed, self.facts = nodes, testbed, _UNKNOWN

    def call(self, *command: str, given: str | None = None) -> Any:
        """Refuse: no host is connected."""
        raise NotImplementedError(command, given)

    def start(self, *command: str) -> Any:
        """Refuse: no host is connected."""
        raise NotImplementedError(command)

    def node(
        self,
        role: str,
        ports: Sequence[str],
        folder: Path,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> DryNode:
        """Return a node that notes what would be done to it."""
        del ports, folder
        entry = self._testbed.nodes[_host_of(self._testbed, role)]
        known = entry.ports.values()
        macs = {one.interface: one.mac.lower() if one.mac else "MAC" for one in known}
        own: Sequence[int] = [UnknownCpu()] if entry.cpus is None else cpus
        waiting: Sequence[int] = [UnknownCpu()] if entry.spared is None else spared
        node = DryNode(role, _UNKNOWN, cpus=own, spared=waiting, macs=macs)
        self._nodes.append(node)
        return node


def _host_of(testbed: TestbedDescription, role: str) -> str:
    return testbed.roles_of_nodes[_OF_ROUND_TRIPS.get(role, role)]


def _round_trips(plan: Plan, run: Run, reflector: Reflector) -> list[DryNode]:
    nodes: list[DryNode] = []
    at = _reflection(plan, reflector, nodes)

    def tuning(change: Callable[[], None]) -> None:
        for node in nodes:
            node.kind = "tune"
        change()
        for node in nodes:
            node.kind = "set up"

    with ExitStack() as stack:
        stack.enter_context(RunningReflector(reflector, at, tuning))
        stack.enter_context(Agent(at.client, *pinging(reflector, run, at), cpus=at.client.cpus))
    return nodes
