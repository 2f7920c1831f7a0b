from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import late_run
import pytest
from swept_experiment import experiment_of, swept
from synthetic import run_of

import tailtrim
from tailtrim.analysis.slo import objectives
from tailtrim.publishing.report import write, write_experiment
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "testpmd"


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., tailtrim.RunDirectory]:
    """Make a run directory, see ``run_of``."""
    return partial(run_of, tmp_path)


@pytest.fixture
def explained_run(make_run: Callable[..., tailtrim.RunDirectory]) -> tailtrim.RunDirectory:
    """A run with an explanation and a trace, see ``late_run``."""
    run = make_run(late_run.latencies())
    late_run.store(run, late_run.explanation(), late_run.events())
    return run


@pytest.fixture(scope="session")
def testpmd(tmp_path_factory: pytest.TempPathFactory) -> tailtrim.RunDirectory:
    """The example captures, analyzed with the default trim of one second."""
    if not (EXAMPLES / "ingress.pcap.zst").exists():
        pytest.skip("examples/testpmd has no captures: record them with its record.sh")
    place = tmp_path_factory.mktemp("runs") / "testpmd"
    tailtrim.analyze(
        EXAMPLES / "ingress.pcap.zst", EXAMPLES / "egress.pcap.zst", skip_s=1, out=place
    )
    return tailtrim.RunDirectory(place)


@pytest.fixture(scope="session")
def report(testpmd: tailtrim.RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the report of the example captures is; not to be altered."""
    place = tmp_path_factory.mktemp("report")
    write([testpmd], place)
    return place


@pytest.fixture(scope="session")
def published(
    published: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tailtrim.RunDirectory]:
    """Analyze a published pair, named as in its folder: ``dpdk-l2fwd/hw``."""
    runs: dict[str, tailtrim.RunDirectory] = {}
    folder = tmp_path_factory.mktemp("published")

    def analyze(name: str) -> tailtrim.RunDirectory:
        if name not in runs:
            ingress = max((published / "low-latency" / name).glob("*latencies-pre-*"))
            egress = ingress.with_name(ingress.name.replace("latencies-pre", "latencies-post"))
            place = folder / name.replace("/", "-")
            tailtrim.analyze(ingress, egress, skip_s=1, out=place)
            runs[name] = tailtrim.RunDirectory(place)
        return runs[name]

    return analyze


@pytest.fixture
def make_experiment(tmp_path: Path) -> Callable[..., Path]:
    """Lay out an experiment, see ``experiment_of``."""
    return partial(experiment_of, tmp_path)


@pytest.fixture(scope="session")
def reported_experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a floor, two runs that have no result, and its report: for reading."""
    outcome = {"label": "xdp rate=1", "floor": False, "invalid": [], "failed": None}
    problems = [
        {**outcome, "run": "run-900", "skipped": "no BPF"},
        {**outcome, "run": "run-901", "failed": "it died"},
    ]
    folder = tmp_path_factory.mktemp("experiment")
    place = experiment_of(folder, swept(), problems=problems)
    asked = objectives("p90 < 5us, max < 40us, loss < 50%")
    write_experiment(recorded(place), place / "report", objectives=asked)
    return place
