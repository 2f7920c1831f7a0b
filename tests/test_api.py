"""The public face of the package."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tailtrim

if TYPE_CHECKING:
    from pathlib import Path


def test_public_names() -> None:
    assert tailtrim.__all__ == sorted(tailtrim.__all__)
    assert dir(tailtrim) == tailtrim.__all__
    for name in tailtrim.__all__:
        assert getattr(tailtrim, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = tailtrim.missing


def test_names_are_loaded_when_they_are_used() -> None:
    program = "import sys, tailtrim; print('tailtrim.analysis' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"False\n"


def test_the_exception_tree() -> None:
    for error in (tailtrim.CaptureError, tailtrim.OutputError, tailtrim.RunDirectoryError):
        assert issubclass(error, tailtrim.TailtrimError)


def test_samples_are_kept_on_request(testpmd: tuple[Path, Path]) -> None:
    analysis = tailtrim.analyze(*testpmd, keep_samples=True)
    latencies_ns = analysis.latencies_ns()
    assert latencies_ns.dtype == np.int64
    assert len(latencies_ns) == analysis.summary.samples
    values, counts = np.unique(latencies_ns, return_counts=True)
    histogram = analysis.histogram
    assert values.tolist() == histogram["latency_ns"].to_pylist()
    assert counts.tolist() == histogram["count"].to_pylist()
    with pytest.raises(ValueError, match="keep_samples=True"):
        _ = tailtrim.analyze(*testpmd).samples


def test_quantiles_are_nearest_rank(testpmd: tuple[Path, Path]) -> None:
    analysis = tailtrim.analyze(*testpmd, keep_samples=True, quantiles=["0.07", "0.9995"])
    ordered = np.sort(analysis.latencies_ns())
    for quantile in analysis.summary.latency_ns.quantiles:
        numerator, denominator = int(quantile.p.replace("0.", "")), 10 ** (len(quantile.p) - 2)
        rank = -(-numerator * len(ordered) // denominator)
        assert quantile.value == ordered[rank - 1]


def test_values_are_given_as_people_write_them(testpmd: tuple[Path, Path]) -> None:
    analysis = tailtrim.analyze(*testpmd, confidence=0.99, quantiles=0.9995, masks="tos")
    assert analysis.summary.latency_ns.confidence == "0.99"
    assert analysis.summary.signature.masks == ("tos",)
    told = analysis.quantile("99.9 %")
    assert told == analysis.quantile(0.999) == analysis.quantile("p99.9") == analysis.quantile(99.9)
    assert told.p == "0.999"
    assert analysis.quantile("99.95%").p == "0.9995"
    with pytest.raises(ValueError, match=r'0\.1234 was not computed, .*quantiles="0\.1234"'):
        analysis.quantile(0.1234)


def test_results_are_named_in_a_line(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    analysis = tailtrim.analyze(*testpmd, out=tmp_path / "run")
    run = tailtrim.RunDirectory(tmp_path / "run")
    compared = tailtrim.compare(run.path, run.path)
    for result in (analysis, analysis.summary, run, compared, tailtrim.explain(run)):
        assert len(repr(result)) < 200


def test_results_are_taken_where_runs_are(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    analysis = tailtrim.analyze(*testpmd, out=tmp_path / "run")
    assert tailtrim.explain(analysis).directory.path == tmp_path / "run"
    assert tailtrim.compare(analysis, tmp_path / "run")
    with pytest.raises(ValueError, match="left no run directory"):
        tailtrim.explain(tailtrim.analyze(*testpmd))


def test_an_unknown_option_is_an_error(testpmd: tuple[Path, Path]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'mask', did you mean masks"):
        tailtrim.analyze(*testpmd, mask="nat")  # type: ignore[call-arg]


def test_functions_are_functions() -> None:
    for function in (tailtrim.analyze, tailtrim.compare, tailtrim.explain):
        assert pydoc.render_doc(function).startswith("Python Library Documentation: function")


def test_unknown_mask(testpmd: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="expected one of nat, tos, tunnel"):
        tailtrim.analyze(*testpmd, masks=["ttl"])


def test_nothing_is_certain(testpmd: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="confidence `100%`: expected less than 1"):
        tailtrim.analyze(*testpmd, confidence="100%")
