"""A generator that is late makes nothing of its own the device's, against a queue that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tailtrim.analysis.slo import objectives
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.capacity.bounds import Bound
from tailtrim.laboratory.capacity.lateness import LateSpan, beyond, late_packets, late_spans
from tailtrim.laboratory.capacity.loss_goal import LossGoal
from tailtrim.laboratory.capacity.promise import Condition, Promise
from tailtrim.laboratory.capacity.trial import LOST, Count, Trial, TrialResult
from tailtrim.laboratory.experiment.taps import held_packets, needed_mb
from tailtrim.laboratory.plan import Traffic

if TYPE_CHECKING:
    from pathlib import Path

Integers = np.ndarray[Any, np.dtype[np.int64]]

#: In steps of 1 µs: packets come every 10, and a packet takes 8 to 9 of the device.
GAP, PACKETS, TICK, DEADLINE = 10, 20_000, 4_000, 2_000


def served(arrivals: Integers, work: Integers) -> Integers:
    """Return when packets leave a queue that serves one after the other."""
    left, free = [], 0
    for at, takes in zip(arrivals.tolist(), work.tolist(), strict=True):
        free = max(at, free) + takes
        left.append(free)
    return np.array(left)


def sent(due: Integers, stalls: list[int]) -> tuple[Integers, list[LateSpan]]:
    """Return when a generator sends that stands still for a tick at times, and when it is late."""
    at, free, places = [], 0, iter([*stalls, PACKETS])
    stall = next(places)
    for number, when in enumerate(due.tolist()):
        if number == stall:
            free, stall = max(when, free) + TICK, next(places)
        free = max(when, free + 3)
        at.append(free)
    times = np.array(at)
    late = np.flatnonzero(times > due)
    spans = []
    for part in np.split(late, np.flatnonzero(np.diff(late) > 1) + 1):
        if part.size:
            most = int((times - due)[part].max())
            spans.append(LateSpan(int(times[part[0]]), int(times[part[-1]]), most))
    return times, spans


@pytest.mark.parametrize("seed", range(20_261_123, 20_261_133))
def test_what_is_called_good_or_bad_is_that_under_punctual_load(seed: int) -> None:
    rng = np.random.default_rng(seed)
    due = np.arange(PACKETS, dtype=np.int64) * GAP
    work = rng.integers(8, 10, PACKETS)
    # The device stands still as well, also at the same time.
    work[rng.integers(0, PACKETS, 3)] += TICK
    stalls = sorted(rng.integers(0, PACKETS, 4).tolist())
    times, spans = sent(due, stalls)
    truly = served(due, work) - due >= DEADLINE
    latency = served(times, work) - times
    bad, unknown = beyond(times, latency, spans, DEADLINE)
    assert truly[bad].all()
    assert not truly[~bad & ~unknown].any()
    assert bad.any()
    assert unknown.any()


def test_without_lateness_all_is_known() -> None:
    latency = np.array([1, 5, 9, 5])
    bad, unknown = beyond(np.array([3, 2, 1, 0]), latency, [], 5)
    assert bad.tolist() == [False, True, True, True]
    assert not unknown.any()


def test_a_stall_of_the_generator_alone_leaves_no_packet_bad() -> None:
    due = np.arange(PACKETS, dtype=np.int64) * GAP
    times, spans = sent(due, [100])
    latency = served(times, np.full(PACKETS, 9)) - times
    # By what is measured packets would be late: they came all at once.
    assert (latency >= DEADLINE).sum() > 100
    bad, unknown = beyond(times, latency, spans, DEADLINE)
    assert not bad.any()
    assert unknown[latency >= DEADLINE].all()


def test_of_an_overload_the_packets_are_bad_although_the_generator_was_late() -> None:
    due = np.arange(PACKETS, dtype=np.int64) * GAP
    times, spans = sent(due, [5_000])
    latency = served(times, np.full(PACKETS, 11)) - times
    bad, unknown = beyond(times, latency, spans, DEADLINE)
    assert bad.mean() > 0.7
    assert unknown.mean() < 0.2


def test_packets_of_late_spans_are_counted_from_when_they_were_due() -> None:
    spans = [LateSpan(0, 2_000_000, 4_000_000), LateSpan(9_000_000, 9_100_000, 30_000)]
    assert late_packets(spans, 100_000, beyond_ns=1e6) == 600
    assert late_packets(spans, 100_000, beyond_ns=0) == 600 + 13


NDR, PDR = LossGoal("NDR", 0.0, 1.0, 3.0), LossGoal("PDR", 0.005, 1.0, 3.0)


def lossy(bad: int, unknown: int) -> TrialResult:
    return TrialResult(Trial(1_000, 1.0), 1.0, {LOST: Count(bad, 1_000, unknown=unknown)})


def test_loss_that_may_be_the_generators_makes_a_load_neither_good_nor_bad() -> None:
    perhaps, surely, hardly = lossy(0, 5), lossy(6, 5), lossy(0, 0)
    # Five of 1,000 are PDR's limit, whoever lost them.
    assert PDR.judge([perhaps] * 2, 1e3).bound is Bound.LOWER
    assert NDR.judge([perhaps] * 2, 1e3).bound is None
    assert NDR.judge([perhaps] * 2, 1e3).more_s == 1.0
    assert NDR.judge([perhaps] * 3, 1e3).given_up
    assert NDR.judge([perhaps, hardly, hardly], 1e3).bound is Bound.LOWER
    for goal in (NDR, PDR):
        assert goal.judge([perhaps, surely, surely], 1e3).bound is Bound.UPPER


def test_what_is_unknown_counts_for_neither_side_of_a_promise() -> None:
    (one,) = (Condition.of(each) for each in objectives("p99 < 1ms"))
    goal = Promise("p99 < 1ms", (one,), 0.95, 1.0, 1.0)

    def bound(*count: int) -> Bound | None:
        bad, packets, unknown = count
        counts = {one.text: Count(bad, packets, unknown=unknown)}
        return goal.judge([TrialResult(Trial(1_000, 1.0), 1.0, counts)], 1e3).bound

    assert bound(0, 500, 0) is Bound.LOWER
    assert bound(0, 550, 50) is Bound.LOWER
    # Too few packets have a known outcome.
    assert bound(0, 550, 350) is None
    assert bound(40, 550, 50) is Bound.UPPER


class Run:
    """The part of a run directory that :func:`late_spans` uses."""

    def __init__(self, path: Path, stamps: str) -> None:
        self.path, self.stamps = path, stamps

    def capture(self) -> dict[str, Any]:
        return {"taps": {"ingress": {"stamps": self.stamps}}}


def test_the_log_of_departures_is_read(tmp_path: Path) -> None:
    log = tmp_path / "departures.csv"
    software, hardware = (Run(tmp_path, stamps) for stamps in ("software", "hardware"))
    assert late_spans(software) is None  # type: ignore[arg-type]
    log.write_text("kind,from_ns,to_ns,late_ns\nlate,5,9,3\nstalled,1,2,\nlate,1,2,7\n")
    assert late_spans(software) == [LateSpan(1, 2, 7), LateSpan(5, 9, 3)]  # type: ignore[arg-type]
    # Of another clock nothing is known.
    assert late_spans(hardware) is None  # type: ignore[arg-type]
    # An older agent does not say by how much.
    log.write_text("kind,from_ns,to_ns\nlate,5,9\n")
    assert late_spans(software) is None  # type: ignore[arg-type]
    log.write_text("kind,from_ns,to_ns,late_ns\nlate,5,soon,3\n")
    with pytest.raises(RunDirectoryError, match=r"departures\.csv: not a log"):
        late_spans(software)  # type: ignore[arg-type]


def test_taps_have_memory_for_the_whole_run_within_limits() -> None:
    few, many, more = (Traffic(rate_pps=pps, duration_s=10) for pps in (1_000, 150_000, 10_000_000))
    assert (needed_mb(few, 96), needed_mb(more, 96)) == (128, 1_024)
    # 1.5 million frames of 144 bytes, twice.
    assert needed_mb(many, 96) == 412
    assert held_packets(many, 96, 412) >= 1_500_000
    assert held_packets(many, 96) == (512 << 20) // 144
