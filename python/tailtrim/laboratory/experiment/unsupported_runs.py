"""Check for runs that a testbed cannot do, as far as that shows before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.devices import InlineDevice
from tailtrim.laboratory.experiment.by_minute import apart
from tailtrim.laboratory.experiment.containers import ready
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.testbed_file import SECOND_TAP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.testbed import Ability
    from tailtrim.laboratory.plan import Plan, Run


def lacking(
    plan: Plan,
    run: Run,
    host: Host,
    lacks: Mapping[Ability, str],
    told: Callable[[str], None] = lambda _: None,
) -> HostError | None:
    """Return why a run is not possible; ``None`` where nothing is known against it.

    Args:
        plan: whose run.
        run: which one.
        host: that of the device under test.
        lacks: abilities that the testbed does not have, and why.
        told: is called with what is being done, where the files of a container are made.

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
            ready(run.dut, host, told)
        else:
            run.dut.require(host)
    except HostError as error:
        return error
    return None
