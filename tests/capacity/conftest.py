"""Searches without a testbed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from trials import Simulated, plan
from unwired import Nothing

from tailtrim.laboratory.capacity import runner
from tailtrim.laboratory.capacity.request import search_request
from tailtrim.laboratory.capacity.runner import CapacitySearch
from tailtrim.laboratory.capacity.trial import TrialListener
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def searching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CapacitySearch]:
    """Return what conducts a search in ``out``, on a simulated device."""
    monkeypatch.setattr(
        sys.modules["tailtrim.laboratory.experiment.record"], "testbed_for", lambda *_: Nothing()
    )

    def conducted(
        device: Simulated, *, resume: bool = False, slo: str = "p99 < 30ms"
    ) -> CapacitySearch:
        monkeypatch.setattr(runner, "conduct", device)
        loaded, runs = load(plan(tmp_path))
        asked = search_request(loaded, runs, slo=slo, width=0.2)
        with CapacitySearch(tmp_path / "out", loaded, asked, resume=resume) as made:
            made.conduct(TrialListener())
        return made

    return conducted
