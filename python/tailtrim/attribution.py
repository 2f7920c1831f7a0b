"""How well explanations name causes: against disturbances whose times are known.

A late packet was disturbed if disturbances on purpose cover at least half of what it took longer,
while the device was busy with it and those ahead of it. What the explanation gives the largest part
of that to is compared with what was done. One that disturbances cover less of has several causes,
and is counted but says nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.explain import explain
from tailtrim.measurement import DISTURBED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.experiment import Experiment
    from tailtrim.rundir import RunDirectory

SCHEMA = "tailtrim.attribution/1"

#: Packets from this quantile on are late: many, since short disturbances make little difference.
_LATE_FROM = "0.95"

#: What each disturbance looks like in an explanation.
EXPECTED = {
    "munmap": "TLB shootdown",
    "mprotect": "TLB shootdown",
    "membarrier": "membarrier",
    "bpf": "code patching",
    "pause": "device asleep",
    "stop": "device stopped",
    "quota": "device throttled",
    "thread": "thread",
    "fifo": "thread",
    "timers": "timer interrupt",
    "softirqs": "softirq",
}
#: Names of threads that disturb on purpose, and softirqs that packets cause.
_THREAD, _SOFTIRQS = "tt-disturb", ("NET_RX", "ksoftirqd")
#: Neither of these is a cause that the trace has seen.
QUEUE, UNKNOWN, OTHER = "queueing", "unknown", "other"


@dataclass(frozen=True, slots=True)
class Row:
    """What the explanation said of late packets, counted by what was done to them."""

    what: str
    disturbed: dict[str, int]
    undisturbed: dict[str, int]
    mixed: int

    @property
    def expected(self) -> str | None:
        """What the explanation should say of those that were disturbed; none of the control."""
        return EXPECTED.get(self.what.partition(":")[0])

    @property
    def recall(self) -> float | None:
        """The share of disturbed late packets whose cause was named."""
        return _share(self._right, sum(self.disturbed.values()))

    @property
    def precision(self) -> float | None:
        """The share of the late packets given this cause that were disturbed."""
        return _share(self._right, self._right + self.undisturbed.get(self.expected or "", 0))

    @property
    def _right(self) -> int:
        return self.disturbed.get(self.expected or "", 0)

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is printed by ``--json``."""
        shares = {"recall": self.recall, "precision": self.precision}
        return {**asdict(self), "expected": self.expected, **shares}


def evaluate(experiment: Experiment) -> list[Row]:
    """Compare the explanations of an experiment's runs with what was done in them.

    Raises:
        RunDirectoryError: a run is missing, or has no trace.

    """
    complete = experiment.complete()
    if len(complete) < len(experiment.runs):
        raise RunDirectoryError(f"{experiment.path}: not all runs are complete")
    return [score(result, run.dut.disturb or "") for run, _, result in complete]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def score(run: RunDirectory, what: str, *, late_from: str = _LATE_FROM) -> Row:
    """Compare an explanation with what was done.

    Args:
        run: a run with a trace, and a record of disturbances unless ``what`` is empty.
        what: the disturbance as the plan has it.
        late_from: packets from this quantile on are late.

    Raises:
        RunDirectoryError: the run has no trace, or no record of disturbances.

    """
    host = explain(run, late_from=late_from).host
    if host is None:
        raise RunDirectoryError(f"{run.path}: has no trace, expected a plan with trace: true")
    spans = list(_spans(run)) if what else []
    disturbed: Counter[str] = Counter()
    undisturbed: Counter[str] = Counter()
    mixed = 0
    busy = _busy_periods(run)
    for late in host.verdict["late"]:
        since, until = busy[late["arrival_ns"]], late["arrival_ns"] + late["latency_ns"]
        covered = _covered(spans, since, until)
        if 0 < 2 * covered < late["excess_ns"]:
            mixed += 1
            continue
        named = _dominant(late, host.verdict["causes"])
        (disturbed if covered else undisturbed)[named] += 1
    return Row(what, dict(disturbed), dict(undisturbed), mixed)


def _covered(spans: Sequence[tuple[int, int]], since: int, until: int) -> int:
    """Return how much of a time spans cover; they are in order and do not overlap."""
    covered = 0
    for start, end in spans[bisect_left(spans, since, key=lambda span: span[1]) :]:
        if start >= until:
            break
        covered += min(end, until) - max(start, since)
    return covered


def _spans(run: RunDirectory) -> Iterator[tuple[int, int]]:
    path = run.path / DISTURBED
    try:
        lines = path.read_text("ascii").splitlines()
        for line in lines:
            start, end = line.split(",")
            yield int(start), int(end)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: no record of disturbances: {error}") from error


def _busy_periods(run: RunDirectory) -> dict[int, int]:
    """Return of each arrival since when the device was busy without a break."""
    samples = run.table("sample")
    arrivals = samples["ingress_ns"].to_pylist()
    latencies = samples["latency_ns"].to_pylist()
    since: dict[int, int] = {}
    start = until = -1
    for arrival, latency in sorted(zip(arrivals, latencies, strict=True)):
        if arrival > until:
            start = arrival
        until = max(until, arrival + latency)
        since[arrival] = start
    return since


def _dominant(late: dict[str, Any], causes: Sequence[dict[str, Any]]) -> str:
    parts: dict[str, int] = {QUEUE: late["queue_ns"], UNKNOWN: late["unknown_ns"]}
    for index, ns in late["causes"]:
        name = _class(causes[index])
        parts[name] = parts.get(name, 0) + ns
    return max(parts, key=lambda name: parts[name])


def _class(cause: dict[str, Any]) -> str:
    if cause["name"] == _THREAD:
        return "thread"
    if cause["name"].startswith(_SOFTIRQS):
        return "softirq"
    signature = cause["signature"]
    name = signature["name"] if signature else OTHER
    name = name.removeprefix("start-up ").removesuffix("s") if "shootdown" in name else name
    return name if name in EXPECTED.values() else OTHER
