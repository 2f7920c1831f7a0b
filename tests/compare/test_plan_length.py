"""Number of packets that a quantile needs: ``plan_length``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.analysis.compare import plan_length
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError, TailtrimError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_length_is_told(measured: Path) -> None:
    # The share beyond p99.99 within a tenth: 1.96² / (0.1² · 10⁻⁴) samples, roughly.
    length = plan_length("0.9999", precision="10%", rate_pps=10_000, assurance="50%")
    assert 3_500_000 < length.samples < 4_200_000
    assert length.seconds is not None
    assert 350 < length.seconds < 420
    eight = plan_length("0.9999", precision="10%", cluster=8, assurance="50%")
    assert eight.samples == pytest.approx(8 * length.samples, rel=0.05)
    learned = plan_length("0.99", precision="20%", pilot=measured)
    assert learned.of_latency
    assert learned.rate_pps == tailtrim.RunDirectory(measured).summary.rate_pps
    result = CliRunner().invoke(
        app, ["plan-length", "--quantile", "99.99%", "--precision", "10%", "--rate", "10000"]
    )
    assert result.exit_code == 0
    assert "in 80 % of runs:" in result.stdout
    assert "min at 10,000 packets/s" in result.stdout


def test_more_runs_are_precise_with_more_samples(measured: Path) -> None:
    for pilot in (None, measured):
        half, most, nearly_all = (
            plan_length("0.99", precision="20%", pilot=pilot, assurance=assurance)
            for assurance in ("50%", "0.8", "95%")
        )
        assert (half.assurance, most.assurance) == (0.5, 0.8)
        assert half.samples < most.samples < nearly_all.samples
        assert plan_length("0.99", precision="20%", pilot=pilot) == most


def test_a_length_that_cannot_be_told_is_an_error(measured: Path) -> None:
    with pytest.raises(TailtrimError, match="too few beyond"):
        plan_length("0.999999", pilot=measured)
    with pytest.raises(TailtrimError, match=r"invalid assurance 0\.4, expected 0\.5"):
        plan_length("0.9", assurance="40%")
    with pytest.raises(ValueError, match="invalid precision 'fine'"):
        plan_length("0.9", precision="fine")
    with pytest.raises(ValueError, match="confidence `100%`: expected less than 1"):
        plan_length("0.9", confidence="100%")
    with pytest.raises(ValueError, match="invalid rate nan"):
        plan_length("0.9", rate_pps=float("nan"))
    with pytest.raises(RunDirectoryError, match="does not exist"):
        plan_length("0.9", pilot="nowhere")
