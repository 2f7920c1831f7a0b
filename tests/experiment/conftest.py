"""Experiments without a testbed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from unwired import Nothing

from tailtrim.laboratory.experiment import Experiment
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Experiment]]:
    # The package has a function of a module's name.
    record = sys.modules["tailtrim.laboratory.experiment.record"]
    monkeypatch.setattr(record, "testbed_for", lambda *_: Nothing())
    monkeypatch.setattr(Nothing, "wired", 0)

    def make(text: str) -> Experiment:
        plan = tmp_path / "plan.yml"
        traffic = "" if "traffic" in text else "traffic: {rate_pps: 1000, duration_s: 2}\n"
        plan.write_text(f"name: e\nskip_s: 0\n{traffic}{text}", encoding="utf-8")
        loaded, runs = load(plan)
        return stack.enter_context(Experiment(tmp_path / "out", loaded, runs, resume=False))

    with ExitStack() as stack:
        yield make
