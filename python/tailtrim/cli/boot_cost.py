"""What the boots of a plan cost, told before they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.experiment.expected import Expected
from tailtrim.plan import LEAST_BOOTS

if TYPE_CHECKING:
    from tailtrim.plan import Plan, Run


def tell(plan: Plan, runs: list[Run]) -> None:
    """Print number and time of the boots that these runs need; nothing where they need none."""
    expected = Expected.of(plan, runs)
    if not expected.boots:
        return
    say(expected.text(), err=True)
    if expected.accelerator == "tcg":
        say("warning: QEMU emulates the CPU (tcg): latencies are not those of hardware", err=True)
    if plan.boots < LEAST_BOOTS:
        told = f"boots: {plan.boots} is too few to tell kernels or boot lines apart"
        say(f"warning: {told}, expected {LEAST_BOOTS} or more", err=True)
