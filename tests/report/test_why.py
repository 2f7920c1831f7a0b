"""Why packets were late, on the page and in figures: an explanation and a trace made up here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from late_run import arrival, cause, event, events, explanation, store

from tailtrim import RunDirectoryError
from tailtrim.analysis.explain import explain, host_events, host_explanation
from tailtrim.publishing.report import write
from tailtrim.publishing.report.figures import busy_period, late_packets
from tailtrim.publishing.report.figures.late_packets import (
    OTHER,
    QUEUE,
    UNKNOWN,
    ExplainedRun,
    alike,
    without_causes,
)
from tailtrim.publishing.report.inputs.run_tables import ReportedRun
from tailtrim.publishing.report.pages import cause_section
from tailtrim.results import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory
    from tailtrim.publishing.report.figures.figure import Figure

EVIL = "<script>alert(1)<!--"


@pytest.fixture
def run(explained_run: RunDirectory) -> RunDirectory:
    return explained_run


def explained(directory: RunDirectory) -> ExplainedRun:
    shown = ReportedRun(0, "run", directory)
    found = host_explanation.read(directory)
    assert found is not None
    events = host_events.read(directory, cpu=found.cpu, serving=found.verdict.serving)
    (only,) = alike([ExplainedRun(shown, found, events)])
    return only


def lanes(figure: Figure | None) -> dict[str, list[tuple[float, float]]]:
    """Names of the lanes, from the top, with their bars."""
    assert figure is not None
    panel = figure.panels[1]
    bars: dict[str, list[tuple[float, float]]] = {name: [] for name in reversed(panel.y.names)}
    for one in panel.bars:
        bars[panel.y.names[one.lane]] += zip(one.start, one.end, strict=True)
    return bars


def text_of(page: Path) -> str:
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


def rows_of(page: Path) -> list[list[str]]:
    table = page.read_text("utf-8").partition('<table class="causes stack">')[2]
    body = table.partition("</table>")[0].partition("<tbody>")[2]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[" ".join(re.sub(r"<[^>]*>", "", cell).split()) for cell in row] for row in cells]


def test_the_page_tells_each_cause_and_what_is_left(run: RunDirectory, tmp_path: Path) -> None:
    page = write([run], tmp_path / "out")[0]
    text = text_of(page)
    for fact in (
        "above all thief/pid 9 (78.3 %)",
        "from 25.0 µs on: 78.3 % thief/pid 9, 12.9 % tick by stress (812), 0.6 % queueing",
        "8.3 % unknown",
        "by chance 1.2 %",
        "timing error at most 22 ns",
        "The trace has 2 holes",
        "lacks the events csd:nothing",
        "tailtrim tune plan",
    ):
        assert fact in text
    thief, tick, queue, unknown, whole = rows_of(page)
    assert thief[0] == "thief/pid 9"
    assert tick[:4] == ["tick by stress (812)", "it ticks", "1,234", "2"]
    assert tick[6:] == ["6.00", "121", "122", "ISO-003 ISO-004"]
    assert [queue[0], unknown[0]] == ["Queueing behind packets", "Unknown"]
    assert whole[6:9] == ["65.0", "255", "350"]
    excess = [float(row[4].replace(",", "")) for row in (thief, tick, queue, unknown, whole)]
    assert sum(excess[:4]) == pytest.approx(excess[4], abs=1)
    shares = [float(row[5].removesuffix(" %")) for row in (thief, tick, queue, unknown, whole)]
    assert sum(shares[:4]) == pytest.approx(100, abs=0.3)
    assert shares[4] == 100


def test_the_first_screen_has_the_verdict_the_percentiles_and_a_packet(
    run: RunDirectory, tmp_path: Path
) -> None:
    page = write([run], tmp_path)[0].read_text("utf-8")
    order = (
        '<ul class="verdicts">',
        "<summary>2 warnings</summary>",
        'id="hdr"',
        "Of the excess of packets from",
        'id="packet-1-1"',
        "<h2>Latency</h2>",
        'id="late-1"',
    )
    places = [page.index(mark) for mark in order]
    # The time line was 4,000 pixels down, and each warning a paragraph.
    assert places == sorted(places)
    assert page.count('id="packet-1-1"') == 1


def test_small_causes_share_a_row(run: RunDirectory, tmp_path: Path) -> None:
    told = explanation()
    verdict = told["host"]["verdict"]
    for n in range(3):
        small = cause("softirq", f"small {n}", None, [100])
        verdict["causes"].append({**small, "share_ppm": 150})
        verdict["late"][0]["causes"].append([3 + n, 100])
    store(run, told, None)
    rows = rows_of(write([run], tmp_path / "out")[0])
    assert rows[2][:6] == ["3 other causes", "", "3,702", "1", "0.300", "0.0 %"]


def test_a_capture_alone_has_its_late_packets_by_cause(
    testpmd: RunDirectory, tmp_path: Path
) -> None:
    page = write([testpmd], tmp_path / "out")[0]
    found = explain(testpmd)
    rows = rows_of(page)
    assert [row[0] for row in rows] == [
        *(row.name for row in found.rows if row.packets or row.kind in {"cause", "not_periodic"}),
        "all late packets",
    ]
    for column in (1, 3):
        *parts, whole = [int(row[column].replace(",", "")) for row in rows]
        assert sum(parts) == whole
    assert whole == (found.excess_ns + 500) // 1_000
    assert int(rows[-1][1]) == found.late_packets
    text = text_of(page)
    assert "Why packets were late : above all " in text
    assert "No other cause longer than" in text
    # A search takes seconds for each run.
    several = write([testpmd] * 4, tmp_path / "several", names=list("abcd"))[0]
    assert "Why packets were late" not in text_of(several)


def test_runs_without_an_explanation_are_as_ever(run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "out"
    drawn = {file.name for file in write([run], out)}
    keys = ["late-1", "without-1", "packet-1-1", "packet-1-2", "packet-1-3"]
    assert {f"{key}.{suffix}" for key in keys for suffix in ("svg", "csv")} <= drawn
    for told in (None, {"schema": "tailtrim.explanation/1", "host": None}):
        path = run.path / "explanation.json"
        path.unlink(missing_ok=True)
        if told:
            path.write_text(json.dumps(told))
        page, *files = write([run], out)
        assert "Why packets were late" not in text_of(page)
        assert not [file for file in files if file.stem in keys]
        assert sorted(files) == sorted((out / "figures").iterdir()), "none of the earlier ones"


def test_the_same_explanation_gives_the_same_bytes(run: RunDirectory, tmp_path: Path) -> None:
    first, second = (write([run, run], tmp_path / name, names=["x", "y"]) for name in "ab")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert "late-2.svg" in {file.name for file in first}


def test_late_packets_are_told_apart_by_what_cost_them_most(run: RunDirectory) -> None:
    figure = late_packets.late_packets(explained(run), 100)
    assert figure is not None
    seen = {
        figure.names[line.run]: [round(float(at) * 10_000) for at in line.x]
        for line in figure.panels[0].lines
    }
    assert seen == {
        "thief/pid 9": [200, 201, 202, 203],
        "tick by stress (812)": [600, 601],
        "unknown": [800],
    }
    assert [round(y) for y in figure.panels[0].lines[0].y] == [350, 255, 160, 65]


def test_other_causes_and_unknown_do_not_look_alike(run: RunDirectory) -> None:
    figure = late_packets.late_packets(explained(run), 100)
    assert figure is not None
    for one in (OTHER, UNKNOWN, QUEUE):
        for two in {OTHER, UNKNOWN, QUEUE} - {one}:
            a, b = (bytes.fromhex(figure.looks[look].light[1:]) for look in (one, two))
            assert sum(abs(x - y) for x, y in zip(a, b, strict=True)) > 100
            assert figure.looks[one].marker != figure.looks[two].marker


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (([(0, 5), (3, 9)], 0, 0), 4),
        (([(0, 5), (4, 9)], 0, 0), OTHER),
        (([(0, 5)], 6, 5), QUEUE),
        (([(0, 5)], 4, 6), UNKNOWN),
        (([], 0, 0), UNKNOWN),
    ],
)
def test_the_largest_part_dominates(
    parts: tuple[list[tuple[int, int]], int, int], expected: int
) -> None:
    causes, queue_ns, unknown_ns = parts
    packet = host_explanation.LatePacket(
        arrival_ns=0,
        latency_ns=30,
        excess_ns=20,
        causes=tuple(causes),
        queue_ns=queue_ns,
        unknown_ns=unknown_ns,
    )
    assert late_packets.dominant(packet, 4) == expected


def test_lanes_show_who_took_the_cpu_and_when_the_device_was_away(run: RunDirectory) -> None:
    shown = lanes(late_packets.late_packets(explained(run), 100))
    assert list(shown) == ["thief/pid 9", "tick by stress (8…", "device away"]
    assert shown["thief/pid 9"] == [pytest.approx((0.02, 0.02034))]
    assert len(shown["tick by stress (8…"]) == 10
    # It was stopped; while the thief ran it was not away but robbed, and a thread that ran
    # because it was stopped took nothing. Threads on another CPU and the device are not there.
    assert shown["device away"] == [pytest.approx((0.07, 0.07005))]


def test_nothing_is_known_of_the_device_across_a_hole(run: RunDirectory) -> None:
    hole = event("", arrival(700) + 20_000, 5_000, kind="hole", detail="3 lost")
    store(run, explanation(), [*events(), hole])
    shown = lanes(late_packets.late_packets(explained(run), 100))
    assert "device away" not in shown
    assert len(shown["holes"]) == 1


def test_the_shortest_events_are_left_out_and_counted(run: RunDirectory) -> None:
    figure = late_packets.late_packets(explained(run), 6)
    shown = lanes(figure)
    assert [len(bars) for bars in shown.values()] == [1, 4, 1]
    # Each tick takes a ns longer than the one before.
    assert [round(start * 100) for start, _ in shown["tick by stress (8…"]] == [6, 7, 8, 9]
    assert figure is not None
    for fact in ("6 events are left out", "shortest of each lane"):
        assert fact in figure.caption


def test_without_a_trace_there_are_no_lanes(run: RunDirectory, tmp_path: Path) -> None:
    (run.path / EVENTS).unlink()
    figure = late_packets.late_packets(explained(run), 100)
    assert figure is not None
    assert len(figure.panels) == 1
    assert "keeps no trace" in text_of(write([run], tmp_path / "out")[0])


def test_the_worst_packets_of_distinct_busy_periods_are_zoomed_into(run: RunDirectory) -> None:
    figures = list(busy_period.packets(explained(run), 3))
    titles = [figure.title.removeprefix("A packet that took ") for figure in figures]
    assert titles == ["350 µs", "120 µs", "90.0 µs"]
    assert [figure.key for figure in figures] == [f"packet-1-{n}" for n in (1, 2, 3)]
    queue = figures[0].panels[0].lines[0]
    # All four packets wait until the device is back, and leave 5 µs apart.
    assert queue.y.max() == 4
    at = {count: float(queue.x[np.argmax(queue.y >= count)]) for count in (1, 2, 3, 4)}
    assert at == {1: 0, 2: 100, 3: 200, 4: 300}
    assert queue.y[-1] == 1, "the window ends a little after the packet left"
    bars = lanes(figures[0])
    assert bars["this packet"] == [pytest.approx((0, 350))]
    assert bars["thief/pid 9"] == [pytest.approx((0, 340))]
    assert "344 µs thief/pid 9" in figures[0].caption
    assert "unknown" in figures[2].caption


def test_the_tail_without_a_cause_stands_at_the_quantiles(run: RunDirectory) -> None:
    figure = without_causes(explained(run))
    assert figure is not None
    lines = [line for line in figure.panels[0].lines if line.part == "without"]
    assert [figure.names[line.run] for line in lines] == [
        "without thief/pid 9",
        "without tick by stress (812)",
    ]
    # A thousand samples know nothing of p99.99.
    assert lines[0].x.tolist() == pytest.approx([2, 100, 1_000])
    assert lines[0].y.tolist() == [5, 6, 121]


def test_a_cause_has_one_colour_in_all_runs(run: RunDirectory) -> None:
    one = explained(run)
    first, second, *others = one.explanation.verdict.causes
    turned = one.explanation.verdict.model_copy(update={"causes": (second, first, *others)})
    other = replace(one, explanation=one.explanation.model_copy(update={"verdict": turned}))
    a, b = alike([one, other])
    assert a.looks[:2] == (b.looks[1], b.looks[0])
    assert a.looks[0] != a.looks[1]


def test_what_can_be_done_is_beside_the_causes(run: RunDirectory, tmp_path: Path) -> None:
    page, *_ = write([run], tmp_path / "out")
    text = " ".join(re.sub(r"<[^>]*>", " ", page.read_text("utf-8")).split())
    for fact in ("ISO-003 full dynticks", "nohz_full for them", "ISO-004 no other task one none"):
        assert fact in text
    # Explanations of old have no advice.
    told = explanation()
    del told["host"]["verdict"]["advice"]
    store(run, told, None)
    (only,) = cause_section.sections([ReportedRun(0, "run", run)])
    assert not only.advice.rows


def test_quantiles_may_be_others_than_those_of_old(run: RunDirectory) -> None:
    told = explanation()
    told["host"]["quantiles"] = ["0.9", "0.999"]
    verdict = told["host"]["verdict"]
    for values in (verdict, *verdict["causes"]):
        name = "quantiles_ns" if "quantiles_ns" in values else "without_ns"
        values[name] = [7_000, 8_000]
    store(run, told, None)
    (only,) = cause_section.sections([ReportedRun(0, "run", run)])
    # Behind what it is, events, packets, excess and share.
    assert list(only.table.rows[0].cells[5:8]) == ["", "8.00", ""]


def test_two_causes_of_one_name_differ(run: RunDirectory) -> None:
    told = explanation()
    causes = told["host"]["verdict"]["causes"]
    causes[0] |= {"detail": "some_function", "signature": causes[1]["signature"]}
    causes[1] |= {"sender": None}
    store(run, told, None)
    assert explained(run).labels == ["tick (some_function)", "tick (local_timer)"]


def test_what_comes_from_the_host_is_not_trusted(run: RunDirectory, tmp_path: Path) -> None:
    told = explanation()
    told["host"]["verdict"]["causes"][0]["name"] = EVIL + "\x1b[31m $x^2$"
    told["host"]["verdict"]["causes"][1]["signature"]["what"] = EVIL
    traced = events()
    traced[3]["name"] = EVIL + "\x1b[31m $x^2$"
    store(run, told, traced)
    page, *files = write([run], tmp_path / "out")
    html = page.read_text("utf-8")
    assert "alert(1)" in html
    assert EVIL not in html
    assert "\x1b" not in html
    assert any("$x^2$" in f.read_text("utf-8") for f in files if f.name == "without-1.svg")


def broken(change: Callable[[dict[str, Any]], object]) -> str:
    told = explanation()
    change(told)
    return json.dumps(told)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "explanation.json: .*cannot be read"),
        (broken(lambda told: told.update(schema="else")), "schema"),
        (
            broken(lambda told: told["host"]["verdict"]["late"][0].update(causes=[[3, 1]])),
            "names cause 3 of 3",
        ),
        (
            broken(lambda told: told["host"]["verdict"].update(quantiles_ns=[1])),
            "1 values for 4 quantiles",
        ),
        (broken(lambda told: told["host"]["verdict"].update(excess_ns=2**70)), "excess_ns"),
        (broken(lambda told: told["host"].update(quantiles=["1", "x", "2", "3"])), "quantile"),
    ],
)
def test_a_damaged_explanation_is_an_error(
    run: RunDirectory, tmp_path: Path, text: str, message: str
) -> None:
    (run.path / "explanation.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=message):
        write([run], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_trace_is_an_error(run: RunDirectory, tmp_path: Path) -> None:
    (run.path / "events.jsonl.zst").write_bytes(b"no zstd")
    with pytest.raises(RunDirectoryError, match="trace cannot be read"):
        write([run], tmp_path / "out")


def test_a_trace_without_events_of_the_cpu_says_so(run: RunDirectory) -> None:
    store(run, explanation(), [event("elsewhere", arrival(300), 90_000, cpu=0)])
    figure = late_packets.late_packets(explained(run), 100)
    assert figure is not None
    assert "else ran on CPU 1" in figure.caption
