"""Error rates of verdicts on promises: ``docs/promises.md``.

Runs whose share of bad packets is known are simulated: independent ones, ones that are correlated
from packet to packet, stalls that make successive packets late, packets that are lost in bursts,
and runs that differ. The verdicts are those of ``--assert`` on a run directory, in which the times
of lost packets are known by the second only.

    python benchmarks/promise_errors.py [RUNS [FIRST_SEED [NAME]]]

With a name, such as ``lost``, only the processes that have it in theirs.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.signal import lfilter

import tailtrim
from tailtrim.analysis.slo import Decision, JudgedRun, Objective, Promise, Verdict, promised

if TYPE_CHECKING:
    from collections.abc import Callable

_EXAMPLE = Path(__file__).resolve().parents[1] / "examples/testpmd"
_GAP_NS = 100_000
_DEADLINE_NS = 1_000_000
_LIMIT = 1e-3
#: True shares of bad packets, as parts of the limit.
_SHARES = (0.5, 1.0, 2.0)


@dataclass
class Simulated:
    """A run of 10,000 packets a second, as far as a verdict needs one."""

    summary: Any
    tables: dict[str, pa.Table]

    def table(self, name: str) -> pa.Table:
        """Return a table."""
        return self.tables[name]


@dataclass(frozen=True)
class Case:
    """A process, packets in a run, and runs that are judged together.

    ``process`` returns the latencies of packets of which a share is bad; infinite ones are lost.
    """

    name: str
    packets: int
    process: Callable[[np.random.Generator, int, float], np.ndarray]
    runs: int = 1


def independent(random: np.random.Generator, packets: int, share: float) -> np.ndarray:
    """Latencies with an exponential tail, 20 µs on average without the deadline."""
    return _latency(random.random(packets), share)


def correlated(of: float) -> Callable[[np.random.Generator, int, float], np.ndarray]:
    """Return latencies that follow a Gaussian autoregression of first order."""

    def process(random: np.random.Generator, packets: int, share: float) -> np.ndarray:
        steps = random.standard_normal(packets) * (1 - of * of) ** 0.5
        steps[0] = random.standard_normal()
        z = lfilter([1.0], [1.0, -of], steps)
        late = z > NormalDist().inv_cdf(1 - share)
        latency_ns: np.ndarray = np.where(late, 2.0, 0.5) * _DEADLINE_NS * np.exp(z / 20)
        return latency_ns

    return process


def stalls(length: float) -> Callable[[np.random.Generator, int, float], np.ndarray]:
    """Return latencies with stalls; so many successive ones are late in a stall, on average."""

    def process(random: np.random.Generator, packets: int, share: float) -> np.ndarray:
        latency_ns = 20_000 * random.lognormal(0, 0.3, packets)
        latency_ns[_spells(random, packets, share, length)] = 2.0 * _DEADLINE_NS
        return latency_ns

    return process


def lost(length: float) -> Callable[[np.random.Generator, int, float], np.ndarray]:
    """Return latencies of packets that are lost in bursts, so many on average (Gilbert 1960)."""

    def process(random: np.random.Generator, packets: int, share: float) -> np.ndarray:
        latency_ns = 20_000 * random.lognormal(0, 0.3, packets)
        latency_ns[_spells(random, packets, share, length)] = np.inf
        return latency_ns

    return process


def differing(spread: float) -> Callable[[np.random.Generator, int, float], np.ndarray]:
    """Return latencies of runs whose shares of bad packets have this relative deviation."""

    def process(random: np.random.Generator, packets: int, share: float) -> np.ndarray:
        shape = 1 / spread**2
        own = share * random.gamma(shape, 1 / shape)
        return independent(random, packets, own)

    return process


def _latency(uniform: np.ndarray, share: float) -> np.ndarray:
    """Return latencies; a share of them exceeds the deadline."""
    mean_ns = _DEADLINE_NS / -log(share)
    latency_ns: np.ndarray = -np.log(uniform) * mean_ns
    return latency_ns


def _spells(random: np.random.Generator, packets: int, share: float, length: float) -> np.ndarray:
    """Return which packets are in a bad state, of a chain with two states in equilibrium."""
    bad = np.zeros(packets, dtype=bool)
    leaves, enters = 1 / length, share / (1 - share) / length
    at, state = 0, random.random() < share
    while at < packets:
        lasts = int(random.geometric(leaves if state else enters))
        if state:
            bad[at : at + lasts] = True
        at, state = at + lasts, not state
    return bad


CASES = (
    *(Case("independent", packets, independent) for packets in (3_000, 10_000, 100_000)),
    *(Case("correlated 0.9", packets, correlated(0.9)) for packets in (10_000, 100_000)),
    *(Case("correlated 0.99", packets, correlated(0.99)) for packets in (100_000, 300_000)),
    *(Case("stalls of 10", packets, stalls(10)) for packets in (10_000, 30_000, 100_000, 300_000)),
    *(Case("lost one by one", packets, lost(1)) for packets in (10_000, 100_000)),
    *(Case("lost in tens", packets, lost(10)) for packets in (10_000, 30_000, 100_000, 300_000)),
    *(Case("differing by 50 %", 50_000, differing(0.5), runs) for runs in (3, 5, 10)),
)


def main() -> None:
    """Print a row for each case."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 31_000_000  # noqa: PLR2004 - the second one
    only = sys.argv[3] if len(sys.argv) > 3 else ""  # noqa: PLR2004 - the third one
    captures = (_EXAMPLE / "ingress.pcap.zst", _EXAMPLE / "egress.pcap.zst")
    summary = tailtrim.analyze(*captures).summary
    shares = " | ".join(f"{share:g} of the limit" for share in _SHARES)
    print(f"| packets are bad | packets | runs | {shares} | met without a bad one |")
    print("|---|---:|---:|" + "---:|" * (len(_SHARES) + 1), flush=True)
    for case in CASES:
        if only not in case.name:
            continue
        cells = []
        unseen = 0
        for place, share in enumerate(_SHARES):
            told: Counter[Decision] = Counter()
            for number in range(runs):
                random = np.random.default_rng((first, place, number))
                verdict = _verdict(case, share * _LIMIT, random, summary)
                told[verdict.decision] += 1
                met = verdict.decision is Decision.PASSED
                unseen += met and share == 1.0 and verdict.value == 0
            cells.append(_cell(told, runs))
        told_of = f"{case.packets:,} | {case.runs}"
        cells.append(f"{100 * unseen / runs:.1f}")
        print(f"| {case.name} | {told_of} | {' | '.join(cells)} |", flush=True)


