"""How well explanations name causes: against disturbances whose times are known.

A packet was disturbed if disturbances on purpose cover at least half of what it took longer, while
the device was busy with it and those ahead of it; one that they cover less of has several causes,
and is left out. Some of those that were disturbed would have been late anyway: as large a share as
of those that were not. The others are late because of the disturbance, and what the explanation
gives the largest part of their excess to should be its name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tailtrim.errors import RunDirectoryError
from tailtrim.explain import explain
from tailtrim.plan.model import MOMENTS
from tailtrim.rundir import DISTURBED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.experiment import Experiment
    from tailtrim.rundir import RunDirectory

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

SCHEMA = "tailtrim.attribution/1"

#: Packets from this quantile on are late: many, since short disturbances make little difference.
_LATE_FROM = "0.9"

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
    "softirqs": "received packets",
}
#: The name of threads that disturb on purpose, and what receiving packets is called.
_THREAD, _RECEIVING = "tt-disturb", ("NET_RX", "ksoftirqd")
#: A disturbance of a moment that takes longer had to wait itself; what it did when is not known.
_LONG_NS = 1_000_000
#: What the trace has not seen, and other causes.
UNKNOWN, OTHER = "unknown", "other"


@dataclass(frozen=True, slots=True)
class Row:
    """What the explanation said of late packets, counted by what was done to them.

    ``disturbed`` and ``undisturbed`` are packets, ``late`` and ``late_undisturbed`` those of them
    that are late, by the cause that the explanation names.
    """

    what: str
    disturbances: int
    disturbed: int
    undisturbed: int
    late: dict[str, int]
    late_undisturbed: dict[str, int]
    mixed: int

    @property
    def expected(self) -> str | None:
        """What the explanation should say of those that were disturbed; none of the control."""
        return EXPECTED.get(self.what.partition(":")[0])

    @property
    def named(self) -> int:
        """Late packets that were disturbed, and whose cause was named."""
        return self.late.get(self.expected or "", 0)

    @property
    def wrong(self) -> int:
        """Late packets that were not disturbed, and are said to be."""
        return self.late_undisturbed.get(self.expected or "", 0)

    @property
    def due(self) -> float:
        """Late packets that are late because they were disturbed."""
        anyway = sum(self.late_undisturbed.values()) / max(self.undisturbed, 1)
        return sum(self.late.values()) - anyway * self.disturbed

    @property
    def recall(self) -> float | None:
        """The share of those late because of the disturbance whose cause was named, 1 at most."""
        return min(self.named / self.due, 1.0) if self.expected and self.due >= 1 else None

    @property
    def precision(self) -> float | None:
        """The share of the late packets given this cause that were disturbed."""
        given = self.named + self.wrong
        return self.named / given if given else None

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is printed by ``--json``."""
        more = {"expected": self.expected, "named": self.named, "wrong": self.wrong}
        shares = {"due": self.due, "recall": self.recall, "precision": self.precision}
        return {**asdict(self), **more, **shares}


def evaluate(experiment: Experiment) -> list[Row]:
    """Compare the explanations of an experiment's runs with what was done in them.

    Raises:
        RunDirectoryError: a run is missing, or has no trace.

    """
    complete = experiment.complete()
    if len(complete) < len(experiment.runs):
        raise RunDirectoryError(f"{experiment.path}: not all runs are complete")
    return [score(result, run.dut.disturb or "") for run, _, result in complete]


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
    verdict = host.verdict
    spans = list(_spans(run)) if what else []
    brief = [span for span in spans if span[1] - span[0] < _LONG_NS]
    known = brief if what.partition(":")[0] in MOMENTS else spans
    arrival, latency, covered = _coverage(run, known)
    anyhow = _coverage(run, spans)[2]
    excess = np.maximum(latency - verdict["service"]["base_ns"], 0)
    disturbed = (covered > 0) & (2 * covered >= excess)
    mixed = (anyhow > 0) & ~disturbed
    kind = dict(zip(arrival.tolist(), (disturbed + 2 * mixed).tolist(), strict=True))
    counted: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for late in verdict["late"]:
        # Those that other packets' own service made late are the load's.
        if 2 * late["queue_ns"] < late["excess_ns"]:
            counted[kind[late["arrival_ns"]]][_dominant(late, verdict["causes"])] += 1
    left = int((~disturbed & ~mixed).sum())
    late_undisturbed, late_disturbed, late_mixed = map(dict, counted)
    return Row(
        what,
        len(known),
        int(disturbed.sum()),
        left,
        late_disturbed,
        late_undisturbed,
        sum(late_mixed.values()),
    )


def _coverage(
    run: RunDirectory, spans: Sequence[tuple[int, int]]
) -> tuple[Integers, Integers, Integers]:
    """Return arrivals and latencies, and how much of each packet's time spans cover.

    A packet's time begins when the device became busy without a break until it left.
    """
    samples = run.table("sample")
    arrival = samples["ingress_ns"].to_numpy().astype(np.int64)
    latency = samples["latency_ns"].to_numpy().astype(np.int64)
    order = np.lexsort((latency, arrival))
    arrival, latency = arrival[order], latency[order]
    until = arrival + latency
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(until)[:-1]))
    first = np.where(arrival > before, np.arange(arrival.size), 0)
    since = arrival[np.maximum.accumulate(first)]
    edges = np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)
    lengths = np.concatenate(([0], np.cumsum(edges[:, 1] - edges[:, 0])))

    def passed(at: Integers) -> Integers:
        """Return how much of the spans lies before a time."""
        begun = np.searchsorted(edges[:, 0], at, side="right")
        last = np.maximum(begun - 1, 0)
        if not edges.size:
            return np.zeros_like(at)
        beyond = np.clip(edges[last, 1] - at, 0, None)
        return lengths[begun] - np.where(begun > 0, beyond, 0)

    return arrival, latency, passed(until) - passed(since)


def _spans(run: RunDirectory) -> Iterator[tuple[int, int]]:
    path = run.path / DISTURBED
    try:
        lines = path.read_text("ascii").splitlines()
        for line in lines:
            start, end = line.split(",")
            yield int(start), int(end)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: no record of disturbances: {error}") from error


def _dominant(late: dict[str, Any], causes: Sequence[dict[str, Any]]) -> str:
    parts: dict[str, int] = {UNKNOWN: late["unknown_ns"]}
    for index, ns in late["causes"]:
        name = _class(causes[index])
        parts[name] = parts.get(name, 0) + ns
    return max(parts, key=lambda name: parts[name])


def _class(cause: dict[str, Any]) -> str:
    if cause["name"] == _THREAD:
        return "thread"
    signature = cause["signature"]
    steered = signature is not None and signature["name"] == "packet steering"
    if cause["name"].startswith(_RECEIVING) or steered:
        return "received packets"
    name = signature["name"] if signature else OTHER
    name = name.removeprefix("start-up ").removesuffix("s") if "shootdown" in name else name
    return name if name in EXPECTED.values() else OTHER
