"""Which changes are expected to gain most."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from late_run import explanation

from tailtrim.trim.expected import by_causes
from tailtrim.trim.trial import Candidate

if TYPE_CHECKING:
    from pathlib import Path

CATALOGUE = [Candidate(name, name) for name in ("swap", "tick", "irq")]
CHECKS = {"swap": ["MEM-007"], "tick": ["ISO-003"], "irq": ["IRQ-002"]}


def _run(path: Path, *, told: bool = True) -> Any:
    if told:
        (path / "explanation.json").write_text(json.dumps(explanation()))
    return SimpleNamespace(path=path)


def test_changes_against_causes_come_first_and_the_others_keep_their_order(tmp_path: Path) -> None:
    ordered = by_causes(CATALOGUE, CHECKS, _run(tmp_path), "0.999")

    assert [one.name for one in ordered] == ["tick", "swap", "irq"]


def test_a_run_without_an_explanation_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no explanation"):
        by_causes(CATALOGUE, CHECKS, _run(tmp_path, told=False), "0.999")
