"""Course of a run of hours, on its page and in its figure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from report_page import page_of

from tailtrim import RunDirectoryError
from tailtrim.publishing.report import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory

_MINUTE_NS = 60 * 10**9
_BEGIN_NS = 29_916_666 * _MINUTE_NS  # 2026-11-18 11:06 UTC


def _store(run: RunDirectory, name: str, lines: list[dict[str, Any]]) -> None:
    (run.path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _minute(number: int, p50_ns: int, lost: int = 0) -> dict[str, Any]:
    latency_ns = {"min": 1_000, "p50": p50_ns, "p99": 2 * p50_ns, "max": 90_000}
    begin_ns = _BEGIN_NS + number * _MINUTE_NS
    return {"begin_ns": begin_ns, "samples": 600, "lost": lost, "latency_ns": latency_ns}


def _counted(number: int, **cpu: int | None) -> dict[str, Any]:
    begin_ns = _BEGIN_NS + number * _MINUTE_NS
    unread = {"SMI": "/dev/cpu/1/msr is not there"}
    cpus = {"1": {"throttled": None, "smi": None, "steal_ms": 0, "unread": unread} | cpu}
    return {"begin_ns": begin_ns, "end_ns": begin_ns + _MINUTE_NS, "cpus": cpus}


@pytest.fixture
def run(make_run: Callable[..., RunDirectory]) -> RunDirectory:
    return make_run([5_000] * 200)


def test_a_step_is_told_with_its_minute_and_its_medians(run: RunDirectory, tmp_path: Path) -> None:
    noise = np.random.default_rng(5).integers(-200, 200, 90)
    levels = [5_000 if number < 50 else 6_500 for number in range(90)]
    told = [_minute(at, level + int(noise[at])) for at, level in enumerate(levels)]
    # Nothing left the device in three minutes; in one of them packets were found lost.
    told[22] |= {"samples": 0, "lost": 7, "latency_ns": {}}
    del told[20:22]
    _store(run, "minute.jsonl", told)
    _store(run, "counter.jsonl", [_counted(at, throttled=int(at == 50)) for at in range(90)])
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    assert "90 minutes from 2026-11-18 11:06 UTC on." in text
    for fact in (
        " 3 of them have no samples",
        "p50 changed at 2026-11-18 11:56 UTC (minute 51): the median",
        "p99 changed at 2026-11-18 11:56 UTC (minute 51)",
        "counted 1 thermal throttling, in 1 of 90 minutes",
        "counted no ms of steal",
        "Not counted: SMIs (/dev/cpu/1/msr",
    ):
        assert fact in text
    figures = {path.name for path in (tmp_path / "report" / "figures").iterdir()}
    assert {"minutes.svg", "minutes.csv"} <= figures


def test_nothing_is_told_of_minutes_that_do_not_change(run: RunDirectory, tmp_path: Path) -> None:
    noise = np.random.default_rng(6).integers(-300, 300, 60)
    told = [_minute(number, 5_000 + int(noise[number])) for number in range(60)]
    _store(run, "minute.jsonl", told)
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    for name in ("p50", "p99"):
        assert re.search(rf"Step or drift of {name}: no difference beyond \d\.\d %\.", text)
    assert " changed at " not in text


def test_percentiles_that_few_minutes_have_are_not_said_to_be_steady(
    run: RunDirectory, tmp_path: Path
) -> None:
    told = [_minute(number, 5_000) for number in range(60)]
    # The first and the last minute may be partial: 19 of these are whole.
    for minute in told[:20]:
        minute["latency_ns"]["p99.9"] = 20_000
    _store(run, "minute.jsonl", told)
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    for fact in ("p50: no difference beyond 1.0 %.", "p99.9: not decided: needs 20 minutes."):
        assert f"Step or drift of {fact}" in text


def test_minutes_are_counted_from_the_first_also_after_a_gap(
    run: RunDirectory, tmp_path: Path
) -> None:
    told = [_minute(number, 5_000 if number < 50 else 6_500) for number in range(90)]
    # Nothing left the device in the second minute.
    del told[1]
    _store(run, "minute.jsonl", told)
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    assert "p50 changed at 2026-11-18 11:56 UTC (minute 51)" in text


def test_a_drift_is_told_an_hour_also_where_minutes_have_no_samples(
    run: RunDirectory, tmp_path: Path
) -> None:
    # 10 ns a minute; every second minute has samples.
    _store(run, "minute.jsonl", [_minute(at, 5_000 + 10 * at) for at in range(0, 121, 2)])
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    assert re.search("p50 rose by 600 ns an hour .*minute 3 to minute 119: worse", text)


def test_a_step_beside_a_drift_is_told_with_medians_of_its_minutes(
    run: RunDirectory, tmp_path: Path
) -> None:
    noise = np.random.default_rng(7).integers(-20, 20, 122)
    values = [5_000 + 50 * at - (1_000 if at > 20 else 0) + int(noise[at]) for at in range(122)]
    _store(run, "minute.jsonl", [_minute(at, value) for at, value in enumerate(values)])
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    before, after = (np.median(part) / 1e3 for part in (values[1:21], values[21:121]))
    medians = rf"\(minute 22\): the median .*{before:.2f} before .*{after:.2f} µs after"
    assert re.search(f"{medians}.*Without its drift, it fell by ", text)


def test_few_minutes_are_not_searched_for_changes(run: RunDirectory, tmp_path: Path) -> None:
    _store(run, "minute.jsonl", [_minute(number, 5_000, lost=number) for number in range(3)])
    write([run], tmp_path / "report")
    text = page_of(tmp_path / "report").text
    assert "Step or drift: not decided: needs 22 minutes." in text


def test_runs_that_were_not_kept_by_minute_have_no_such_section(
    run: RunDirectory, tmp_path: Path
) -> None:
    write([run], tmp_path / "report")
    assert "Over time" not in page_of(tmp_path / "report").text
    assert not (tmp_path / "report" / "figures" / "minutes.svg").exists()


@pytest.mark.parametrize(
    ("name", "line"),
    [("minute.jsonl", '{"begin_ns": 1}'), ("minute.jsonl", "[]"), ("counter.jsonl", '{"cpus": 3}')],
)
def test_a_damaged_line_is_told_with_its_place(
    run: RunDirectory, tmp_path: Path, name: str, line: str
) -> None:
    _store(run, "minute.jsonl", [_minute(0, 5_000)])
    (run.path / name).write_text(f"{line}\n")
    with pytest.raises(RunDirectoryError, match=f"{name}: line 1: "):
        write([run], tmp_path / "report")
