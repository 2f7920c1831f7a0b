"""Check for runs that a testbed cannot do, as far as that shows before anything runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, PlanError, TailtrimError
from tailtrim.laboratory.devices import InlineDevice
from tailtrim.laboratory.experiment.boots import BootLines
from tailtrim.laboratory.experiment.by_minute import apart
from tailtrim.laboratory.experiment.context import SILENT
from tailtrim.laboratory.experiment.rebooted import look
from tailtrim.laboratory.nodes.container.node import require
from tailtrim.laboratory.nodes.container.root import prepared
from tailtrim.laboratory.nodes.ssh_testbed import lacks
from tailtrim.laboratory.nodes.testbed import LOCAL, kept
from tailtrim.laboratory.nodes.testbed_check import Finding
from tailtrim.laboratory.nodes.testbed_file import SECOND_TAP
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from tailtrim.laboratory.experiment.context import Listener
    from tailtrim.laboratory.nodes.host import Host, ReservedHost
    from tailtrim.laboratory.nodes.testbed import Ability
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
    from tailtrim.laboratory.plan import Plan, Run

_WHERE = "plan"


def tried(
    path: Path, testbed: TestbedDescription
) -> Callable[[Mapping[str, ReservedHost]], Iterable[Finding]]:
    """Return the check that a plan can run on the hosts of a testbed.

    Args:
        path: the plan; the testbed that it names is not used.
        testbed: where it is to run.

    """
    try:
        plan, runs = load(path, testbed)
    except PlanError as error:
        mistakes = [Finding("fault", _WHERE, str(one)) for one in error.args]
        return lambda _: mistakes
    return partial(_found, plan, runs, testbed)


def _found(
    plan: Plan, runs: list[Run], testbed: TestbedDescription, sessions: Mapping[str, ReservedHost]
) -> Iterator[Finding]:
    node = testbed.roles.dut.node
    session = sessions.get(node)
    if session is None:
        yield Finding(
            "note", _WHERE, f"{node} was not reached: not looked for what runs need there"
        )
        return
    reasons: dict[str, list[Run]] = {}
    for run in runs:
        error = lacking(plan, run, session, lacks(testbed))
        if error is not None:
            told = "; ".join([str(error), *getattr(error, "__notes__", ())])
            reasons.setdefault(told, []).append(run)
    for reason, without in reasons.items():
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        yield Finding("fault", _WHERE, f"{without[0].folder} ({without[0].label}){more}: {reason}")
    yield from _departing(runs, testbed, sessions)
    boots = dict.fromkeys(run.boot for run in runs if run.boot is not None)
    for boot in boots:
        warnings: list[str] = []
        try:
            look(session, testbed.nodes[node], [boot], BootLines(warnings.append)).refuse()
        except TailtrimError as error:
            yield from (Finding("fault", _WHERE, str(one)) for one in error.args)
        yield from (Finding("note", _WHERE, one) for one in warnings)
    possible = len(runs) - sum(map(len, reasons.values()))
    booted = f", {len(boots)} kernels and boot lines" if boots else ""
    yield Finding("good", _WHERE, f"{possible} of {len(runs)} runs have what they need{booted}")


def _departing(
    runs: list[Run], testbed: TestbedDescription, sessions: Mapping[str, ReservedHost]
) -> Iterator[Finding]:
    """Yield what the load generator's port lacks to keep departures to their time."""
    generator = sessions.get(testbed.roles.loadgen.node)
    if generator is None:
        return
    for by in sorted({run.traffic.departures for run in runs} - {"software"}):
        try:
            kept(generator, testbed.interfaces("loadgen")[0], by)
        except HostError as error:
            yield Finding("fault", _WHERE, str(error))


def lacking(
    plan: Plan,
    run: Run,
    host: Host,
    lacks: Mapping[Ability, str],
    listener: Listener = SILENT,
) -> HostError | None:
    """Return why a run is not possible; ``None`` where nothing is known against it.

    Args:
        plan: whose run.
        run: which one.
        host: that of the device under test.
        lacks: abilities that the testbed does not have, and why.
        listener: hears when the files of a container are made.

    """
    nodes = {} if plan.testbed == LOCAL else plan.testbed.roles_of_nodes
    if plan.by_minute and SECOND_TAP in nodes:
        return apart(nodes["timestamper"], nodes[SECOND_TAP])
    too_large = run.dut.too_large(run.traffic.largest_frame)
    if too_large is not None:
        return HostError(f"traffic.frame_bytes: {too_large}")
    for need in run.dut.needs:
        if need in lacks:
            return HostError(lacks[need])
    if run.boot is not None and plan.testbed == LOCAL:
        # The abilities of a guest are known only after it has booted.
        return None
    try:
        if isinstance(run.dut, InlineDevice) and run.dut.node == "container":
            require(host)
            settings = run.dut.container
            progress = partial(listener.progress, run)
            prepared(settings.root, tuple(settings.packages), progress)
        else:
            run.dut.require(host)
    except HostError as error:
        return error
    return None
