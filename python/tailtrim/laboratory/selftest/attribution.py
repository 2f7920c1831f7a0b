"""Accuracy of explanations, tested with disturbances at known times.

The program that disturbs the device records the times of its disturbances, and the device records
the times at which it stood still. Neither record takes part in the explanation. Where both agree,
the device was held up on purpose. A device without such a record counts as held up during each
disturbance in which it passed no packet from begin to end.

The excess of a packet is the time that it took longer than usual. The device stood still for this
time in the packet's own turn, or in the turns of packets ahead of it: their excess stays in the
queue and drains, all parts alike. A packet was disturbed if at least half of its excess is by the
disturbance, and was not if no disturbance came near it. Packets between these cases have several
causes and are left out. The explanation should give the largest part of a disturbed packet's excess
to the disturbance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tailtrim.analysis.explain import explain
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.devices.disturbed import MOMENTS, DisturbedDevice
from tailtrim.results import DISTURBED, STALLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.results import RunDirectory

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

SCHEMA = "tailtrim.attribution/1"

#: Packets from this quantile on are late: many, since short disturbances make little difference;
#: a higher one would choose those of them that met something else, too.
_LATE_FROM = "0.5"

#: Name of each disturbance in an explanation.
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
#: Without CPU quota, a device stands until it is given back, give or take that much; since when,
#: only the device knows.
_UNTIL, _UNTIL_NS = "quota", 500_000
#: The name of threads that disturb on purpose, the names of packet reception, and the function
#: of timers on purpose, where the tick may be handled in the same interrupt.
_THREAD, _RECEIVING, _TIMER = "tt-disturb", ("NET_RX", "ksoftirqd"), "timerfd"
#: A disturbance of a moment is left out if it takes so many times the median: it had to wait
#: itself, such as for a device that was interrupted already, and the time of its effect is not
#: known. Likewise a device that stood still for so long: another cause took part.
_LONG = 2
#: Disturbances that last, but take the device a moment at a time.
_STORMS = ("timers", "softirqs")
#: Causes that the trace has not seen, and other causes.
UNKNOWN, OTHER = "unknown", "other"
_NONE = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class AttributionScore:
    """Result of an explanation for late packets, counted by their known disturbance.

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
        """Cause that the explanation should name of disturbed packets; ``None`` for the control."""
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
    def due(self) -> int:
        """Late packets that were disturbed."""
        return sum(self.late.values())

    @property
    def recall(self) -> float | None:
        """The share of the late packets that were disturbed whose cause was named."""
        return self.named / self.due if self.expected and self.due else None

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


def evaluate(experiment: Experiment) -> list[AttributionScore]:
    """Compare the explanations of an experiment's runs with what was done in them.

    Raises:
        RunDirectoryError: a run is missing, or has no trace.

    """
    complete = experiment.complete()
    if len(complete) < len(experiment.runs):
        raise RunDirectoryError(f"{experiment.path}: not all runs are complete")
    return [
        score(result, (run.dut.disturb if isinstance(run.dut, DisturbedDevice) else None) or "")
        for run, _, result in complete
    ]


def score(run: RunDirectory, what: str, *, late_from: str = _LATE_FROM) -> AttributionScore:
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
    done = _spans(run.path / DISTURBED) if what else _NONE
    passed = _passed_packets(run)
    held = _standing(run, done, _kind(what), passed)
    disturbed = _by(held, passed, verdict["service"])
    arrival = passed.arrival
    near = _covered(np.concatenate((done, held)), passed.since, passed.until)
    mixed = (near > 0) & ~disturbed
    kind = dict(zip(arrival.tolist(), (disturbed + 2 * mixed).tolist(), strict=True))
    counted: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for late in verdict["late"]:
        # Those that other packets' own service made late are the load's.
        if 2 * late["queue_ns"] < late["excess_ns"]:
            counted[kind[late["arrival_ns"]]][_dominant(late, verdict["causes"])] += 1
    left = int((~disturbed & ~mixed).sum())
    late_undisturbed, late_disturbed, late_mixed = map(dict, counted)
    return AttributionScore(
        what,
        len(done),
        int(disturbed.sum()),
        left,
        late_disturbed,
        late_undisturbed,
        sum(late_mixed.values()),
    )


def _kind(what: str) -> str:
    return what.partition(":")[0]


def _standing(run: RunDirectory, done: Integers, kind: str, passed: _Passed) -> Integers:
    """Return when the device stood still because of the disturbance.

    That is at least half of the time for which it did: otherwise it may have been something else.
    Without quota, it is from then on, and until that is given back.
    """
    if kind in MOMENTS:
        done = _brief(done)
    path = run.path / STALLS
    if not path.exists():
        return done if kind in (*MOMENTS, *_STORMS) else _uninterrupted(done, passed)
    stalls = _spans(path)
    if kind == _UNTIL:
        back = np.column_stack((done[:, 1] - _UNTIL_NS, done[:, 1] + _UNTIL_NS))
        begun = _covered(done, stalls[:, 0], stalls[:, 0] + 1) > 0
        return stalls[begun & (_covered(back, stalls[:, 1] - 1, stalls[:, 1]) > 0)]
    held = stalls[2 * _covered(done, stalls[:, 0], stalls[:, 1]) >= stalls[:, 1] - stalls[:, 0]]
    return _brief(held) if kind in (*MOMENTS, *_STORMS) else held


