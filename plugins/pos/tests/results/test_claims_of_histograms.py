"""Claims about imported histograms: values are compared, claims on packets are not decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pos_folders import PosFolder

from tailtrim.publishing import claims
from tailtrim.results.experiments import RecordedExperiment, recorded
from tailtrim_pos.results import import_pos

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> RecordedExperiment:
    place = tmp_path_factory.mktemp("histograms")
    folder = PosFolder(place / "results", {"rate": [1, 2]})
    folder.upload(0, "histogram.csv", b"1024,3\n1036.8,6\n2048,1\n")
    folder.upload(1, "histogram.csv", b"2024,3\n2036.8,6\n3048,1\n")
    import_pos(folder.path, place / "out")
    return recorded(place / "out")


@pytest.mark.parametrize(
    ("expect", "verdict", "told"),
    [
        ("median prints 1.0 us", "holds", "median of rate=1 is 1.04 µs, the order of the packets"),
        ("median = 1.1 us ± 10 ns", "fails", "published is 1.1 us ± 10 ns"),
        ("median < 1ms", "not decided", "is unknown, so there is no interval"),
        ("mean < 1ms", "not decided", "mean of rate=1 is 1.13 µs, the order"),
        ("max < 3us", "holds", "the largest of this run"),
        ("samples = 10", "holds", "has 10 samples"),
        ("lost = 0", "not decided", "how many packets rate=1 lost is not known"),
        ("loss < 1%", "not decided", "no packet has a known outcome"),
        ("adjusted median < 1ms", "not decided", "no packet has a known outcome"),
    ],
)
def test_verdicts(
    experiment: RecordedExperiment, tmp_path: Path, expect: str, verdict: str, told: str
) -> None:
    text = f"- claim: it is so\n  where: {{rate: 1}}\n  expect: {expect}\n"
    (tmp_path / "claims.yml").write_text(text, "utf-8")
    (found,) = claims.judge_all(claims.read(tmp_path / "claims.yml"), experiment)
    assert (found.verdict, told in found.text) == (verdict, True), found.text


def test_histograms_are_not_compared(experiment: RecordedExperiment, tmp_path: Path) -> None:
    text = "- claim: so\n  a: {rate: 1}\n  b: {rate: 2}\n  expect: median of A < median of B\n"
    (tmp_path / "claims.yml").write_text(text, "utf-8")
    (found,) = claims.judge_all(claims.read(tmp_path / "claims.yml"), experiment)
    assert found.verdict == "not decided"
    assert "run-000" in found.text
    assert "no samples" in found.text
