"""What of a run a testbed cannot do, as far as that shows before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.devices import Reflector
from tailtrim.devices.xdp import Xdp
from tailtrim.errors import HostError
from tailtrim.nodes.testbeds import LOCAL

if TYPE_CHECKING:
    from tailtrim.nodes.node import Host
    from tailtrim.plan import Plan, Run

#: Disturbances that need a fibre more.
_BY_PACKETS = "softirqs:"


def lacking(plan: Plan, run: Run, host: Host) -> HostError | None:
    """Return why a run is not possible; ``None`` where nothing is known against it.

    Args:
        plan: whose run.
        run: which one.
        host: that of the device under test.

    """
    too_large = run.dut.too_large(run.traffic.largest_frame)
    if too_large is not None:
        return HostError(f"traffic.frame_bytes: {too_large}")
    if plan.testbed != LOCAL and (told := _only_local(run)) is not None:
        return HostError(told)
    if run.boot is not None and plan.testbed == LOCAL:
        # What a guest has shows when it has booted.
        return None
    try:
        run.dut.require(host)
    except HostError as error:
        return error
    return None


def _only_local(run: Run) -> str | None:
    dut = run.dut
    disturbance = getattr(dut, "disturbance", None) or ""
    if isinstance(dut, Reflector):
        more = ", on other hosts use tailtrim reflect and tailtrim ping"
        return f"preset reflector: only with testbed: local{more}"
    if isinstance(dut, Xdp):
        return "preset xdp: only with testbed: local"
    if disturbance.startswith(_BY_PACKETS):
        return f"disturb: {disturbance}: only with testbed: local"
    return None
