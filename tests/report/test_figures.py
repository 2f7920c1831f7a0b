from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tailtrim import RunDirectoryError
from tailtrim.publishing.report.figures import distributions, drawing, looks, percentiles, timelines
from tailtrim.publishing.report.figures.distributions import binned, edges, thinned
from tailtrim.publishing.report.figures.figure import Axis
from tailtrim.publishing.report.inputs.run_tables import ReportedRun
from tailtrim.publishing.report.report_files import series

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim import RunDirectory


def test_percentiles_are_the_samples_at_their_ranks(make_run: Callable[..., RunDirectory]) -> None:
    run = make_run([4_000] * 90 + [6_000] * 9 + [9_000])
    figure = percentiles.percentiles([ReportedRun(0, "run", run)])
    assert figure is not None
    lines = figure.panels[0].lines
    x, y = (np.concatenate([getattr(line, axis) for line in lines]) for axis in ("x", "y"))
    for p, value in [(0.0, 4.0), (0.5, 4.0), (0.91, 6.0), (0.985, 6.0), (0.995, 9.0)]:
        at = min(1 / (1 - p), 100.0)
        assert y[np.searchsorted(x, at, side="right") - 1] == value, p
    assert x[-1] == pytest.approx(100), "the line ends where the samples end"


def independent(packets: int) -> list[int]:
    """Return latencies in which nothing depends on what was before."""
    return [5_000 + 7_919 * n * n % 1_009 for n in range(packets)]


def test_a_line_is_pale_beyond_what_the_samples_support(
    make_run: Callable[..., RunDirectory],
) -> None:
    run = make_run(independent(3_000))
    figure = percentiles.percentiles([ReportedRun(0, "run", run)])
    assert figure is not None
    solid, pale = figure.panels[0].lines
    last = max(float(q.p) for q in run.summary.latency_ns.quantiles if q.supported)
    assert solid.x[-1] == pale.x[0] == pytest.approx(1 / (1 - last))
    assert not solid.faded
    assert pale.faded
    assert pale.y[-1] * 1000 == run.summary.latency_ns.max


