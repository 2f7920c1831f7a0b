"""Objectives of a comparison: limits in its figures, and figures without any."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tailtrim.analysis.compare import compare
from tailtrim.analysis.slo import objectives
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.report.pages import comparison_page

if TYPE_CHECKING:
    from pathlib import Path


def test_limits_of_objectives_are_lines_in_both_tails(measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    comparison_page.write(compare(measured, measured), page, objectives=objectives("p99 < 100us"))
    text = page.read_text("utf-8").partition('id="data">')[2].partition("</script>")[0]
    (figure,) = json.loads(text)["figures"]
    tails = figure["panels"][0]
    assert [(rule["label"], rule["at"], rule["until"]) for rule in tails["rules"]] == [
        ("p99 < 100us", 100, 100)
    ]


def test_halves_have_no_b_for_objectives(measured: Path) -> None:
    result = CliRunner().invoke(app, ["compare", str(measured), "--halves", "--assert", "max < 1s"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--halves there is no B" in result.stderr


def test_captures_without_a_match_are_not_compared(testpmd: tuple[Path, Path]) -> None:
    ingress, _ = testpmd
    other = ingress.parents[1] / "firewall" / "egress.pcap.zst"
    with pytest.raises(RunDirectoryError, match="no packet was matched"):
        compare(f"{ingress},{other}", f"{ingress},{other}")


def test_a_confidence_is_a_share_or_a_percentage(measured: Path) -> None:
    (found,) = compare(measured, measured, confidence=95)
    assert found.confidence == "0.95"
    with pytest.raises(ValueError, match="confidence `100`: expected less than 1"):
        compare(measured, measured, confidence=100)
