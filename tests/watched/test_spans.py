"""Spans of a watch: texts, runs, and several hosts."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from watch_folders import DAY_NS, DAY_S, MINUTE_NS, NOW, account, minute, target

from tailtrim.analysis import watched
from tailtrim.errors import RoundTripError
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path


def test_a_span_has_the_probes_of_its_minutes(tmp_path: Path) -> None:
    lines = [minute(number, [number * 1_000 + 5, None, 7]) for number in range(10)]
    (one,) = watched.targets_of(target(tmp_path / "gw", lines))
    found = watched.Account(one, watched.span("00:02..00:05", NOW))
    summary = watched.leave_run(found, tmp_path / "run")
    assert (found.lines, found.counts["due"], found.counts["lost"]) == (3, 9, 3)
    assert found.arrivals["duplicate"] == 3
    run = RunDirectory(tmp_path / "run")
    assert run.table("sample")["latency_ns"].to_pylist() == [2005, 7, 3005, 7, 4005, 7]
    assert (summary.samples, summary.ingress.lost) == (6, 3)


def test_counted_minutes_are_the_same_samples(tmp_path: Path) -> None:
    many = minute(0, [5, 9], late=1, lost=2, due=7, answered=4, samples=[3, 1])
    (one,) = watched.targets_of(target(tmp_path / "gw", [many]))
    found = watched.Account(one, watched.span("today", NOW))
    tail = watched.tail_of([found])
    assert (tail.samples, found.counts["due"]) == (4, 7)
    assert (tail.min_ns, tail.max_ns) == (5, 9)


def test_a_table_has_the_numbers_of_the_run(tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311 - no secret
    lines = [
        minute(number, [round(dice.lognormvariate(14, 1)) for _ in range(600)])
        for number in range(60)
    ]
    # A stall of many replies, so that their order matters.
    lines[7]["latency_ns"][100:400] = range(10**9, 10**9 - 300 * 10**6, -(10**6))
    (one,) = watched.targets_of(target(tmp_path / "gw", lines))
    span = watched.span("today", NOW)
    tail = watched.tail_of([watched.Account(one, span)])
    run = watched.Tail.of_run(watched.leave_run(watched.Account(one, span), tmp_path / "run"))
    assert (tail.samples, tail.min_ns, tail.max_ns) == (run.samples, run.min_ns, run.max_ns)
    for quantile in tail.quantiles:
        same = run.quantile(quantile.p)
        assert same is not None
        # Only runs keep the worst packets, of which clusters are counted.
        assert replace(same, clusters=None) == quantile


def test_probes_are_in_the_order_of_their_departures(tmp_path: Path) -> None:
    # A restart leaves two lines of a minute, a step of the clock earlier minutes behind later ones.
    lines = [minute(number, [number * 10**6] * 3) for number in (0, 1, 1, 3, 2)]
    lines[2]["at_us"] = [4_000, 5_000, 6_000]
    (one,) = watched.targets_of(target(tmp_path / "gw", lines))
    found = watched.Account(one, watched.span("today", NOW))
    watched.leave_run(found, tmp_path / "run")
    samples = RunDirectory(tmp_path / "run").table("sample")
    entered = samples["ingress_ns"].to_pylist()
    assert entered == sorted(entered)
    assert len(entered) == 15
    assert (found.lines, len(found.begins_ns)) == (5, 4)


def test_the_same_target_of_two_hosts_is_one_by_addition(tmp_path: Path) -> None:
    for host, ns in (("a", 10), ("b", 30)):
        target(tmp_path / host / "gw", [minute(number, [ns] * 60) for number in range(3)])
    target(tmp_path / "b" / "other", [minute(0, [1])])
    targets = watched.targets_of(tmp_path)
    assert [(one.host, one.name) for one in targets] == [("a", "gw"), ("b", "gw"), ("b", "other")]
    found = {one.label: one for one in watched.measured(targets, watched.span("today", NOW))}
    assert set(found) == {"a/gw", "b/gw", "b/other", "all hosts/gw"}
    both = found["all hosts/gw"].tail
    assert both is not None
    assert (both.samples, both.min_ns, both.max_ns) == (360, 10, 30)
    # Half of the probes took 10, the others 30.
    assert [one.value for one in both.quantiles[:2]] == [10, 30]


def test_a_span_without_minutes_says_which_days_there_are(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(0, [5])])
    (one,) = watched.targets_of(folder)
    with pytest.raises(RoundTripError, match="from 2020-01-01 to 2020-01-01"):
        watched.tail_of([watched.Account(one, watched.span("yesterday", NOW))])
    with pytest.raises(RoundTripError, match=r"targets of .*: gw"):
        watched.targets_of(tmp_path / "gv")


@pytest.mark.parametrize(
    "text",
    ["", "noon", "8:00..9:00", "09:00..08:00", "2030-13-01", "08:00", "0001-01-01", "..99:99"],
)
def test_spans_of_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="span"):
        watched.span(text, datetime.fromtimestamp(DAY_S))  # noqa: DTZ006 - as typed


def test_spans_of_several_days_and_other_zones() -> None:
    hour = watched.span("2020-01-01T10:00+02:00..2020-01-01T09:00", NOW)
    assert hour.end_ns - hour.begin_ns == 3600 * 10**9
    day = watched.span("2020-01-01", NOW)
    assert day == watched.span("today", NOW)
    assert day.begin_ns == DAY_NS
    # The last day of several is in the span.
    days = watched.span("2019-12-31..2020-01-01", NOW)
    assert (days.begin_ns, days.end_ns) == (DAY_NS - 24 * 60 * MINUTE_NS, day.end_ns)
    assert watched.span("..", NOW) == watched.Span(0, round(NOW.timestamp()) * 10**9)


@pytest.fixture
def _berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()


@pytest.mark.usefixtures("_berlin")
def test_a_day_on_which_summer_time_begins_has_23_hours() -> None:
    try:
        day = watched.span("2026-03-29", datetime(2026, 11, 29, 12))  # noqa: DTZ001 - as typed
        assert day.end_ns - day.begin_ns == 23 * 3600 * 10**9
    finally:
        os.environ.pop("TZ")
        time.tzset()


def test_minutes_without_a_line_are_told_up_to_the_running_one(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(number, [5]) for number in (1, 2, 5)])
    found = account(folder, "00:00..00:08")
    gaps = found.missing(DAY_NS + 12 * 60 * MINUTE_NS)
    minutes = [
        ((one.begin_ns - DAY_NS) // MINUTE_NS, (one.end_ns - DAY_NS) // MINUTE_NS) for one in gaps
    ]
    assert minutes == [(0, 1), (3, 5), (6, 8)]
    # The minute that runs, and the one that waits for its last replies, are not missing.
    assert found.missing(DAY_NS + 8 * MINUTE_NS) == gaps[:2]


def test_an_outage_ends_where_minutes_are_missing(tmp_path: Path) -> None:
    lines = [minute(0, [1, None, None, None]), minute(60, [1, 1])]
    (outage,) = account(target(tmp_path / "gw", lines)).outages.longest()
    assert (outage.probes, outage.end_ns - outage.begin_ns) == (3, 2 * 10**6)


def test_a_shorter_timeout_of_today_does_not_change_what_was_in_time(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(0, [3 * 10**9] * 5)], timeout_ns=10**9)
    found = watched.Account(
        watched.targets_of(folder)[0], watched.Span(DAY_NS, DAY_NS + 1440 * MINUTE_NS)
    )
    assert watched.leave_run(found, tmp_path / "run").samples == 5


def test_outages_are_probes_in_a_row_also_over_minutes(tmp_path: Path) -> None:
    lines = [
        minute(0, [1, None, 1, None, None]),
        minute(1, [None] * 5),
        minute(2, [None, 1, None, None]),
    ]
    found = account(target(tmp_path / "gw", lines))
    (outage,) = found.outages.longest()
    assert outage.probes == 8
    begin_ns, end_ns = DAY_NS + 3 * 10**6, DAY_NS + 2 * MINUTE_NS + 10**6
    assert (outage.begin_ns, outage.end_ns) == (begin_ns, end_ns)
