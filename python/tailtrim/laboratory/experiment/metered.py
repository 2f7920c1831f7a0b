"""The meters of a run: which there are, and which state of the device they measure when."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Self

from tailtrim.analysis.energy.measured import IDLE, LOADED, READY
from tailtrim.errors import HostError
from tailtrim.laboratory.energy import pos_csv, record
from tailtrim.laboratory.energy.recorder import Recorder
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.laboratory.nodes.node import allowed
from tailtrim.results import ENERGY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.nodes.meters import Meter, Reader, Start
    from tailtrim.laboratory.nodes.node import Node, Process
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Plan

#: Name of this machine where it is the testbed.
LOCAL = "local"
#: Without states of a plan, so much of the load does not count: the default of plans.
_SETTLE_S = 2.0


def meters_of(plan: Plan) -> dict[str, Meter]:
    """Return the meters of a plan's testbed by the names of their nodes.

    Raises:
        HostError: the plan wants energy, and no node has a meter.

    """
    if plan.testbed == "local":
        own = plan.energy.meter if plan.energy is not None else None
        return {} if own is None else {LOCAL: own}
    nodes = plan.testbed.nodes
    used = sorted(set(plan.testbed.roles_of_nodes.values()))
    found: dict[str, Meter] = {
        name: meter for name in used if (meter := nodes[name].meter) is not None
    }
    if plan.energy is not None and not found:
        error = HostError(f"energy: none of the nodes has a meter: {', '.join(used)}")
        error.add_note("add nodes.NODE.meter to the testbed file, or leave energy out")
        raise error
    return found


class RunMeters:
    """The meters of a run, for as long as the context lasts; without a meter it does nothing.

    Args:
        context: the run, with its nodes.
        meters: by the names of their nodes.

    Raises:
        HostError: a meter cannot be read.
        MissingPackageError: the package that reads a meter is not installed.

    """

    def __init__(self, context: InlineRunContext, meters: Mapping[str, Meter]) -> None:
        """Open the meters."""
        self._context, self._meters, self._energy = context, meters, context.plan.energy
        self._run, at = context.run, context.at
        self._later = self._run.repetition % 2 == 1
        # On these CPUs of the device's node something is measured.
        busy = context.dut.serving(at)
        readers: dict[str, Reader] = {}
        with ExitStack() as stack:
            for name, meter in meters.items():
                node = _node(at, name)
                watched = busy if node.host_name == at.dut.host_name else ()
                readers[name] = meter.opened(_start(node), watched)
                stack.push(readers[name])
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
        if self._energy is not None:
            self._rest(IDLE, self._energy.idle_s)

    def ready(self, *, loaded: bool) -> None:
        """Measure the device that waits, if the plan wants that and it is its turn.

        Args:
            loaded: whether the load is over: every other repetition waits until then.

        """
        if self._energy is not None and loaded == self._later:
            self._rest(READY, self._energy.ready_s)

    def before_load(self) -> None:
        """Read the meters once more before packets come."""
        if self._meters:
            self._recorder.read()

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
            generator: counters of the load generator.

        Raises:
            OutputError: it cannot be written.

        """
        if not self._meters:
            return
        rate, sent = float(generator["achieved_pps"]), int(generator["sent"])
        told = record.record(self._meters, self._recorder, rate, sent)
        write_json(result / ENERGY, told)
        for name, (reader, series, _) in self._recorder.meters.items():
            pos_csv.write(result / f"energy_{name}.csv", reader.channels, series.readings)

    @property
    def _settle_s(self) -> float:
        return _SETTLE_S if self._energy is None else self._energy.settle_s

    def _rest(self, state: str, duration_s: float) -> None:
        if duration_s == 0 or not self._meters or self._run.floor:
            return
        self._context.progress(f"measuring power, {state}")
        self._recorder.read()
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
