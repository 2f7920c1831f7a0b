"""Check for parts of a plan that cannot run on a testbed: for ``testbed check --plan``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError, TailtrimError
from tailtrim.laboratory.experiment.boot_lines import BootLines
from tailtrim.laboratory.experiment.rebooted import look
from tailtrim.laboratory.experiment.unsupported_runs import lacking
from tailtrim.laboratory.nodes.ssh_testbed import lacks
from tailtrim.laboratory.nodes.testbed_check import Finding
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import ReservedHost
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
