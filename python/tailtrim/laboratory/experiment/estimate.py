"""Time of an experiment: known before it begins, and estimated by the runs that have ended."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from tailtrim.laboratory.experiment.steady_state import WINDOW_S
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.vm.machine import EMULATED_BOOT_S, EMULATED_RUN_S, accelerator
from tailtrim.laboratory.plan import booted, device_of
from tailtrim.laboratory.plan.run_order import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tailtrim.laboratory.plan import Plan, Run


@dataclass(frozen=True, slots=True)
class Effort:
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
    def of(cls, plan: Plan, runs: Sequence[Run]) -> Effort:
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


class Estimate:
    """Estimated time of runs: their traffic, the overhead of each, boots and warm-ups.

    Args:
        runs: those that are missing, in their order.
        boot_s: the time of a boot, as long as none was seen.
        now: the clock, in s.

    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        boot_s: float = 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the first run."""
        self._left, self._now, self._since_s = list(runs), now, now()
        #: Overheads of ended runs (time without traffic), by the steps that they began with.
        self._beside: dict[frozenset[str], list[float]] = {}
        self._boot_s = boot_s
        self._last: Run | None = None

    def ended(self, run: Run, *, measured: bool) -> None:
        """Take that a run has ended; one that was not measured says nothing of the others.

        Args:
            run: which one.
            measured: whether it did all that runs do.

        """
        now_s = self._now()
        if measured:
            took_s = max(now_s - self._since_s - run.traffic.duration_s, 0)
            self._beside.setdefault(_begins(run, self._last), []).append(took_s)
        self._last, self._since_s = run, now_s
        self._left = [one for one in self._left if one.number != run.number]

    @property
    def known(self) -> bool:
        """Whether a run was measured, so that the estimate is more than a lower bound."""
        return bool(self._beside)

    def left_s(self) -> float:
        """Return how long the runs take that have not ended."""
        last, each_s = self._last, []
        for run in self._left:
            each_s.append(run.traffic.duration_s + self._beside_s(_begins(run, last)))
            last = run
        if each_s:
            each_s[0] = max(each_s[0] - (self._now() - self._since_s), 0.0)
        return sum(each_s)

    def _beside_s(self, begins: frozenset[str]) -> float:
        if begins in self._beside:
            return median(self._beside[begins])
        usual_s = median(self._beside.get(frozenset(), [0.0]))
        boot_s = self._boot_s if "boot" in begins else 0.0
        return usual_s + boot_s + (WINDOW_S if "device" in begins else 0.0)


def _begins(run: Run, last: Run | None) -> frozenset[str]:
    """Return what has to begin with a run: a boot, a device that is kept up, or nothing."""

    def is_new(key: Callable[[Run], Hashable]) -> bool:
        return last is None or key(last) != key(run)

    begins = set()
    # A guest stays while others are measured in between.
    if run.boot is not None and is_new(block_of):
        begins.add("boot")
    if device_of(run) is not None and is_new(device_of):
        begins.add("device")
    return frozenset(begins)
