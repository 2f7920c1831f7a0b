"""What the boots of a plan cost, told before they begin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.nodes.vm.machine import BOOT_S, RUN_S, accelerator
from tailtrim.plan import LEAST_BOOTS, booted

if TYPE_CHECKING:
    from tailtrim.plan import Plan, Run


def tell(plan: Plan, runs: list[Run]) -> None:
    """Print number and time of the boots that these runs need; nothing where they need none."""
    boots = booted(runs)
    if not boots:
        return
    configurations = len({run.boot for run in runs if run.boot is not None})
    accelerated = accelerator(plan.vm.accelerator)
    about_s = sum(run.traffic.duration_s for run in runs)
    about_s += boots * BOOT_S[accelerated] + len(runs) * RUN_S[accelerated]
    say(
        f"{boots} boots of {configurations} kernels and boot lines, {len(runs)} runs: about"
        f" {math.ceil(about_s / 60)} min ({accelerated})",
        err=True,
    )
    if accelerated == "tcg":
        say("warning: QEMU emulates the CPU (tcg): latencies are not those of hardware", err=True)
    if plan.boots < LEAST_BOOTS:
        told = f"boots: {plan.boots} is too few to tell kernels or boot lines apart"
        say(f"warning: {told}, expected {LEAST_BOOTS} or more", err=True)
