"""Energy from what meters say: counters that wrap, powers that are integrated, states, holes."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.energy.recorder import Recorder
from tailtrim.laboratory.energy.series import Reading, Series, unwrapped
from tailtrim.laboratory.nodes.meters import Channel, Reader, Value

RANGE_J = 262_143.328850
PACKAGE = Channel("package-0", counts=True, resolution=61e-6, wraps_j=RANGE_J)
OUTLET = Channel("power", counts=False, resolution=1.0)
NOW = datetime.now(UTC)


def counted(*points: tuple[float, float]) -> Series:
    series = Series([PACKAGE])
    for at_s, joules in points:
        series.add(Reading(at_s, NOW, [Value(energy_j=joules)]))
    return series


def told(*points: tuple[float, float]) -> Series:
    series = Series([OUTLET])
    for at_s, watts in points:
        series.add(Reading(at_s, NOW, [Value(power_w=watts)]))
    return series


def test_a_counter_that_wraps_goes_on() -> None:
    series = counted((0, RANGE_J - 30), (1, RANGE_J - 10), (2, 10), (3, 30))
    assert series.joules(0, 3) == [pytest.approx(60)]
    assert series.joules(0.5, 2.5) == [pytest.approx(40)]


def test_a_decrease_that_is_no_wrap_is_refused() -> None:
    with pytest.raises(RunError, match=r"package-0: .* fell .*without a wrap"):
        counted((0, 130_000), (1, 10)).joules(0, 1)
    without = Channel("energy1", counts=True, resolution=1e-6)
    with pytest.raises(RunError, match="it was reset"):
        unwrapped([0, 1], [5, 4], without)


# A busy machine may take long to draw values; the tested code takes no time.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    start=st.floats(0, RANGE_J - 1),
    watts=st.lists(st.floats(0, 3_000), min_size=1, max_size=50),
)
def test_unwrapping_is_what_was_used(start: float, watts: list[float]) -> None:
    used, counter = [0.0], [start]
    for one in watts:
        used.append(used[-1] + one)
        counter.append((start + used[-1]) % RANGE_J)
    assert unwrapped(range(len(used)), counter, PACKAGE) == pytest.approx(used, abs=1e-6)


def test_power_is_integrated_by_trapezoids() -> None:
    series = told((0, 40), (1, 40), (2, 60), (3, 60))
    assert series.joules(0, 3) == [pytest.approx(40 + 50 + 60)]
    assert series.joules(1.5, 2) == [pytest.approx((50 + 60) / 2 * 0.5)]
    assert series.joules(2.25, 2.75) == [pytest.approx(30)]


@pytest.mark.parametrize(("begin", "end"), [(-1, 2), (1, 4), (2, 2), (3, 1)])
def test_a_time_without_readings_around_it_is_refused(begin: float, end: float) -> None:
    with pytest.raises(RunError, match="begin and end"):
        told((0, 40), (1, 40), (2, 40), (3, 40)).joules(begin, end)


def test_a_hole_in_the_readings_is_refused_and_a_lost_answer_is_not() -> None:
    assert told((0, 40), (1, 40), (4, 40)).joules(0, 4) == [pytest.approx(160)]
    with pytest.raises(RunError, match=r"not be read .*9\.0 s"):
        told((0, 40), (9, 40), (10, 40)).joules(0, 10)


class Played(Reader):
    """A meter of a machine that takes 10 W, and 30 W when it is busy; it may fail."""

    channels = (OUTLET,)

    def __init__(self, every_s: float = 0.02) -> None:
        self.every_s = every_s
        self.busy = self.fails = self.closed = False

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def read(self) -> list[Value]:
        if self.fails:
            raise HostError("no answer")
        return [Value(power_w=30.0 if self.busy else 10.0)]


def test_states_are_told_apart_and_their_begin_does_not_count() -> None:
    reader = Played()
    with Recorder({"dut": reader}) as recorder:
        recorder.read()
        with recorder.state("ready", settle_s=0):
            time.sleep(0.2)
        with recorder.state("loaded", settle_s=0.5):
            time.sleep(0.05)
            reader.busy = True
            time.sleep(0.7)
        reader.busy = False
    assert reader.closed
    series = recorder.meters["dut"][1]
    powers = {
        one.state: series.joules(one.begin_s, one.end_s)[0] / (one.end_s - one.begin_s)
        for one in recorder.stretches
    }
    assert powers["ready"] == pytest.approx(10)
    assert powers["loaded"] == pytest.approx(30)


def test_what_is_behind_the_load_does_not_count() -> None:
    reader = Played()
    recorder = Recorder({"dut": reader})
    with recorder:
        recorder.read()
        with recorder.state("loaded", settle_s=0, most_s=0.1):
            time.sleep(0.3)
    (stretch,) = recorder.stretches
    assert stretch.end_s - stretch.begin_s == pytest.approx(0.1)


def test_readings_that_fail_are_counted_and_end_nothing() -> None:
    reader, sound = Played(), Played()
    recorder = Recorder({"dut": reader, "gen": sound})
    with recorder:
        recorder.read()
        with recorder.state("loaded", settle_s=0):
            reader.fails = True
            time.sleep(0.2)
    _, series, failed = recorder.meters["dut"]
    assert failed
    assert set(failed) == {"no answer"}
    (stretch,) = recorder.stretches
    with pytest.raises(RunError, match="begin and end"):
        series.joules(stretch.begin_s, stretch.end_s)
    assert recorder.meters["gen"][1].joules(stretch.begin_s, stretch.end_s)


def test_a_meter_that_is_read_seldom_is_read_at_the_edges() -> None:
    reader = Played(every_s=1_000)
    recorder = Recorder({"dut": reader})
    readings = recorder.meters["dut"][1].readings
    with recorder:
        recorder.read()
        with recorder.state("loaded", settle_s=0.3):
            until_s = time.monotonic() + 10
            while len(readings) < 3 and time.monotonic() < until_s:
                time.sleep(0.01)
    # When the thread begins, before the state, when that has settled, and when it ends.
    assert len(readings) == 4
    (stretch,) = recorder.stretches
    assert sum(one.at_s >= stretch.begin_s for one in readings) == 2


class Slow(Played):
    """A meter that needs long for an answer."""

    def read(self) -> list[Value]:
        time.sleep(0.2)
        return super().read()


def test_a_load_does_not_wait_for_a_slow_meter() -> None:
    with Recorder({"dut": Slow(every_s=0.1)}) as recorder:
        recorder.read()
        begin_s = time.monotonic()
        with recorder.state("loaded", settle_s=0.1, most_s=0.3):
            # Waits for the rest of 0.3 s: the time of a generator that does not wait for readings.
            time.sleep(max(begin_s + 0.3 - time.monotonic(), 0))
    (stretch,) = recorder.stretches
    assert 0 < stretch.end_s - stretch.begin_s <= 0.2 + 1e-9
    _, series, _ = recorder.meters["dut"]
    assert series.joules(stretch.begin_s, stretch.end_s)