def test_marks_are_those_of_the_summary(testpmd: RunDirectory) -> None:
    figure = percentiles.percentiles([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    drawn = [(i.value, i.low, i.high) for i in figure.panels[0].intervals]
    listed = [
        tuple(None if ns is None else ns / 1000 for ns in (q.value, q.low, q.high))
        for q in testpmd.summary.latency_ns.quantiles
        if 1 / (1 - float(q.p)) <= testpmd.summary.samples
    ]
    assert drawn == listed
    assert not any(interval.bars for interval in figure.panels[0].intervals)


def test_a_band_reaches_from_one_lower_bound_to_the_next_upper_one(testpmd: RunDirectory) -> None:
    figure = percentiles.percentiles([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    (band,) = figure.panels[0].bands
    rows = testpmd.table("quantile").to_pylist()
    samples = testpmd.summary.samples
    assert band.x.tolist() == pytest.approx(
        [1, *(1 / (1 - float(row["p"])) for row in rows), samples]
    )
    below = [None, *(row["low_ns"] for row in rows)]
    above = [*(row["high_ns"] for row in rows), None]
    for bounds, expected in ((band.low, below), (band.high, above)):
        assert [None if np.isnan(ns) else round(ns * 1000) for ns in bounds] == expected
    assert np.isnan(band.high).any(), "the samples of the example do not bound every percentile"
    assert np.isfinite(band.high).any()


def test_the_line_stays_in_its_band(testpmd: RunDirectory) -> None:
    figure = percentiles.percentiles([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    (band,) = figure.panels[0].bands
    ordered = np.repeat(*ReportedRun(0, "run", testpmd).histogram) / 1000
    p = np.arange(ordered.size) / ordered.size
    # In the middle between two ranks, where rounding moves neither to another cell.
    cells = np.searchsorted(band.x, 1 / (1 - p - 0.5 / ordered.size), side="right") - 1
    known = cells < band.low.size
    assert np.count_nonzero(~known) <= 1
    assert not np.any(ordered[known] < band.low[cells[known]])
    assert not np.any(ordered[known] > band.high[cells[known]])


def test_a_band_is_open_where_nothing_is_known(make_run: Callable[..., RunDirectory]) -> None:
    figure = percentiles.percentiles([ReportedRun(0, "run", make_run(independent(3_000)))])
    assert figure is not None
    (band,) = figure.panels[0].bands
    _, pale = figure.panels[0].lines
    first = int(np.argmax(np.isnan(band.high)))
    assert band.x[first] >= pale.x[0]
    assert np.isfinite(band.low[first:]).all(), "a lower bound there is"


def test_few_samples_have_a_band_without_bounds(make_run: Callable[..., RunDirectory]) -> None:
    figure = percentiles.percentiles([ReportedRun(0, "few", make_run([5_000, 6_000, 7_000]))])
    assert figure is not None
    (band,) = figure.panels[0].bands
    assert np.isnan(band.high[-1])
    assert np.isnan(band.low[0])
    assert all(line.faded for line in figure.panels[0].lines if line.x[0] > 1)
    for content in drawing.render(figure, ["few"]).values():
        assert content


def test_without_the_table_of_the_curve_there_are_bars(
    make_run: Callable[..., RunDirectory],
) -> None:
    latencies = independent(3_000)
    new, old = make_run(latencies, name="new"), make_run(latencies, name="old")
    (old.path / "quantile.parquet").unlink()
    figure = percentiles.percentiles([ReportedRun(0, "new", new), ReportedRun(1, "old", old)])
    assert figure is not None
    (panel,) = figure.panels
    assert [band.run for band in panel.bands] == [0]
    assert {(interval.run, interval.bars) for interval in panel.intervals} == {
        (0, False),
        (1, True),
    }
    assert "The band is the 95 %" in figure.caption
    assert "Bars are the 95 %" in figure.caption
    alone = percentiles.percentiles([ReportedRun(0, "old", old)])
    assert alone is not None
    assert "band" not in alone.caption
    solid, pale = alone.panels[0].lines
    supported = [q.p for q in old.summary.latency_ns.quantiles if q.supported]
    assert solid.x[-1] == pale.x[0] == pytest.approx(1 / (1 - float(supported[-1])))


def test_a_damaged_table_of_the_curve_is_an_error(make_run: Callable[..., RunDirectory]) -> None:
    run = make_run([5_000] * 50)
    (run.path / "quantile.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunDirectoryError, match=r"quantile\.parquet: the table cannot"):
        percentiles.percentiles([ReportedRun(0, "run", run)])


def test_bands_of_several_runs_are_translucent_and_in_their_colours(
    testpmd: RunDirectory,
) -> None:
    runs = [ReportedRun(index, name, testpmd) for index, name in enumerate(("one", "two", "three"))]
    figure = percentiles.percentiles(runs)
    assert figure is not None
    svg = drawing.render(figure, ["one", "two", "three"])["svg"].decode()
    for colour in looks.LIGHT[:3]:
        fills = re.findall(rf'fill="{colour}" opacity="([\d.]+)"', svg)
        assert fills
        assert all(float(opacity) <= 0.25 for opacity in fills)


def test_the_cloud_in_an_svg_has_its_points_in_their_places(testpmd: RunDirectory) -> None:
    figure = timelines.worst([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    svg = drawing.render(figure, ["run"])["svg"].decode()
    assert len(svg) < 150_000
    (box,) = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', svg)
    left, top, width, height = map(float, box)
    cloud = next(
        line for line in svg.splitlines() if 'stroke-linecap="round"' in line and "clip" in line
    )
    drawn = np.array(re.findall(r"M([-\d.]+) ([-\d.]+)h0", cloud), float)
    panel = figure.panels[0]
    (points,) = panel.lines
    assert panel.x.low == 0
    assert panel.y.scale == "log"
    whole = np.log(panel.y.high / panel.y.low)
    x = left + width * points.x / panel.x.high
    y = top + height * np.log(panel.y.high / points.y) / whole
    # Points in the same cell of a fifth of a point are drawn once.
    assert 1_000 < len(drawn) <= points.x.size
    for own, there in ((x, drawn[:, 0]), (y, drawn[:, 1])):
        assert there.min() == pytest.approx(own.min(), abs=0.11)
        assert there.max() == pytest.approx(own.max(), abs=0.11)
    nearest = [np.hypot(drawn[:, 0] - a, drawn[:, 1] - b).min() for a, b in zip(x, y, strict=True)]
    assert max(nearest) < 0.16


def test_a_histogram_counts_every_sample(testpmd: RunDirectory) -> None:
    latencies, counts = ReportedRun(0, "run", testpmd).histogram
    for axis in (
        Axis.of_times("Latency", int(latencies[0]), int(latencies[0]) * 2),
        Axis.of_times("Latency", 1, 10**9),
    ):
        bins = edges(int(latencies[0]), int(latencies[-1]), axis)
        at, heights = binned(latencies, counts, bins)
        held = np.searchsorted(at, bins, side="right") - 1
        within = (bins >= at[0]) & (bins < at[-1])
        assert heights[held[within]].sum() == testpmd.summary.samples
        assert heights[0] == heights[-1] == 0


def test_a_histogram_has_bins_and_no_comb_of_single_latencies(
    make_run: Callable[..., RunDirectory],
) -> None:
    even = ReportedRun(0, "even", make_run([5_000 + 7 * n for n in range(2_000)], name="even"))
    wide = ReportedRun(
        0,
        "wide",
        make_run([1_000 + n % 90 + (n % 8 == 0) * n * n for n in range(2_000)], name="wide"),
    )
    for run, caption in ((even, "Bins of 100 ns"), (wide, "25 bins a decade")):
        figure = distributions.histogram([run])
        assert figure is not None
        assert caption in figure.caption
        (line,) = figure.panels[0].lines
        assert line.x.size < 160
        assert line.y.max() > 10


def test_both_panels_of_gaps_have_the_bins_that_the_caption_tells(
    make_run: Callable[..., RunDirectory],
) -> None:
    # At ingress all gaps are alike, at egress they differ by 30 µs.
    run = ReportedRun(0, "run", make_run([5_000 + 15_000 * (n % 2) for n in range(400)]))
    figure = distributions.gaps([run])
    assert figure is not None
    for panel in figure.panels:
        (line,) = panel.lines
        # The last bin lies alone.
        width_ns = round(1000 * float(line.x[-1] - line.x[-2]))
        assert f"Bins of {width_ns} ns" in figure.caption


def test_worst_packets_of_many_runs_are_thinned_and_the_caption_says_so(
    make_run: Callable[..., RunDirectory],
) -> None:
    run = make_run([5_000 + n for n in range(3_000)])
    runs = [ReportedRun(index, f"run {index}", run) for index in range(10)]
    figure = timelines.worst(runs)
    assert figure is not None
    assert {line.x.size for line in figure.panels[0].lines} == {2_000}
    assert min(line.y.min() for line in figure.panels[0].lines) == 6, "the highest are kept"
    for fact in ("2,000 packets", "highest latency of each run", "3,000 that worst.parquet has"):
        assert fact in figure.caption


def test_bands_of_many_runs_do_not_hide_each_other(testpmd: RunDirectory) -> None:
    names = ["a", "b", "c", "d", "e"]
    figure = percentiles.percentiles([ReportedRun(i, n, testpmd) for i, n in enumerate(names)])
    assert figure is not None
    for fact in ("more than 4 runs", "bands are left out"):
        assert fact in figure.caption
    svg = drawing.render(figure, names)["svg"].decode()
    assert not re.findall(r'opacity="0\.[012]', svg)


def test_thinning_moves_nothing_by_more_than_a_cell() -> None:
    x_axis, y_axis = Axis("x", "nines", 1, 1e6), Axis("y", "linear", 0, 1)
    x = np.sort(10 ** np.random.default_rng(7).uniform(0, 6, 50_000))
    y = np.linspace(0, 1, 50_000) ** 3
    thin_x, thin_y = thinned(x, y, x_axis, y_axis)
    assert thin_x.size < 5_000
    held = thin_y[np.searchsorted(thin_x, x, side="right") - 1]
    assert np.abs(held - y).max() < 1 / 700


def test_all_the_worst_packets_are_points(testpmd: RunDirectory) -> None:
    figure = timelines.worst([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    (points,) = figure.panels[0].lines
    assert points.x.size == testpmd.summary.worst.count
    assert points.y.max() * 1000 == testpmd.summary.latency_ns.max
    assert np.all(np.diff(points.x) >= 0)


def test_losses_get_a_panel_of_their_own(make_run: Callable[..., RunDirectory]) -> None:
    without = timelines.seconds([ReportedRun(0, "run", make_run([5_000] * 100, name="all"))])
    lossy = timelines.seconds(
        [ReportedRun(0, "run", make_run([5_000] * 50 + [None] * 3 + [5_000] * 50, name="less"))]
    )
    assert without is not None
    assert lossy is not None
    assert [panel.y.label for panel in without.panels] == ["Packets/s", "Max. latency (µs)"]
    assert lossy.panels[1].y.label == "Lost/s"
    assert lossy.panels[1].lines[0].y[0] == 3


def test_bursts_have_a_figure_and_steady_traffic_has_none(
    make_run: Callable[..., RunDirectory],
) -> None:
    steady = make_run([5_000] * 100, name="steady")
    bursty = make_run(
        [5_000 + 100 * (n % 8) for n in range(800)],
        name="bursty",
        at=lambda n: n // 8 * 1_000_000 + n % 8 * 100,
    )
    assert timelines.bursts([ReportedRun(0, "steady", steady)]) is None
    figure = timelines.bursts([ReportedRun(0, "steady", steady), ReportedRun(1, "bursty", bursty)])
    assert figure is not None
    assert {line.run for line in figure.panels[0].lines} == {1}
    assert figure.panels[0].lines[0].x.tolist() == list(range(1, 9))


def test_without_samples_the_figures_that_remain_are_drawn(
    make_run: Callable[..., RunDirectory],
) -> None:
    drawn = series([ReportedRun(0, "nothing", make_run([None] * 20))])
    assert [figure.key for figure in drawn] == ["gaps", "seconds"]
    for figure in drawn:
        assert drawing.render(figure, ["nothing"], formats=["pdf"])["pdf"].startswith(b"%PDF")


@pytest.mark.parametrize("latencies", [[7_000], [7_000] * 50, [-300, -200, 900], [0, 5, 80_000]])
def test_few_equal_or_negative_latencies_are_drawn(
    make_run: Callable[..., RunDirectory], latencies: list[int]
) -> None:
    for figure in series([ReportedRun(0, "few", make_run(latencies))]):
        assert b"<svg" in drawing.render(figure, ["few"])["svg"]


def test_the_text_in_an_svg_is_text_and_names_are_no_mathematics(testpmd: RunDirectory) -> None:
    (figure, *_) = series([ReportedRun(0, "run", testpmd)])
    svg = drawing.render(figure, ["_$x_1$ <b>"])["svg"].decode()
    assert "_$x_1$ &lt;b&gt;" in svg
    assert "99.9 %" in svg
    assert "Latency (µs)" in svg


@pytest.mark.published
def test_figure_5_has_the_steps_of_a_batch(published: Callable[[str], RunDirectory]) -> None:
    figure = distributions.cumulative([ReportedRun(0, "burst", published("burst-32batch/vm"))])
    assert figure is not None
    panel = figure.panels[0]
    assert panel.x.scale == "linear"
    (line,) = panel.lines
    early = line.y[np.searchsorted(line.x, 300.0) - 1]
    late = line.y[np.searchsorted(line.x, 520.0) - 1]
    assert early < 20, "no packet leaves before the batch is done"
    assert late > 90, "and then all of it"


def test_text_in_an_svg_falls_back_to_sans_serif(testpmd: RunDirectory) -> None:
    figure = distributions.cumulative([ReportedRun(0, "run", testpmd)])
    assert figure is not None
    svg = drawing.render(figure, ["run"])["svg"].decode()
    assert svg.count("font-family") == svg.count('font-family="DejaVu Sans, sans-serif"') == 1
