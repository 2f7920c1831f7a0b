from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tailtrim import RunDirectory
from tailtrim.report import distributions, figures, timelines
from tailtrim.report.binning import binned, edges, thinned
from tailtrim.report.figure import Axis
from tailtrim.report.run import Run
from tailtrim.report.writing import series

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_percentiles_are_the_samples_at_their_ranks(make_run: Callable[..., RunDirectory]) -> None:
    run = make_run([4_000] * 90 + [6_000] * 9 + [9_000])
    figure = distributions.percentiles([Run(0, "run", run)])
    assert figure is not None
    lines = figure.panels[0].lines
    x, y = (np.concatenate([getattr(line, axis) for line in lines]) for axis in ("x", "y"))
    for p, value in [(0.0, 4.0), (0.5, 4.0), (0.91, 6.0), (0.985, 6.0), (0.995, 9.0)]:
        at = min(1 / (1 - p), 100.0)
        assert y[np.searchsorted(x, at, side="right") - 1] == value, p
    assert x[-1] == pytest.approx(100), "the line ends where the samples end"


def test_a_line_is_pale_beyond_what_the_samples_support(testpmd: RunDirectory) -> None:
    figure = distributions.percentiles([Run(0, "run", testpmd)])
    assert figure is not None
    solid, pale = figure.panels[0].lines
    supported = [q for q in testpmd.summary.latency_ns.quantiles if q.supported]
    assert solid.x[-1] == pale.x[0] == pytest.approx(1 / (1 - float(supported[-1].p)))
    assert not solid.faded
    assert pale.faded
    assert pale.y[-1] * 1000 == testpmd.summary.latency_ns.max


def test_intervals_are_those_of_the_summary(testpmd: RunDirectory) -> None:
    figure = distributions.percentiles([Run(0, "run", testpmd)])
    assert figure is not None
    drawn = [(i.value, i.low, i.high) for i in figure.panels[0].intervals]
    listed = [
        tuple(None if ns is None else ns / 1000 for ns in (q.value, q.low, q.high))
        for q in testpmd.summary.latency_ns.quantiles
        if 1 / (1 - float(q.p)) <= testpmd.summary.samples
    ]
    assert drawn == listed


def test_the_band_holds_the_line_and_opens_where_the_samples_give_no_bound(
    testpmd: RunDirectory,
) -> None:
    figure = distributions.percentiles([Run(0, "run", testpmd)])
    assert figure is not None
    panel = figure.panels[0]
    (band,) = panel.bands
    assert (np.diff(band.x) > 0).all()
    bounded = ~np.isnan(band.high)
    assert (band.value[bounded] <= band.high[bounded]).all()
    assert (np.nan_to_num(band.low, nan=0) <= band.value).all()
    # Once there is no upper bound, there is none further out.
    assert (np.diff(bounded.astype(int)) <= 0).all()
    (x, foot, head), (open_x, open_foot, open_head) = band.parts(panel.y)
    assert x[-1] == open_x[0] == band.x[bounded][-1]
    assert open_x[-1] == band.x[-1]
    assert (foot <= head).all()
    assert (open_foot <= open_head).all()
    assert (open_head == band.value[-open_head.size :]).all()


def test_without_a_curve_the_listed_intervals_are_drawn(
    testpmd: RunDirectory, tmp_path: Path
) -> None:
    older = shutil.copytree(testpmd.path, tmp_path / "older")
    (older / "quantile.parquet").unlink()
    run = RunDirectory(older)
    figure = distributions.percentiles([Run(0, "run", run)])
    assert figure is not None
    assert figure.panels[0].bands == ()
    assert any(interval.high is not None for interval in figure.panels[0].intervals)
    svg = figures.render(figure, ["run"])["svg"].decode()
    whole = distributions.percentiles([Run(0, "run", testpmd)])
    assert whole is not None
    # Whiskers have caps; a band has none.
    assert svg.count("LineCollection") > figures.render(whole, ["run"])["svg"].decode().count(
        "LineCollection"
    )