def _cell(told: Counter[Decision], runs: int) -> str:
    met, broken = (100 * told[one] / runs for one in (Decision.PASSED, Decision.FAILED))
    return f"{met:.1f} / {broken:.1f}"


def _verdict(case: Case, share: float, random: np.random.Generator, summary: Any) -> Verdict:
    runs = [
        JudgedRun(f"run-{number}", _run(case.process(random, case.packets, share), summary))
        for number in range(case.runs)
    ]
    promise = Promise("simulated", _DEADLINE_NS, Fraction(1, 1_000), "simulation")
    objective = Objective("simulated", "quantile", Fraction(_DEADLINE_NS), "0.999", promise=promise)
    (((verdict,),),) = ((found,) for _, found in promised(runs, [objective]))
    return verdict


def _run(latency_ns: np.ndarray, summary: Any) -> Simulated:
    sent_ns = np.arange(latency_ns.size, dtype=np.int64) * _GAP_NS
    arrived = np.isfinite(latency_ns)
    gone = np.bincount(sent_ns[~arrived] // 10**9, minlength=1)
    ingress = replace(
        summary.ingress,
        packets=latency_ns.size,
        unstamped=0,
        matched=int(arrived.sum()),
        lost=int((~arrived).sum()),
        beyond_window=0,
    )
    tap = replace(summary.ingress_tap, first_ns=0, last_ns=int(sent_ns[-1]))
    sample = {
        "ingress_ns": sent_ns[arrived],
        "latency_ns": latency_ns[arrived].astype(np.int64),
    }
    second = {"second": np.arange(gone.size), "lost": gone.astype(np.int64)}
    whole = replace(summary, ingress=ingress, ingress_tap=tap, samples=int(arrived.sum()))
    return Simulated(whole, {"sample": pa.table(sample), "second": pa.table(second)})


if __name__ == "__main__":
    main()
