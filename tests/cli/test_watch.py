"""Spans of a watch in report, compare, explain, convert and query."""

from __future__ import annotations

import csv
import json
import random
import re
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner
from watch_folders import frame, minute, target

from tailtrim.cli.application import app

DAY = "2020-01-01T00:00Z..2020-01-02T00:00Z"
HOURS = ("2020-01-01T00:00Z..2020-01-01T00:05Z", "2020-01-01T00:05Z..2020-01-01T00:10Z")


def tailtrim(*words: str | Path) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command; hints are among the errors."""
    result = CliRunner().invoke(app, [*map(str, words)])
    error = result.exception
    notes = [] if error is None else [str(error), *getattr(error, "__notes__", ())]
    return result.exit_code, result.stdout, "\n".join([result.stderr, *notes])


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def probes(seed: int, scale: float = 1.0) -> list[list[int | None]]:
    """Return latencies of ten minutes, those of the second half so many times as long."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    return [
        [round(dice.lognormvariate(14, 0.3) * (scale if number >= 5 else 1)) for _ in range(600)]
        for number in range(10)
    ]


@pytest.fixture
def watch(tmp_path: Path) -> Path:
    """Return a watch of three targets, of which one becomes slower."""
    for seed, (name, scale) in enumerate((("a", 1.0), ("b", 1.5), ("c", 1.0))):
        lines = [minute(number, ns) for number, ns in enumerate(probes(seed, scale))]
        target(tmp_path / "watch" / name, lines, address="192.0.2.1:7", protocol="udp")
    return tmp_path / "watch"


def test_a_report_of_a_watch_is_a_table_of_its_targets(watch: Path, tmp_path: Path) -> None:
    code, out, told = tailtrim(
        "report", watch, "--from", "2020-01-01T00:00Z", "--to", "2020-01-01T00:10Z"
    )
    assert (code, told.strip()) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[2:7:2]] == [[n, "10"] for n in "abc"]
    with (tmp_path / "report" / "targets.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["target"], row["due"], row["answered"]) for row in rows] == [
        (name, "6000", "6000") for name in "abc"
    ]
    assert int(rows[0]["p99_low_ns"]) < int(rows[0]["p99_ns"]) < int(rows[0]["p99_high_ns"])
    assert "Slowest probes" in (tmp_path / "report" / "report.html").read_text()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_hosts_are_a_column_and_together(watch: Path, tmp_path: Path) -> None:
    other = tmp_path / "host2"
    target(other / "a", [minute(number, [5_000_000] * 600) for number in range(10)])
    code, out, told = tailtrim("report", f"{watch}@{DAY}", f"{other}@{DAY}", "--out", "both")
    assert code == 0, told
    assert "all hosts" in out
    with (tmp_path / "both" / "targets.csv").open() as file:
        hosts = [(row["host"], row["target"]) for row in csv.DictReader(file)]
    assert hosts == [
        ("watch", "a"),
        ("host2", "a"),
        ("all hosts", "a"),
        ("watch", "b"),
        ("watch", "c"),
    ]
    words = ("report", f"{watch}@{DAY}", f"{other}@{DAY}", "--name", "x", "--name", "y")
    assert " y " in tailtrim(*words)[1]
    assert "expected one for each" in tailtrim(*words[:-2])[2]


def test_a_report_of_a_target_is_that_of_a_run(watch: Path, tmp_path: Path) -> None:
    code, out, told = tailtrim("report", f"{watch}/a@{DAY}", "--assert", "p99 < 1s")
    assert code == 0, told
    assert "figures" in out
    assert "passed" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report", "tmp", "watch"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_all_targets_are_judged(watch: Path) -> None:
    code, _, told = tailtrim("report", f"{watch}@{DAY}", "--assert", "p50 < 1ms")
    assert code == 1
    assert all(f"watch/{name}: failed" in told for name in "ac")


def test_compare_of_a_watch_finds_the_target_that_has_changed(watch: Path) -> None:
    spans = [f"{watch}@{hour}" for hour in HOURS]
    code, out, told = tailtrim("compare", *spans, "--fail-if-worse")
    assert code == 1, told
    assert [line.split()[0] for line in out.splitlines() if "worse" in line][:1] == ["b"]
    assert "1 worse" in out
    found = json.loads(tailtrim("compare", *spans, "--json")[1])
    assert {one["label"]: one["verdict"] for one in found["comparisons"]}["watch/b"] == "worse"
    # Each has a third of the error.
    assert float(found["comparisons"][0]["confidence"]) == pytest.approx(1 - 0.05 / 3)
    code, out, told = tailtrim("compare", f"{watch}/b@{HOURS[0]}", f"{watch}/b@{HOURS[1]}")
    assert "slower" in out, told


def test_many_targets_get_as_many_draws_as_their_confidence_takes(tmp_path: Path) -> None:
    for seed in range(30):
        lines = [minute(number, ns) for number, ns in enumerate(probes(seed, 1 + (seed == 7)))]
        target(tmp_path / "many" / f"t{seed}", lines)
    code, out, told = tailtrim("compare", *(f"{tmp_path}/many@{hour}" for hour in HOURS))
    assert code == 0, told
    assert "1 worse" in out
    assert "better" not in out


