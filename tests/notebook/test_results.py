"""Results of the public functions: tables for Arrow, pandas and polars, and HTML."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest
from made_up import HEADER, traced

import tailtrim
from tailtrim.errors import MissingPackageError, PlanError, RunDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.results.tabular import Tabular


class Page(HTMLParser):
    """The elements of a page, its table cells, and the sources that attributes name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.cells: list[str] = []
        self.sources: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._in_cell = tag in {"td", "th"} or (self._in_cell and tag == "br")
        if tag in {"td", "th"}:
            self.cells.append("")
        self.sources += [value or "" for name, value in attrs if name == "src"]

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in {"td", "th"}

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


def page(result: Tabular) -> Page:
    return Page(result._repr_html_())


@pytest.fixture(scope="session")
def place(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results") / "testpmd"
    tailtrim.analyze(*testpmd, skip_s=1, out=place)
    return place


@pytest.fixture
def experiment(place: Path, tmp_path: Path) -> Path:
    """Lay out an experiment: two rates, a run that failed, names that are no HTML."""
    outcomes: list[dict[str, Any]] = []
    for number, rate in enumerate((1000, 2000)):
        run = f"run-{number:03d}"
        shutil.copytree(place, tmp_path / "experiment" / run)
        told = {"loop": {"rate": rate, "size": "<b>"}, "repetition": 0}
        (tmp_path / "experiment" / run / "loop.json").write_text(json.dumps(told))
        outcomes.append({"run": run, "label": f"forward rate={rate}", "floor": False})
    outcomes.append({"run": "run-002", "label": "forward", "floor": False, "failed": "<i>died"})
    record: dict[str, Any] = {"schema": "tailtrim.experiment/1", "plan": {"name": "<script>"}}
    record |= {"host": {}, "versions": {}, "command": [], "outcomes": outcomes}
    (tmp_path / "experiment" / "experiment.json").write_text(json.dumps(record))
    return tmp_path / "experiment"


def results(place: Path, testpmd: tuple[Path, Path]) -> dict[str, Tabular]:
    analysis = tailtrim.analyze(*testpmd, skip_s=1, keep_samples=True)
    compared = tailtrim.compare(analysis, place)
    return {
        "analysis": analysis,
        "run": tailtrim.RunDirectory(place),
        "comparisons": compared,
        "comparison": compared[0],
        "explanation": tailtrim.explain(place),
    }


def test_every_table_leaves_for_arrow_pandas_and_polars(
    place: Path, testpmd: tuple[Path, Path], experiment: Path
) -> None:
    of_all = results(place, testpmd) | {"experiment": tailtrim.Experiment(experiment)}
    for result in of_all.values():
        for name in result.tables:
            table = result.to_arrow(name)
            frame, polars = result.to_pandas(name), result.to_polars(name)
            assert isinstance(frame, pd.DataFrame)
            assert isinstance(polars, pl.DataFrame)
            assert list(frame.columns) == polars.columns == table.column_names
            assert len(frame) == polars.height == table.num_rows
        assert result.to_arrow() == result.to_arrow(result.tables[0])
        with pytest.raises(ValueError, match="table 'missing' is unknown, expected one of "):
            result.to_arrow("missing")


def test_an_analysis_and_its_run_directory_have_the_same_tables(
    place: Path, testpmd: tuple[Path, Path]
) -> None:
    analysis = tailtrim.analyze(*testpmd, skip_s=1, keep_samples=True)
    run = tailtrim.RunDirectory(place)
    assert analysis.tables == run.tables
    for name in run.tables:
        assert analysis.to_arrow(name).to_pylist() == run.to_arrow(name).to_pylist()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_not_installed_is_named(
    place: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    run = tailtrim.RunDirectory(place)
    with pytest.raises(MissingPackageError, match=f"{package} is not installed") as caught:
        getattr(run, f"to_{package}")()
    assert caught.value.__notes__ == [f"pip install {package}"]


def test_notebooks_show_a_table_and_a_figure(place: Path, testpmd: tuple[Path, Path]) -> None:
    shown = {name: page(result) for name, result in results(place, testpmd).items()}
    for name in ("analysis", "run", "comparisons", "comparison", "explanation"):
        assert "table" in shown[name].elements
        figures = shown[name].sources
        # The capture supports no percentile of which a ratio could be drawn.
        assert len(figures) == (0 if name.startswith("comparison") else 1)
        assert all(figure.startswith("data:image/svg+xml;base64,") for figure in figures)
    assert "9.8" in shown["run"].cells
    assert any("not decided: needs" in cell for cell in shown["comparison"].cells)
    assert {"periodic cause", "250.00 Hz"} <= set(shown["explanation"].cells)


def test_with_a_trace_the_causes_come_first(tmp_path: Path, testpmd: tuple[Path, Path]) -> None:
    traced(tmp_path / "run", testpmd, HEADER)
    found = tailtrim.explain(tmp_path / "run")
    assert found.tables[0] == "causes"
    causes = found.to_pandas()
    assert set(causes["name"]) == {"local_timer", "call_function"}
    assert causes["share_ppm"].max() > 500_000
    shown = page(found)
    cells = shown.cells
    (figure,) = shown.sources
    drawn = base64.b64decode(figure.partition(",")[2]).decode()
    assert "stress (812)" in drawn
    assert cells[:3] == ["cause", "late packets", "share of the excess"]
    assert any("stress" in cell for cell in cells)


def test_an_experiment_shows_all_its_runs_and_no_markup_of_others(experiment: Path) -> None:
    found = page(tailtrim.Experiment(experiment))
    assert {"forward rate=1000", "forward rate=2000"} <= set(found.cells)
    assert not {"script", "i"} & set(found.elements)
    assert "<i>died" not in tailtrim.Experiment(experiment)._repr_html_()


def test_an_experiment_is_a_table_of_runs(experiment: Path) -> None:
    table = tailtrim.Experiment(experiment).to_arrow()
    first, second, failed = table.to_pylist()
    assert (first["loop_rate"], second["loop_rate"], first["loop_size"]) == (1000, 2000, "<b>")
    assert first["samples"] == 30_717
    assert first["p99_low_ns"] <= first["p99_ns"]
    assert first["p99_high_ns"] is None
    assert (failed["problem"], failed["samples"]) == ("failed: <i>died", None)


def test_loop_variables_of_several_types_share_a_column(experiment: Path) -> None:
    place = experiment / "run-001" / "loop.json"
    place.write_text(json.dumps({"loop": {"rate": "fast"}, "repetition": 0}))
    table = tailtrim.Experiment(experiment).to_arrow()
    assert table["loop_rate"].to_pylist() == ["1000", "fast", None]


def test_what_is_no_experiment_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"experiment\.json: cannot be read"):
        tailtrim.Experiment(tmp_path)


def test_a_plan_that_makes_no_sense_is_told_before_anything_runs(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yml"
    plan.write_text("name: x\ndut: {preset: nothing}\n")
    with pytest.raises(PlanError, match="nothing"):
        tailtrim.run(plan, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_functions_are_called_by_their_names_whatever_was_imported_before() -> None:
    program = (
        "import tailtrim.analysis.compare.sources, tailtrim.analysis.explain.explanation;"
        "import inspect, tailtrim as t;"
        "print(inspect.isfunction(t.compare), inspect.isfunction(t.explain))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"True True\n"
