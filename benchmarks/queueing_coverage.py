"""Coverage of predictions: simulated devices, whose truth is known.

    python benchmarks/queueing_coverage.py [WORLDS [FIRST_SEED]]

Each world has one run at 30 to 50 % of its highest rate, 4 s long, with a trace. From that, its
latency is predicted at other rates, without its tick, and on a CPU that is 20 % faster. The truth
is simulated: another run as long as a replay (the target of a band), and one of 40 s.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "queueing" / "support"))

from simulated_queues import World, left_run, simulated

from tailtrim.analysis.queueing import predicted
from tailtrim.analysis.queueing.replay import MOST

_LOADS = (0.5, 0.7, 0.85, 0.95)
_CHANGED = 0.7
_LONG_S = 40.0
_SERVICES = ("constant", "normal", "exponential", "two")


def main() -> None:
    """Simulate so many worlds, and print a table."""
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 7_000_000  # noqa: PLR2004 - the second one
    counts: Counter[tuple[str, str, str]] = Counter()
    with ProcessPoolExecutor() as processes:
        for done, found in enumerate(processes.map(_counted, range(first, first + worlds)), 1):
            counts.update(found)
            print(f"{done} of {worlds}", file=sys.stderr, flush=True)
    kinds = sorted({(what, p) for what, p, _ in counts})
    print("| predicted | quantile | told | new run within | long run within |")
    print("|---|---|---:|---:|---:|")
    for what, p in kinds:
        told, new, long = (counts[what, p, key] for key in ("told", "new", "long"))
        share = f"{new} ({100 * new / told:.0f} %)" if p else "-"
        print(f"| {what} | {p or '-'} | {told} | {share} | {long} ({100 * long / told:.0f} %) |")


def _counted(seed: int) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    _count(np.random.default_rng(seed), counts)
    return counts


def _world(random: np.random.Generator) -> World:
    return World(
        service=str(random.choice(_SERVICES)),
        mean_ns=float(random.uniform(5_000, 20_000)),
        transport_ns=float(random.uniform(1_000, 10_000)),
        tick_hz=float(random.choice([100.0, 250.0, 1000.0])),
        tick_ns=float(random.uniform(3_000, 30_000)),
        thread_hz=float(random.uniform(20, 100)),
        thread_ns=float(random.uniform(30_000, 200_000)),
        burst=int(random.choice([1, 8])),
    )


def _count(random: np.random.Generator, counts: Counter[tuple[str, str, str]]) -> None:
    world = _world(random)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "run"
        left_run(place, world.at(float(random.uniform(0.3, 0.5))), random)
        rates = [load * world.r_max_pps for load in _LOADS]
        plain = predicted(place, rates_pps=rates)
        r_max = plain.r_max_pps
        counts["R_max", "", "told"] += 1
        counts["R_max", "", "long"] += r_max.low <= world.r_max_pps <= r_max.high
        for load, point in zip(_LOADS, plain.points, strict=True):
            _points(f"{100 * load:.0f} % of R_max", point, world, random, counts)
        rate = _CHANGED * world.r_max_pps
        for what, options, changed in (
            ("without the tick", {"without": ["tick"]}, replace(world, tick_hz=0.0)),
            ("20 % faster", {"faster": 0.2}, replace(world, mean_ns=world.mean_ns / 1.2)),
        ):
            asked: dict[str, Any] = {"rates_pps": [rate], **options}
            (point,) = predicted(place, **asked).points
            _points(what, point, changed, random, counts)


def _points(
    what: str,
    point: Any,
    world: World,
    random: np.random.Generator,
    counts: Counter[tuple[str, str, str]],
) -> None:
    seconds = min(world.seconds, MOST / point.rate_pps)
    new, long = (
        simulated(replace(world, rate_pps=point.rate_pps, seconds=each), random).latency_ns
        for each in (seconds, _LONG_S)
    )
    for quantile in point.quantiles:
        key = f"p{float(quantile.p) * 100:g}"
        counts[what, key, "told"] += 1
        for kind, latency_ns in (("new", new), ("long", long)):
            true_ns = float(np.quantile(latency_ns, float(quantile.p), method="inverted_cdf"))
            # Stamps are whole nanoseconds.
            inside = quantile.low_ns - 1 <= true_ns <= quantile.high_ns + 1
            counts[what, key, kind] += inside


if __name__ == "__main__":
    main()
