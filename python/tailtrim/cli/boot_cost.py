"""What the boots and warm-ups of a plan cost, told before they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.experiment.expected import Expected
from tailtrim.nodes.vm.machine import EMULATED_BOOT_S
from tailtrim.plan import LEAST_BOOTS, device_of, kept

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
    expected = Expected.of(plan, runs)
    if not expected.boots:
        return
    say(expected.text(), err=True)
    if expected.accelerator == "tcg":
        say("warning: QEMU emulates the CPU (tcg): latencies are not those of hardware", err=True)
    if plan.boots < LEAST_BOOTS:
        told = f"boots: {plan.boots} is too few to tell kernels or boot lines apart"
        say(f"warning: {told}, expected {LEAST_BOOTS} or more", err=True)


def expected_boot_s(plan: Plan, runs: list[Run]) -> float:
    """Return how long a boot takes, as far as that is known beforehand."""
    return EMULATED_BOOT_S if Expected.of(plan, runs).accelerator == "tcg" else 0.0