def test_a_histogram_counts_every_sample(testpmd: RunDirectory) -> None:
    latencies, counts = Run(0, "run", testpmd).histogram
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


def test_thinning_moves_nothing_by_more_than_a_cell() -> None:
    x_axis, y_axis = Axis("x", "nines", 1, 1e6), Axis("y", "linear", 0, 1)
    x = np.sort(10 ** np.random.default_rng(7).uniform(0, 6, 50_000))
    y = np.linspace(0, 1, 50_000) ** 3
    thin_x, thin_y = thinned(x, y, x_axis, y_axis)
    assert thin_x.size < 5_000
    held = thin_y[np.searchsorted(thin_x, x, side="right") - 1]
    assert np.abs(held - y).max() < 1 / 700


def test_all_the_worst_packets_are_points(testpmd: RunDirectory) -> None:
    figure = timelines.worst([Run(0, "run", testpmd)])
    assert figure is not None
    (points,) = figure.panels[0].lines
    assert points.x.size == testpmd.summary.worst.count
    assert points.y.max() * 1000 == testpmd.summary.latency_ns.max
    assert np.all(np.diff(points.x) >= 0)


def test_losses_get_a_panel_of_their_own(make_run: Callable[..., RunDirectory]) -> None:
    without = timelines.seconds([Run(0, "run", make_run([5_000] * 100, name="all"))])
    lossy = timelines.seconds(
        [Run(0, "run", make_run([5_000] * 50 + [None] * 3 + [5_000] * 50, name="less"))]
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
    assert timelines.bursts([Run(0, "steady", steady)]) is None
    figure = timelines.bursts([Run(0, "steady", steady), Run(1, "bursty", bursty)])
    assert figure is not None
    assert {line.run for line in figure.panels[0].lines} == {1}
    assert figure.panels[0].lines[0].x.tolist() == list(range(1, 9))


def test_without_samples_the_figures_that_remain_are_drawn(
    make_run: Callable[..., RunDirectory],
) -> None:
    drawn = series([Run(0, "nothing", make_run([None] * 20))])
    assert [figure.key for figure in drawn] == ["gaps", "seconds"]
    for figure in drawn:
        assert figures.render(figure, ["nothing"])["pdf"].startswith(b"%PDF")


@pytest.mark.parametrize("latencies", [[7_000], [7_000] * 50, [-300, -200, 900], [0, 5, 80_000]])
def test_few_equal_or_negative_latencies_are_drawn(
    make_run: Callable[..., RunDirectory], latencies: list[int]
) -> None:
    for figure in series([Run(0, "few", make_run(latencies))]):
        assert b"<svg" in figures.render(figure, ["few"])["svg"]


def test_the_text_in_an_svg_is_text_and_names_are_no_mathematics(testpmd: RunDirectory) -> None:
    (figure, *_) = series([Run(0, "run", testpmd)])
    svg = figures.render(figure, ["_$x_1$ <b>"])["svg"].decode()
    assert "_$x_1$ &lt;b&gt;" in svg
    assert "99.9 %" in svg
    assert "Latency (µs)" in svg


@pytest.mark.published
def test_figure_5_has_the_steps_of_a_batch(published: Callable[[str], RunDirectory]) -> None:
    figure = distributions.cumulative([Run(0, "burst", published("burst-32batch/vm"))])
    assert figure is not None
    panel = figure.panels[0]
    assert panel.x.scale == "linear"
    (line,) = panel.lines
    early = line.y[np.searchsorted(line.x, 300.0) - 1]
    late = line.y[np.searchsorted(line.x, 520.0) - 1]
    assert early < 20, "no packet leaves before the batch is done"
    assert late > 90, "and then all of it"


def test_text_in_an_svg_falls_back_to_sans_serif(testpmd: RunDirectory) -> None:
    figure = distributions.cumulative([Run(0, "run", testpmd)])
    assert figure is not None
    svg = figures.render(figure, ["run"])["svg"].decode()
    assert svg.count("font-family") == svg.count("font-family: 'DejaVu Sans', sans-serif") > 0
