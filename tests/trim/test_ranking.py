"""Which changes of the host are expected to gain most."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from late_run import explanation

from tailtrim.laboratory.trim.ranking import by_causes, costs
from tailtrim.laboratory.trim.trial import Candidate

if TYPE_CHECKING:
    from pathlib import Path

CHECKS = {"swap": "MEM-007", "tick": "ISO-003", "irq": "IRQ-002"}
CATALOGUE = [Candidate(name, name, checks=(check,)) for name, check in CHECKS.items()]


def _run(path: Path, *, told: bool = True) -> Any:
    if told:
        (path / "explanation.json").write_text(json.dumps(explanation()))
    return SimpleNamespace(path=path)


def test_changes_against_causes_come_first_and_the_others_keep_their_order(tmp_path: Path) -> None:
    costs_ns = costs(_run(tmp_path), "0.999")

    assert costs_ns is not None
    planned = Candidate("batch", "batch")
    ordered = by_causes([planned, *CATALOGUE], costs_ns)
    assert [one.name for one in ordered] == ["batch", "tick", "swap", "irq"]


def test_a_run_without_an_explanation_has_no_costs(tmp_path: Path) -> None:
    assert costs(_run(tmp_path, told=False), "0.999") is None
