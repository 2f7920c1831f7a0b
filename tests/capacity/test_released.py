"""A search in a release: its trials are the runs, although the plan has one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from small_experiment import CITATION
from trials import Simulated

from tailtrim.publishing.release import ReleaseOptions, release, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.capacity.runner import CapacitySearch


pytestmark = pytest.mark.long


def test_a_search_is_released_and_verified(
    searching: Callable[..., CapacitySearch], tmp_path: Path
) -> None:
    searching(Simulated())
    place = tmp_path / "out"
    (place / "plan.yml").write_bytes((tmp_path / "plan.yml").read_bytes())
    (place / "LICENSE").write_text("MIT\n")
    (place / "CITATION.cff").write_text(CITATION)
    release(place, tmp_path / "released", ReleaseOptions())
    trials = len(json.loads((place / "capacity.json").read_text())["trials"])
    found = {level.name: level for level in verify(tmp_path / "released")}
    assert found["grid"].told == f"{trials} trials, {trials} with a result"
    assert not [level.wrong for level in found.values() if level.wrong]
