"""Coverage of the intervals of watts and joules a packet: ``docs/energy.md``.

Experiments with a known truth are simulated: power that is correlated from second to second and
drifts from run to run, and a meter that cuts it into steps and has an error of its class at each
power. The intervals are those that ``tailtrim energy`` prints.

    python benchmarks/energy.py [EXPERIMENTS]
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from statistics import fmean

from tailtrim.analysis.energy import LOADED, READY, MeteredNode, RunEnergy, State, costs
from tailtrim.laboratory.energy.record import type_b_w
from tailtrim.laboratory.nodes.meters import Channel

#: A meter is read every second.
_SECONDS = 10
_RATE = 10_000.0
#: Standard deviation of the power in a second, in W, its correlation from second to second, and
#: standard deviation of what a run has more or less than another one.
_NOISE_W, _CORRELATED, _DRIFT_W = 0.3, 0.9, 0.5


@dataclass(frozen=True)
class Case:
    """A meter, an experiment, and how much power packets need."""

    name: str
    step_w: float
    accuracy_percent: float | None
    above_w: float
    blocks: int
    #: Whether the meter's error is the same share at every power.
    same_share: bool = False


CASES = (
    *(Case("0.01 W", 0.01, None, 3.0, blocks) for blocks in (2, 3, 5, 10)),
    *(Case("1 W", 1.0, None, 3.0, blocks) for blocks in (3, 10)),
    *(Case("1 W, class 1", 1.0, 1.0, 3.0, blocks) for blocks in (3, 10)),
    Case("1 W, class 1, same share", 1.0, 1.0, 3.0, 10, same_share=True),
    Case("1 W, class 1", 1.0, 1.0, 0.5, 10),
)


def seconds(source: random.Random, mean_w: float) -> list[float]:
    """Return the power of each second of a state."""
    noise = source.gauss(0, _NOISE_W)
    found = []
    for _ in range(_SECONDS):
        found.append(mean_w + noise)
        noise = _CORRELATED * noise + source.gauss(0, _NOISE_W * (1 - _CORRELATED**2) ** 0.5)
    return found


def experiment(source: random.Random, case: Case) -> tuple[list[tuple[str, RunEnergy]], float]:
    """Return the runs of an experiment, and the true power of the device that is loaded."""
    channel = Channel("power", counts=False, resolution=case.step_w)
    ready_w = source.uniform(40, 50)
    truth = {READY: ready_w, LOADED: ready_w + case.above_w}
    share = (case.accuracy_percent or 0.0) / 100
    gain = {READY: source.uniform(-share, share), LOADED: source.uniform(-share, share)}
    if case.same_share:
        gain[LOADED] = gain[READY]
    runs = []
    for _ in range(case.blocks):
        drift_w = source.gauss(0, _DRIFT_W)
        states = {}
        for name, mean_w in truth.items():
            told = [
                round(one * (1 + gain[name]) / case.step_w) * case.step_w
                for one in seconds(source, mean_w + drift_w)
            ]
            shared_w = type_b_w([channel], fmean(told), _SECONDS, case.accuracy_percent)
            states[name] = State(fmean(told), shared_w, _SECONDS)
        measured = MeteredNode("dut", "simulated", case.accuracy_percent, states)
        runs.append(("simulated", RunEnergy(_RATE, (measured,))))
    return runs, truth[LOADED]


def row(case: Case, experiments: int) -> str:
    """Return the row of a case."""
    source = random.Random(case.name + str(case.blocks))  # noqa: S311 - a simulation
    held_w = held_j = resolved = 0
    for _ in range(experiments):
        runs, loaded_w = experiment(source, case)
        (cost,) = costs(runs)
        loaded = cost.uncertain[LOADED]
        held_w += abs(loaded.value - loaded_w) <= loaded.expanded
        above = cost.above_ready_j
        if above is not None:
            resolved += 1
            held_j += abs(above.value - case.above_w / _RATE) <= above.expanded
    share = f"{100 * held_j / resolved:.1f}" if resolved else "-"
    words = (case.name, f"{case.above_w:g}", str(case.blocks), f"{100 * held_w / experiments:.1f}")
    return f"| {' | '.join((*words, f'{100 * resolved / experiments:.1f}', share))} |"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print("| meter | W above ready | blocks | loaded W, % | resolved, % | J a packet, % |")
    print("|---|---|---|---|---|---|")
    for one in CASES:
        print(row(one, count))