def _brief(spans: Integers) -> Integers:
    """Return those that did not wait."""
    took = spans[:, 1] - spans[:, 0]
    return spans[took <= _LONG * np.median(took)] if took.size else spans


def _uninterrupted(spans: Integers, passed: _Passed) -> Integers:
    """Return those during which no packet passed from begin to end.

    During others, the disturbance was interrupted itself, and the device went on.
    """
    begun_before = np.searchsorted(passed.begin, spans[:, 0])
    left_within = np.searchsorted(passed.until, spans[:, 1], side="right")
    return spans[left_within <= begun_before]


def _merged(spans: Integers) -> Integers:
    """Return the same times, in order and apart."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    until = np.maximum.accumulate(spans[:, 1])
    first = np.append(True, spans[1:, 0] > until[:-1])[: len(spans)]
    last = np.append(first[1:], True)[: len(spans)]
    return np.column_stack((spans[first, 0], until[last]))


@dataclass(frozen=True, slots=True)
class _Passed:
    """Packets in the order in which they left: when each came, since when the device was busy."""

    arrival: Integers
    since: Integers
    #: When it was the packet's turn, and when it left.
    begin: Integers
    until: Integers


def _passed_packets(run: RunDirectory) -> _Passed:
    samples = run.table("sample")
    arrival = samples["ingress_ns"].to_numpy().astype(np.int64)
    until = arrival + samples["latency_ns"].to_numpy().astype(np.int64)
    order = np.lexsort((arrival, until))
    arrival, until = arrival[order], until[order]
    before = np.concatenate(([np.iinfo(np.int64).min], until[:-1]))
    first = np.where(arrival > before, np.arange(arrival.size), 0)
    since = arrival[np.maximum.accumulate(first)]
    return _Passed(arrival, since, np.maximum(arrival, before), until)


def _by(
    held: Integers, packets: _Passed, service: dict[str, int]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which packets have at least half of their excess from the times in ``held``."""
    begin, until = packets.begin, packets.until
    wait = begin - packets.arrival
    usual = np.where(wait > 0, service["service_ns"], service["base_ns"])
    longer = np.maximum(until - begin - usual, 0)
    stood = np.minimum(_covered(held, begin, until), longer)
    disturbed = np.zeros(begin.size, dtype=np.bool_)
    # Excess of the packets ahead that is left in the queue: all of it, and that by the disturbance.
    left_ns = of_it_ns = 0.0
    rows = zip(longer.tolist(), stood.tolist(), wait.tolist(), strict=True)
    for number, (longer_ns, stood_ns, wait_ns) in enumerate(rows):
        remains = min(1.0, wait_ns / left_ns) if left_ns else 0.0
        left_ns, of_it_ns = left_ns * remains + longer_ns, of_it_ns * remains + stood_ns
        disturbed[number] = of_it_ns > 0 and 2 * of_it_ns >= wait_ns + longer_ns
    return disturbed


def _covered(spans: Integers, since: Integers, until: Integers) -> Integers:
    """Return how much of some times spans cover."""
    passed = _passed(_merged(spans))
    return passed(until) - passed(since)


def _passed(spans: Integers) -> Callable[[Integers], Integers]:
    """Return how much of spans that are in order and apart lies before a time, as a function."""
    lengths = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))

    def passed(at: Integers) -> Integers:
        begun = np.searchsorted(spans[:, 0], at, side="right")
        if not len(spans):
            return np.zeros_like(at)
        beyond = np.clip(spans[np.maximum(begun - 1, 0), 1] - at, 0, None)
        return lengths[begun] - np.where(begun > 0, beyond, 0)

    return passed


def _spans(path: Path) -> Integers:
    """Read times, from and to."""
    try:
        lines = path.read_text("ascii").splitlines()
        spans = [tuple(map(int, line.split(","))) for line in lines]
        return np.array(spans, dtype=np.int64).reshape(-1, 2)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: expected times from,to in ns: {error}") from error


def _dominant(late: dict[str, Any], causes: Sequence[dict[str, Any]]) -> str:
    """Return what has the largest part of the excess; causes without a name count each alone."""
    parts: dict[tuple[str, int | None], int] = {(UNKNOWN, None): late["unknown_ns"]}
    for index, ns in late["causes"]:
        name = _class(causes[index])
        key = (name, index if name == OTHER else None)
        parts[key] = parts.get(key, 0) + ns
    return max(parts, key=lambda key: parts[key])[0]


def _class(cause: dict[str, Any]) -> str:
    if cause["name"] == _THREAD:
        return "thread"
    signature = cause["signature"]
    steered = signature is not None and signature["name"] == "packet steering"
    if cause["name"].startswith(_RECEIVING) or steered:
        return "received packets"
    if _TIMER in (cause["detail"] or ""):
        return EXPECTED["timers"]
    name = signature["name"] if signature else OTHER
    name = name.removeprefix("start-up ").removesuffix("s") if "shootdown" in name else name
    return name if name in EXPECTED.values() else OTHER
