"""What the boots and warm-ups of a plan cost, told before they begin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.nodes.vm.machine import EMULATED_BOOT_S, EMULATED_RUN_S, accelerator
from tailtrim.plan import LEAST_BOOTS, booted, device_of, kept

if TYPE_CHECKING:
    from tailtrim.plan import Plan, Run


def tell(plan: Plan, runs: list[Run]) -> None:
    """Print number and time of what these runs need beside their traffic, if they need anything."""
    devices = kept(runs)
    if devices:
        sharing = sum(device_of(run) is not None for run in runs)
        each = f"each is warmed up until it is steady, for at most {plan.limits.warm_up_s:g} s"
        starts = f"{devices} start{'s' * (devices != 1)} of devices"
        say(f"{starts} for {sharing} runs: {each}", err=True)
    boots = booted(runs)
    if not boots:
        return
    configurations = len({run.boot for run in runs if run.boot is not None})
    accelerated = accelerator(plan.vm.accelerator)
    takes_s, how = sum(run.traffic.duration_s for run in runs), "at least"
    if accelerated == "tcg":
        in_guests = sum(run.boot is not None for run in runs)
        takes_s += boots * EMULATED_BOOT_S + in_guests * EMULATED_RUN_S
        how = "about"
    say(
        f"{boots} boots of {configurations} kernels and boot lines, {len(runs)} runs: {how}"
        f" {math.ceil(takes_s / 60)} min ({accelerated})",
        err=True,
    )
    if accelerated == "tcg":
        say("warning: QEMU emulates the CPU (tcg): latencies are not those of hardware", err=True)
    if plan.boots < LEAST_BOOTS:
        told = f"boots: {plan.boots} is too few to tell kernels or boot lines apart"
        say(f"warning: {told}, expected {LEAST_BOOTS} or more", err=True)


def expected_boot_s(plan: Plan, runs: list[Run]) -> float:
    """Return how long a boot takes, as far as that is known beforehand."""
    emulated = booted(runs) and accelerator(plan.vm.accelerator) == "tcg"
    return EMULATED_BOOT_S if emulated else 0.0