def test_explain_tells_what_happened(tmp_path: Path) -> None:
    lines = [minute(0, [1_000_000, None, None, None, 2_000_000]), minute(1, [9_000_000])]
    catches = target(tmp_path / "watch" / "gw", lines) / "catches"
    for name in ("2020-01-01T08-01-07.123", "2020-01-02T00-00-00.000", "other"):
        (catches / name).mkdir(parents=True)
        (catches / name / "catch.json").touch()
    code, out, told = tailtrim("explain", f"watch/gw@{DAY}")
    assert code == 0, told
    assert "1 late probe kept with what was around: tailtrim explain watch/gw" in out
    assert "3 of 6 probes that left were not answered in time (50.0 %): 3 lost" in out
    assert "outage: 3.00 ms" in out
    assert "network 9.00 ms, far host 7 ns" in out
    found = json.loads(tailtrim("explain", f"watch/gw@{DAY}", "--json")[1])
    assert found["targets"][0]["outages"]["count"] == 1


def test_explain_of_a_total_outage_tells_it(tmp_path: Path) -> None:
    target(tmp_path / "watch" / "gw", [minute(number, [None] * 5) for number in range(2)])
    code, out, told = tailtrim("explain", f"watch/gw@{DAY}")
    assert code == 0, told
    assert "10 of 10 probes that left were not answered in time (100.0 %): 10 lost" in out
    assert "outage: " in out


def test_targets_without_minutes_are_told_beside_others(watch: Path) -> None:
    target(watch / "new", [])
    code, out, told = tailtrim("convert", f"{watch}@{DAY}", "--format", "csv", "--out", "files")
    assert (code, "new: no minute in this span" in told) == (0, True), told
    assert "files/a@" in out
    code, _, told = tailtrim("report", f"{watch}@{DAY}", "--assert", "p50 < 1s")
    assert (code, "watch/new: not decided: no minute in this span" in told) == (5, True), told


def test_a_part_of_a_day_is_not_replaced_by_another_one(watch: Path) -> None:
    words = ("--format", "parquet", "--out", "days")
    assert tailtrim("convert", f"{watch}/a@{HOURS[0]}", *words)[0] == 0
    code, _, told = tailtrim("convert", f"{watch}/a@{HOURS[1]}", *words)
    assert code == 2
    assert "2020-01-01.parquet: exists" in told


@pytest.mark.parametrize("form", ["parquet", "hlog", "hpct", "hgrm", "csv", "openmetrics"])
def test_all_targets_are_converted(watch: Path, tmp_path: Path, form: str) -> None:
    code, out, told = tailtrim("convert", f"{watch}@{DAY}", "--format", form, "--out", "files")
    assert code == 0, told
    files = [Path(line) for line in out.splitlines()]
    assert files
    assert all(file.is_file() for file in files)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_spans_are_queried(watch: Path) -> None:
    sql = "SELECT run, count(*) FROM sample GROUP BY run"
    code, out, told = tailtrim("query", sql, f"{watch}/a@{HOURS[0]}", "--json")
    assert code == 0, told
    assert json.loads(out) == {"run": f"a@{HOURS[0]}", "count_star()": 3000}


def test_a_span_is_kept_as_a_run(watch: Path) -> None:
    code, _, told = tailtrim("import", f"{watch}/a@{HOURS[0]}", "--out", "before")
    assert code == 0, told
    # The folder of a span is temporary, and is not told.
    compared = tailtrim("compare", "before", f"{watch}/a@{HOURS[1]}")[1]
    assert re.search(rf"^A +before .*\nB +a@{HOURS[1]} ", compared, re.MULTILINE)
    assert "--out" in tailtrim("import", f"{watch}/a@{HOURS[0]}")[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("report", "watch/x@today"), "targets of watch: a, b, c"),
        (("report", "watch@noon"), "expected today, yesterday"),
        (("report", "watch/a@today"), "there are days from 2020-01-01 to 2020-01-01"),
        (("report", "watch", "--from", "noon"), "expected today, yesterday"),
        (("report", f"watch@{DAY}", "--to", "09:00"), "given twice"),
        (("report", f"watch/a@{HOURS[0]}", f"watch/a@{HOURS[1]}"), "compare compares them"),
        (("report", "tmp", "--from", "08:00"), "these are runs"),
        (("compare", f"watch@{DAY}", "tmp"), "expected two spans"),
        (("compare", f"watch@{DAY}", f"watch@{DAY}", "--out", "x.html"), "for runs or for one"),
        (("explain", "watch/a@yesterday"), "there are days from"),
        (("convert", "watch/a@yesterday", "--format", "parquet"), "there are days from"),
        (("convert", "watch/a@yesterday", "--format", "hgrm"), "there are days from"),
        (("query", "SELECT 1", "watch/a@yesterday"), "there are days from"),
    ],
)
def test_errors_say_what_there_is(watch: Path, words: tuple[str, ...], expected: str) -> None:
    code, _, told = tailtrim(*words)
    assert code != 0
    assert expected in told
    assert watch.is_dir()


def test_what_is_not_there_is_told_once_a_target(tmp_path: Path) -> None:
    whole = [frame(minute(number, [1_000_000] * 600)) for number in range(10)]
    target(tmp_path / "watch" / "cut", [*whole[:-1], whole[-1][:-9]])
    target(tmp_path / "watch" / "empty", [])
    target(tmp_path / "watch" / "gap", [*whole[:3], *whole[6:]])
    code, out, told = tailtrim("report", "watch@2020-01-01T00:00Z..2020-01-01T00:10Z")
    assert code == 0
    assert "9 of 10" in out
    assert "7 of 10" in out
    assert "watch/cut: left out: 1 place where the file is damaged or cut" in told
    assert "watch/gap: 3 minutes without a line" in told
    assert "watch/empty: " in told
