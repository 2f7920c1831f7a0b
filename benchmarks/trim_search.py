"""Rate at which a search keeps exactly the changes that help, in worlds whose truth is known.

    python benchmarks/trim_search.py --searches 1000

Prints the table of docs/trim.md. Each search has another seed for the noise and for the order of
its trials.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "trim" / "support"))

from simulated_worlds import World, simulate

from tailtrim.laboratory.trim.trial import Settings

#: Two that help alone, two that only help together, three decoys, one that makes it worse.
_PLANTED = World(
    groups={
        "interrupts": ("irq_affinity", "isolation"),
        "scheduler": ("rt_priority",),
        "power": ("idle_states",),
        "memory": ("decoy_1", "decoy_2"),
        "clocks": ("decoy_3",),
        "network": ("harmful",),
    },
    alone={"rt_priority": -0.25, "idle_states": -0.35, "harmful": 0.2},
    together={frozenset(("irq_affinity", "isolation")): -0.3},
)
#: The same changes, but each group has one that does nothing or harms.
_MIXED = replace(
    _PLANTED,
    groups={
        "interrupts": ("irq_affinity", "isolation", "decoy_1"),
        "power": ("idle_states", "harmful"),
        "scheduler": ("rt_priority", "decoy_2"),
        "memory": ("decoy_3",),
    },
)
#: The two that only help together are in different groups.
_APART = replace(
    _PLANTED,
    groups={
        "interrupts": ("irq_affinity",),
        "isolation": ("isolation",),
        "scheduler": ("rt_priority",),
        "power": ("idle_states",),
        "memory": ("decoy_1", "decoy_2"),
        "clocks": ("decoy_3",),
        "network": ("harmful",),
    },
)
#: Some take boots, which differ by themselves as much as runs; one of these does not come up.
_BOOTS = replace(
    _PLANTED,
    booting=frozenset({"irq_affinity", "isolation", "idle_states", "decoy_1", "decoy_3"}),
    boot_sigma=0.1,
    unbootable=frozenset({"decoy_3"}),
)
_NOTHING = replace(_PLANTED, alone={}, together={})


class _Case(NamedTuple):
    name: str
    world: World
    trials: int = 300
    settings: Settings = Settings()


_CASES = (
    _Case("planted", _PLANTED),
    _Case("planted, 150 trials", _PLANTED, 150),
    _Case("planted, 100 trials", _PLANTED, 100),
    _Case("planted, twice the noise", replace(_PLANTED, sigma=0.2), 600),
    _Case("planted, heavy-tailed noise", replace(_PLANTED, noise="heavy")),
    _Case("planted, one run in ten disturbed", replace(_PLANTED, noise="disturbed")),
    _Case("planted, drift of 35 % in 100 trials", replace(_PLANTED, drift=0.3)),
    _Case("decoys and harm within groups", _MIXED),
    _Case("interaction across groups", _APART),
    _Case("planted, five over boots, one does not boot", _BOOTS, 600),
    _Case("eight decoys", _NOTHING),
    _Case("eight decoys, heavy-tailed noise", replace(_NOTHING, noise="heavy")),
    _Case("eight decoys, one run in ten disturbed", replace(_NOTHING, noise="disturbed")),
    _Case("eight decoys, five over boots", replace(_BOOTS, alone={}, together={}), 600),
    _Case("eight decoys, drift of 35 % in 100 trials", replace(_NOTHING, drift=0.3)),
)


def main() -> None:
    """Print a row for each world."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", default="", help="only worlds with this in their name")
    asked = parser.parse_args()
    print("| world | trials allowed | exactly right | a false keep | a miss | trials, median |")
    print("|---|---|---|---|---|---|")
    for case in (one for one in _CASES if asked.world in one.name):
        counts: Counter[str] = Counter()
        trials = []
        for search in range(asked.seed, asked.seed + asked.searches):
            settings = replace(case.settings, trials=case.trials, seed=search)
            result = simulate(case.world, settings, seed=1_000_000 + search)
            kept, helpful = set(result.kept), case.world.helpful
            counts["right"] += kept == helpful
            counts["false"] += not kept <= helpful
            counts["missed"] += not helpful <= kept
            trials.append(result.trials)
        shares = [
            f"{counts[what] / asked.searches:.1%}".replace("%", " %")
            for what in ("right", "false", "missed")
        ]
        print("|", " | ".join([case.name, str(case.trials), *shares, f"{median(trials):.0f}"]), "|")


if __name__ == "__main__":
    main()
