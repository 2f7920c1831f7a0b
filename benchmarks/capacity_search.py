"""Searches simulated devices for their capacity, by tailtrim and by RFC 9971's reference.

    PYTHONPATH=tests/capacity/support python benchmarks/capacity_search.py [--searches 20]

Prints a table in Markdown: trials and time of a search (medians; each trial takes 2 s more than its
duration), how many searches have the capacity between their bounds, and how far these are apart.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)
from simulated_devices import BESIDE_S, Queue, Server, Shared

from tailtrim.analysis.slo import objectives
from tailtrim.laboratory.capacity.loss_goal import LossGoal
from tailtrim.laboratory.capacity.promise import Condition, Promise
from tailtrim.laboratory.capacity.result import GoalBound, goal_results
from tailtrim.laboratory.capacity.search import Search
from tailtrim.laboratory.capacity.trial import LOST, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulated_devices import Device

#: To how many packets/s the capacity of a noisy server is found.
_NEAR = 4
SMALLEST, LARGEST, WIDTH = 20, 20_000, 0.02
NDR, PDR = LossGoal("NDR", 0.0, 1.0, 3.0), LossGoal("PDR", 0.005, 1.0, 3.0)
DEADLINE_S, LATE = 0.005, 0.01
(CONDITION,) = (Condition.of(one) for one in objectives("p99 < 5ms"))
SLO = Promise("p99 < 5ms", (CONDITION,), 0.95, 1.0, 3.0)


@dataclass(frozen=True)
class Case:
    """A device that serves so many packets a second, its goals, and the capacity by each."""

    name: str
    make: Callable[[int, float], Device]
    goals: tuple[LossGoal | Promise, ...]
    capacities: Callable[[float], tuple[float, ...]]


@dataclass(frozen=True)
class Row:
    """Result of one search: its bounds by goal; a bound that it does not have is ``None``."""

    trials: int
    time_s: float
    bounds: Sequence[tuple[float | None, float | None]]


def served_pps(seed: int) -> float:
    """Return how fast the device of a search is: by chance, so that no grid of loads meets it."""
    return float(np.random.default_rng(seed).uniform(9_000, 11_000))


def mine(case: Case, seed: int) -> Row:
    """Search by tailtrim."""
    search = Search(case.goals, SMALLEST, LARGEST, float, 1.0, WIDTH, 1_800.0)
    seen = case.make(seed, served_pps(seed)).searched(search)
    goals = goal_results(search, seen)
    ends = [(_load(one.lower), _load(one.upper)) for one in goals]
    return Row(len(seen), sum(one.took_s for one in seen), ends)


def _load(bound: GoalBound | None) -> float | None:
    return None if bound is None else bound.load


class Measurer(AbstractMeasurer):  # type: ignore[misc]
    """A device for the reference: packets that are bad by a goal are lost for it."""

    def __init__(self, device: Device, counted: str) -> None:
        """Take a device."""
        self.device, self.counted = device, counted
        self.durations_s: list[float] = []

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Measure a trial."""
        self.durations_s.append(intended_duration)
        sent = min(intended_load, self.device.generator_pps)
        one = self.device.measure(Trial(max(round(sent), 1), intended_duration))
        count = one.counts[self.counted]
        return MeasurementResult(
            intended_duration,
            intended_load,
            offered_count=count.packets,
            loss_count=count.bad + count.unknown,
            intended_count=max(round(intended_load * intended_duration), count.packets),
        )


def reference(case: Case, seed: int, *, duration_sum_s: float) -> Row:
    """Search by MLRsearch."""
    ratios = [g.loss_ratio if isinstance(g, LossGoal) else LATE for g in case.goals]
    asked = [
        SearchGoal(ratio, relative_width=WIDTH, duration_sum=duration_sum_s, fail_fast=False)
        for ratio in ratios
    ]
    config = Config()
    config.goals, config.min_load, config.max_load = asked, float(SMALLEST), float(LARGEST)
    counted = LOST if isinstance(case.goals[0], LossGoal) else CONDITION.text
    measurer = Measurer(case.make(seed, served_pps(seed)), counted)
    results = MultipleLossRatioSearch(config).search(measurer, debug=lambda _: None)
    ends = []
    for goal in asked:
        found_by_it = results[goal]
        both = (found_by_it.relevant_lower_bound, found_by_it.relevant_upper_bound)
        ends.append(tuple(None if one is None else float(one) for one in both))
    took_s = sum(measurer.durations_s) + BESIDE_S * len(measurer.durations_s)
    return Row(len(measurer.durations_s), took_s, ends)  # type: ignore[arg-type]


