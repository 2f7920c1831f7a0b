"""The meters of a run: which there are, and which state of the device they measure when."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Self

from tailtrim.energy import measured, pos_csv
from tailtrim.energy.measured import IDLE, LOADED, READY
from tailtrim.energy.recorder import Recorder
from tailtrim.experiment.record import write_json
from tailtrim.nodes.node import allowed
from tailtrim.rundir import ENERGY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tailtrim.devices import InlineDevice
    from tailtrim.nodes.meters import Meter, Start
    from tailtrim.nodes.node import Node, Process
    from tailtrim.nodes.testbed import Forwarding
    from tailtrim.plan import Plan, Run

#: How this machine is called where it is the testbed.
LOCAL = "local"
#: Without states of a plan, so much of the load does not count: what plans have by default.
_SETTLE_S = 2.0


def meters_of(plan: Plan) -> dict[str, Meter]:
    """Return the meters of a plan's testbed by the names of their nodes."""
    if plan.testbed == "local":
        own = plan.energy.meter if plan.energy is not None else None
        return {} if own is None else {LOCAL: own}
    nodes = plan.testbed.nodes
    used = set(plan.testbed.roles_of_nodes.values())
    return {
        name: entry.meter
        for name, entry in nodes.items()
        if name in used and entry.meter is not None
    }


class Metered:
    """The meters of a run, for as long as the context lasts; without a meter it does nothing.

    Args:
        plan: whose run.
        run: which one.
        at: where.
        dut: its device.
        told: is called with what is being done.

    Raises:
        HostError: a meter cannot be read.
        MissingPackageError: what asks a meter is not installed.

    """

    def __init__(
        self,
        plan: Plan,
        run: Run,
        at: Forwarding,
        dut: InlineDevice,
        told: Callable[[str], None],
    ) -> None:
        """Open the meters."""
        self._plan, self._run, self._told = plan, run, told
        self._meters = meters_of(plan)
        self._later = run.repetition % 2 == 1
        busy = dut.serving(at)
        readers = {}
        with ExitStack() as stack:
            for name, meter in self._meters.items():
                node = _node(at, name)
                watched = busy if node.host_name == at.dut.host_name else ()
                reader = meter.opened(_start(node), watched)
                stack.push(reader)
                readers[name] = reader
            self._recorder = Recorder(readers)
            stack.pop_all()

    def __enter__(self) -> Self:
        """Begin to read."""
        if self._meters:
            self._recorder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the meters."""
        if self._meters:
            self._recorder.__exit__()

    def idle(self) -> None:
        """Measure the node without its device, if the plan wants that."""
        energy = self._plan.energy
        if energy is not None:
            self._rest(IDLE, energy.idle_s)

    def ready(self, *, loaded: bool) -> None:
        """Measure the device that waits, if the plan wants that and it is its turn.

        Args:
            loaded: whether the load is over: every other repetition waits until then.

        """
        energy = self._plan.energy
        if energy is not None and loaded == self._later:
            self._rest(READY, energy.ready_s)

    def loaded(self) -> AbstractContextManager[None]:
        """Measure the device while packets pass it, in this context."""
        if not self._meters:
            return nullcontext()
        settle_s = min(self._settle_s, self._run.traffic.duration_s / 2)
        duration_s = self._run.traffic.duration_s
        return self._recorder.state(LOADED, settle_s=settle_s, most_s=duration_s)

    def leave(self, result: Path, generator: dict[str, Any]) -> None:
        """Write what was measured to a run directory.

        Args:
            result: the directory.
            generator: what the load generator counted.

        Raises:
            OutputError: it cannot be written.

        """
        if not self._meters:
            return
        rate, sent = float(generator["achieved_pps"]), int(generator["sent"])
        told = measured.record(self._meters, self._recorder, rate, sent)
        write_json(result / ENERGY, told)
        for name, (reader, series, _) in self._recorder.meters.items():
            pos_csv.write(result / f"energy_{name}.csv", reader.channels, series.readings)

    @property
    def _settle_s(self) -> float:
        return _SETTLE_S if self._plan.energy is None else self._plan.energy.settle_s

    def _rest(self, state: str, duration_s: float) -> None:
        if duration_s == 0 or not self._meters or self._run.floor:
            return
        self._told(f"measuring the power {state}")
        with self._recorder.state(state, settle_s=self._settle_s):
            time.sleep(duration_s + self._settle_s)


def _node(at: Forwarding, name: str) -> Node:
    """Return a node of the run on which what reads a meter can be started."""
    if name == LOCAL:
        # The device's may be a guest or a container.
        return at.loadgen
    return next(node for node in at.nodes.values() if node.host_name == name).outside


def _start(node: Node) -> Start:
    """Start commands on the CPUs of a node that nothing is measured on."""

    def start(command: Sequence[str]) -> Process:
        around = allowed(node.spared) if node.spared else ()
        return node.open(*around, *command, output=subprocess.PIPE, errors=subprocess.DEVNULL)

    return start
