"""The page of an experiment: its title, its sweeps, its looks, its provenance."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from swept_experiment import RATES, latencies, swept

from tailtrim import RunDirectory, units
from tailtrim.analysis.slo import objectives
from tailtrim.publishing.report import write
from tailtrim.publishing.report.figures.looks import distinct, looks_of
from tailtrim.publishing.report.figures.percentiles import percentiles
from tailtrim.publishing.report.figures.sweep import sweeps
from tailtrim.publishing.report.report_files import runs_of
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.publishing.report.figures.figure import Figure


def html_of(place: Path) -> str:
    page = place / "report" / "report.html"
    return page.read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")


def figure_of(html: str, key: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found
    return next(one for one in json.loads(found[1])["figures"] if one["key"] == key)


def sweep_of(place: Path) -> Figure:
    (figure,) = sweeps(runs_of(recorded(place)))
    return figure


def text_of(html: str) -> str:
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_the_page_is_called_by_the_experiment_its_date_and_its_host(
    reported_experiment: Path,
) -> None:
    html = html_of(reported_experiment)
    assert "<h1>tail-of-forward</h1>" in html
    told = "Tail latency · 2026-11-22 08:48:12 UTC · Linux 6.12.0 · EPYC 7763 · 8 CPUs"
    assert told in text_of(html)


def test_the_page_of_one_run_says_where_its_experiment_ran(
    reported_experiment: Path, tmp_path: Path
) -> None:
    page, *_ = write([RunDirectory(reported_experiment / "run-001")], tmp_path)
    assert "Linux 6.12.0 · EPYC 7763" in text_of(page.read_text("utf-8"))


def test_provenance_that_all_runs_share_is_told_once(reported_experiment: Path) -> None:
    text = text_of(html_of(reported_experiment)).partition("Provenance")[2]
    for label in ("Command", "Versions", "Signature", "Trim, window"):
        assert text.count(label) == 1, label
    assert text.count("Directory") == len(RATES) * 2


def test_runs_that_failed_or_were_skipped_are_told(reported_experiment: Path) -> None:
    text = text_of(html_of(reported_experiment))
    assert "xdp rate=1 : skipped: no BPF" in text
    assert "xdp rate=1 : failed: it died" in text


def test_a_swept_load_is_a_figure_of_percentiles_against_it(reported_experiment: Path) -> None:
    html = html_of(reported_experiment)
    figure = figure_of(html, "sweep-rate")
    assert figure["names"][:2] == ["p50", "p99"]
    assert "p50 of the floor" in figure["names"]
    (panel,) = figure["panels"]
    assert panel["x"]["label"] == "Offered load (kpkt/s)"
    median = next(line for line in panel["lines"] if line["run"] == 0)
    assert median["x"] == [10, 20, 40]
    known = [
        {q.p: q.value for q in run.summary.latency_ns.quantiles}["0.5"]
        for told, run in recorded(reported_experiment).complete
        if not told.outcome.floor
    ]
    assert [round(us * 1000) for us in median["y"]] == known
    assert html.index('id="sweep-rate"') < html.index('id="hdr"'), "the first picture"


def test_an_invalid_run_is_a_cross_that_is_not_joined(make_experiment: Callable[..., Path]) -> None:
    figure = sweep_of(make_experiment(swept(), invalid=[3]))
    lines = {figure.names[line.run]: line for line in figure.panels[0].lines}
    assert lines["p50"].x.tolist() == [10, 40]
    assert lines["invalid run"].draw == "points"
    assert set(lines["invalid run"].x) == {20}
    for fact in ("1 invalid run", "crosses"):
        assert fact in figure.caption


def test_repetitions_are_their_median_and_range(make_experiment: Callable[..., Path]) -> None:
    runs = [("forward", rate, latencies(ns)) for rate in RATES for ns in (3_000, 9_000, 4_000)]
    figure = sweep_of(make_experiment(runs, repetitions=[0, 1, 2] * len(RATES)))
    bars = [one for one in figure.panels[0].intervals if one.run == 0]
    assert [(b.low, b.value, b.high) for b in bars] == [pytest.approx((3.25, 4.25, 9.25))] * 3


def test_several_devices_have_a_panel_for_each_percentile(
    make_experiment: Callable[..., Path],
) -> None:
    runs = [*swept(), *(run for run in swept("bridge") if run[0] == "bridge")]
    figure = sweep_of(make_experiment(runs, vary_device=True))
    assert [panel.title for panel in figure.panels] == ["p50", "p99"]
    assert set(figure.names) == {"forward", "bridge", "wire (floor)"}


def test_losses_are_below_latency_against_load(make_experiment: Callable[..., Path]) -> None:
    lossy: list[int | None] = [None, None, *latencies(5_000, 398)]
    lost = sweep_of(make_experiment([*swept(), ("forward", 80_000, lossy)])).panels[-1]
    assert lost.y.label == "Loss (%)"
    assert lost.lines[0].y.tolist() == [0, 0, 0, 0.5]


@pytest.mark.parametrize(
    ("rates", "label", "at"),
    [
        (("100kpps", "1.5Mpps"), "Offered load (kpkt/s)", [100, 1_500]),
        (("500Mbit/s", "1Gbit/s"), "Offered load (Mbit/s)", [500, 1_000]),
        (("20bursts/s", "40bursts/s"), "Offered load (bursts/s)", [20, 40]),
    ],
)
def test_loads_with_units_are_swept(
    make_experiment: Callable[..., Path], rates: tuple[str, ...], label: str, at: list[float]
) -> None:
    runs = [("forward", rate, latencies(3_000)) for rate in rates]
    (panel,) = sweep_of(make_experiment(runs)).panels
    assert panel.x.label == label
    assert panel.lines[0].x.tolist() == at


def test_a_load_without_a_unit_is_one_of_packets(make_experiment: Callable[..., Path]) -> None:
    place = make_experiment([("forward", rate, latencies(3_000)) for rate in (10_000, 20_000)])
    for told in place.glob("run-*/loop.json"):
        loop = json.loads(told.read_text())
        # As the plan's `rate: $rate` is recorded.
        loop["traffic"] = {"rate_pps": None, "rate": f"{loop['loop']['rate']}pps"}
        told.write_text(json.dumps(loop))
    (panel,) = sweep_of(place).panels
    assert panel.x.label == "Offered load (kpkt/s)"
    assert panel.lines[0].x.tolist() == [10, 20]


@pytest.mark.parametrize("rates", [("fast", "slow"), (10_000, "200kpps"), (10_000,)])
def test_a_variable_without_numbers_has_no_sweep(
    make_experiment: Callable[..., Path], rates: tuple[str | int, ...]
) -> None:
    runs = [("forward", rate, latencies(3_000)) for rate in rates]
    assert sweeps(runs_of(recorded(make_experiment(runs)))) == []


def test_a_device_and_its_floor_share_a_colour_and_rates_are_in_order(
    reported_experiment: Path,
) -> None:
    looks = looks_of([run for run, _ in recorded(reported_experiment).complete])
    floors, devices = looks[::2], looks[1::2]
    assert [look.light for look in floors] == [look.light for look in devices]
    assert all(look.dash for look in floors)
    assert not any(look.dash for look in devices)
    brightness = [sum(bytes.fromhex(look.light[1:])) for look in devices]
    assert brightness == sorted(set(brightness))


@pytest.mark.parametrize("count", [7, 8, 14, 30])
def test_colours_do_not_repeat_beyond_seven_runs(count: int) -> None:
    looks = distinct(count)
    assert len({look.light for look in looks}) == len({look.dark for look in looks}) == count


def test_latency_above_the_floor_can_be_chosen(reported_experiment: Path) -> None:
    html = html_of(reported_experiment)
    assert ">Above the floor</button>" in html
    above = figure_of(html, "hdr-above-floor")["panels"][0]
    assert above["y"]["label"] == "Latency above the floor (µs)"
    # At the median: 3 µs and a tenth of the rate, less the 2 µs of the wire.
    of_run = {line["run"]: line for line in above["lines"]}
    assert sorted(of_run) == [1, 3, 5]
    at_median = [of_run[run]["y"][len(of_run[run]["y"]) // 10] for run in (1, 3, 5)]
    assert at_median == pytest.approx([2, 3, 5])
    (median, *_) = figure_of(html, "sweep-rate-above-floor")["panels"][0]["lines"]
    assert median["y"] == pytest.approx([2, 3, 5])
    assert (reported_experiment / "report" / "figures" / "hdr-above-floor.svg").exists()


def test_without_a_floor_there_is_no_such_choice(make_experiment: Callable[..., Path]) -> None:
    runs = runs_of(recorded(make_experiment([run for run in swept() if run[0] != "wire"])))
    figure = percentiles(runs)
    assert figure is not None
    assert figure.others == ()
    assert sweeps(runs)[0].others == ()


def test_many_runs_have_no_cards_and_their_shortages_are_told_once(
    reported_experiment: Path,
) -> None:
    text = text_of(html_of(reported_experiment))
    assert "is not supported by" not in text
    assert text.count(units.UNSUPPORTED_LEGEND) == 1


def test_a_narrow_screen_names_each_percentile_in_each_row(reported_experiment: Path) -> None:
    table = html_of(reported_experiment).partition("<h2>Latency</h2>")[2].partition("</table>")[0]
    for label in ("p50", "p90", "p99", "Max"):
        assert table.count(f'data-label="{label}"') == len(RATES) * 2, label


def test_a_number_and_its_unit_stay_on_one_line(reported_experiment: Path) -> None:
    html = (reported_experiment / "report" / "report.html").read_text("utf-8")
    body = html.partition("<body>")[2].partition("<script")[0]
    assert not re.findall(r"\d (?:µs|%)", body)
    assert "µs" in body


def test_objectives_are_lines_in_the_figures_and_verdicts_on_the_page(
    reported_experiment: Path,
) -> None:
    html = html_of(reported_experiment)
    rules = figure_of(html, "hdr")["panels"][0]["rules"]
    assert [(rule["at"], rule["label"], rule["until"]) for rule in rules] == [
        (5, "p90 < 5us", 10),
        (40, "max < 40us", None),
    ]
    assert [rule["at"] for rule in figure_of(html, "sweep-rate")["panels"][0]["rules"]] == [5]
    uprights = figure_of(html, "histogram")["panels"][0]["uprights"]
    assert [rule["label"] for rule in uprights] == ["p90 < 5us", "max < 40us"]
    table = text_of(html).partition("Objectives Run")[2].partition("Latency")[0]
    assert "forward rate=40000 failed" in table
    assert "wire" not in table
    svg = reported_experiment / "report" / "figures" / "hdr.svg"
    assert "p90 &lt; 5us" in svg.read_text("utf-8")


def test_an_objective_far_off_the_axis_is_told(
    make_run: Callable[..., RunDirectory],
) -> None:
    run = make_run(latencies(3_000))
    page, *_ = write([run], run.path / "out", objectives=objectives("p90 < 100s"))
    html = page.read_text("utf-8")
    assert "axis: p90 &lt; 100s" in html
    assert figure_of(html, "hdr")["panels"][0]["rules"] == []


def test_each_figure_has_its_values_as_csv(reported_experiment: Path) -> None:
    figures = reported_experiment / "report" / "figures"
    assert {f.stem for f in figures.glob("*.csv")} == {f.stem for f in figures.glob("*.svg")}
    head, *rows = (figures / "sweep-rate.csv").read_text("utf-8").splitlines()
    assert head == "panel,kind,name,part,Offered load (kpkt/s),to,y,low,high"
    assert "Latency (µs),line,p50,,10,,4.25,," in rows
    head, *rows = (figures / "hdr.csv").read_text("utf-8").splitlines()
    assert head == "panel,kind,name,part,Percentile (%),to,y,low,high"
    assert {row.split(",")[1] for row in rows} == {"line", "interval", "band"}
    assert any(row.startswith("Latency (µs),interval,forward rate=10000,,90,,") for row in rows)