def true_capacity(make: Callable[[int, float], Server], loss_ratio: float, served: float) -> float:
    """Return the load at which half of the trials of 1 s lose more."""
    low, high = round(0.97 * served), round(1.03 * served)
    while high - low > _NEAR:
        load, device = (low + high) // 2, make(7, served)
        lost = [device.measure(Trial(load, 1.0)).counts[LOST].ratio for _ in range(101)]
        low, high = (load, high) if median(lost) <= loss_ratio else (low, load)
    return (low + high) / 2


def server(seed: int, served: float, **more: Any) -> Server:
    """Return a server with a small buffer."""
    return Server(np.random.default_rng(seed), buffer=20, served_pps=served, **more)


def queue(seed: int, served: float) -> Queue:
    """Return a queue with random service."""
    return Queue(np.random.default_rng(seed), (CONDITION,), served_pps=served)


def shared(seed: int, served: float) -> Shared:
    """Return a server on a virtual machine, as its generator is."""
    return Shared(np.random.default_rng(seed), (CONDITION,), served_pps=served)


@cache
def of_shared(served: float) -> float:
    """Return the load at which its promise just holds, with a generator that is never late."""
    low, high = round(0.5 * served), round(1.01 * served)
    while high - low > _NEAR:
        load = (low + high) // 2
        late = shared(7, served).share(load, 300.0, CONDITION.deadline_ns or 0)
        low, high = (load, high) if late < LATE else (low, load)
    return (low + high) / 2


def cases() -> list[Case]:
    """Return the devices."""
    steady = partial(server, noise=0.02)
    noisy = partial(server, noise=0.2)
    stalling = partial(steady, stalls=0.05, stall_s=0.02)
    inverted = partial(steady, hole=(6_000, 8_000))
    limited = partial(steady, generator_pps=7_000.0)
    both = (NDR, PDR)

    def known(served: float) -> tuple[float, ...]:
        # Packets in the buffer are not lost within a trial of 1 s.
        return served + 20, (served + 20) / (1 - PDR.loss_ratio)

    @cache
    def of_noisy(served: float) -> tuple[float, ...]:
        return tuple(true_capacity(noisy, goal.loss_ratio, served) for goal in both)

    return [
        Case("steady server", steady, both, known),
        Case("noisy server", noisy, both, of_noisy),
        Case("stalls of 20 ms every 20 s", stalling, both, known),
        Case("loses 10 % from 6 to 8 kpkt/s", inverted, both, lambda _: (6_000.0, 6_000.0)),
        Case("generator ends at 7 kpkt/s", limited, both, known),
        Case(
            "random queue, p99 < 5 ms",
            queue,
            (SLO,),
            lambda at: (queue(1, at).capacity(LATE, DEADLINE_S),),
        ),
        Case("ticks of 4 ms, p99 < 5 ms", shared, (SLO,), lambda at: (of_shared(at),)),
    ]


def right(row: Row, capacities: Sequence[float]) -> bool:
    """Whether the capacity lies between the bounds of each goal, or above one without an upper."""
    return all(
        lower is not None and lower <= capacity and (upper is None or capacity <= upper)
        for (lower, upper), capacity in zip(row.bounds, capacities, strict=True)
    )


def widths(row: Row) -> list[float]:
    """Return how far the bounds are apart, of goals that have both."""
    return [1 - low / high for low, high in row.bounds if low is not None and high is not None]


def main() -> None:
    """Search, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="", help="only those with this in their names")
    options = parser.parse_args()
    searches: dict[str, Callable[[Case, int], Row]] = {
        "tailtrim": mine,
        "MLRsearch, 3 s": partial(reference, duration_sum_s=3.0),
        "MLRsearch, 21 s": partial(reference, duration_sum_s=21.0),
    }
    print("| device | search | trials | time | capacity within bounds | width |")
    print("|---|---|---|---|---|---|")
    for case in (one for one in cases() if options.device in one.name):
        for name, search in searches.items():
            seeds = range(options.seed, options.seed + options.searches)
            rows = [search(case, seed) for seed in seeds]
            trials, time_s = (median(r.trials for r in rows), median(r.time_s for r in rows))
            of = sum(
                right(row, case.capacities(served_pps(seed)))
                for row, seed in zip(rows, seeds, strict=True)
            )
            apart = [width for row in rows for width in widths(row)]
            shown = f"{100 * median(apart):.1f} %" if apart else "no upper bound"
            print(
                f"| {case.name} | {name} | {trials:.0f} | {time_s:,.0f} s |"
                f" {of} of {len(rows)} | {shown} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
