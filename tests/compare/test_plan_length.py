"""How many packets a quantile takes: ``plan_length``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.cli.application import app
from tailtrim.compare import plan_length
from tailtrim.errors import RunDirectoryError, TailtrimError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_length_is_told(measured: Path) -> None:
    # The share beyond p99.99 within a tenth: 1.96² / (0.1² · 10⁻⁴) samples, roughly.
    length = plan_length("0.9999", precision="10%", rate_pps=10_000)
    assert 3_500_000 < length.samples < 4_200_000
    assert length.seconds is not None
    assert 350 < length.seconds < 420
    eight = plan_length("0.9999", precision="10%", cluster=8)
    assert eight.samples == pytest.approx(8 * length.samples, rel=0.05)
    learned = plan_length("0.99", precision="20%", pilot=measured)
    assert learned.of_latency
    assert learned.rate_pps == tailtrim.RunDirectory(measured).summary.rate_pps
    result = CliRunner().invoke(
        app, ["plan-length", "--quantile", "99.99%", "--precision", "10%", "--rate", "10000"]
    )
    assert result.exit_code == 0
    assert "min at 10,000 packets/s" in result.stdout


def test_a_length_that_cannot_be_told_is_an_error(measured: Path) -> None:
    with pytest.raises(TailtrimError, match="too few beyond"):
        plan_length("0.999999", pilot=measured)
    with pytest.raises(ValueError, match="invalid precision 'fine'"):
        plan_length("0.9", precision="fine")
    with pytest.raises(RunDirectoryError, match="nothing to compare"):
        plan_length("0.9", pilot="nowhere")
