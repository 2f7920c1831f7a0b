"""Which runs of an experiment are predicted from, and which are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from swept_experiment import experiment_of, latencies, swept

from tailtrim.analysis.queueing.run_selection import chosen
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_slowest_valid_run_is_the_source_and_floors_are_left_out(tmp_path: Path) -> None:
    source, others, floor = chosen([experiment_of(tmp_path, swept(), invalid=[1])])
    assert (source.name, [run.name for run in others]) == ("run-003", ["run-005"])
    assert floor is not None
    assert floor.name == "run-002"


def test_an_experiment_of_floors_has_no_run_to_predict_from(tmp_path: Path) -> None:
    place = experiment_of(tmp_path, [("wire", 10_000, latencies(2_000))])
    with pytest.raises(RunDirectoryError, match="no run of the experiment is complete and valid"):
        chosen([place])
