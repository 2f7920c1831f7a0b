"""Expected runs, boots and time of an experiment, told before it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.vm.machine import EMULATED_BOOT_S, EMULATED_RUN_S, accelerator
from tailtrim.laboratory.plan import booted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.plan import Plan, Run


@dataclass(frozen=True, slots=True)
class Expected:
    """Number of runs, of boots and of booted configurations, and the time known beforehand.

    ``accelerator`` is that of the guests, ``None`` without guests; ``known`` is whether
    ``takes_s`` includes the time of boots and of setting up.
    """

    runs: int
    boots: int
    configurations: int
    takes_s: float
    accelerator: str | None
    known: bool

    @classmethod
    def of(cls, plan: Plan, runs: Sequence[Run]) -> Expected:
        """Return the expected numbers and time of a plan's runs."""
        boots = booted(runs)
        guests = boots > 0 and plan.testbed == LOCAL
        by = accelerator(plan.vm.accelerator) if guests else None
        takes_s = sum(run.traffic.duration_s for run in runs)
        if by == "tcg":
            in_guests = sum(run.boot is not None for run in runs)
            takes_s += boots * EMULATED_BOOT_S + in_guests * EMULATED_RUN_S
        configurations = len({run.boot for run in runs if run.boot is not None})
        return cls(len(runs), boots, configurations, takes_s, by, known=by == "tcg")

    def text(self) -> str:
        """Return it in a line."""
        boots = f"{self.boots} boots of {self.configurations} kernels and boot lines, "
        how = "about" if self.known else "at least"
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        takes = f"{runs}: {how} {math.ceil(self.takes_s / 60)} min"
        with_boots = self.boots > 0 and self.accelerator is None
        more = f" ({self.accelerator})" if self.accelerator else ""
        more = " and the time of the boots" if with_boots else more
        return f"{boots if self.boots else ''}{takes}{more}"
