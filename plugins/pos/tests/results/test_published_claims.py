"""Published captures, laid out as results of pos, are imported, and the printed tables hold."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from pos_folders import NODES, PosFolder

from tailtrim.errors import PlanError
from tailtrim.publishing import claims
from tailtrim.publishing.release import ReleaseOptions, release, verify
from tailtrim.results.experiments import RecordedExperiment, recorded
from tailtrim_pos.results import import_pos

pytestmark = pytest.mark.published

CLAIMS = Path(__file__).with_name("published_claims.yml")
#: Claims that 300,000 packets cannot decide.
UNDECIDED = [
    "Up to the 99.9th percentile, the observed latency budget of 1 ms is low enough (Section I)",
    "For higher percentiles, the budget of 1 ms is already exceeded (Section I)",
    (
        "Without overload, Snort and DPDK-l2fwd on hardware stay below 350 us at the 99.999th"
        " percentile (Section V)"
    ),
    "In the virtualised environment, latency increases (Section V-B, median)",
]
SCENARIOS = {
    "l2fwd-hw": "dpdk-l2fwd/hw/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "l2fwd-vm": "dpdk-l2fwd/vm/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "snort-fwd-hw": "snort-fwd/hw/latencies-pre-rate10000-snort-fwd.pcap.zst",
    "motivation": "motivation/latencies-pre-rate10000-snort-norules.pcap.zst",
    "burst-4-batch-32": "burst-32batch/vm/04-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-32-batch-32": "burst-32batch/vm/32-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-4-batch-4": "burst-4batch/vm/04-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-32-batch-4": "burst-4batch/vm/32-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
}


@pytest.fixture(scope="module")
def experiment(published: Path, tmp_path_factory: pytest.TempPathFactory) -> RecordedExperiment:
    """Import the captures as pos would have laid them out, in a folder that is removed again."""
    place = tmp_path_factory.mktemp("published")
    folder = PosFolder(place / "2019-10-01_12-00-00_000000", {"scenario": list(SCENARIOS)})
    for number, loop in enumerate(folder.loops):
        ingress = published / "low-latency" / SCENARIOS[loop["scenario"]]
        for side in ("pre", "post"):
            name = folder.named(f"latencies-{side}.pcap.zst", number)
            source = ingress.with_name(ingress.name.replace("-pre-", f"-{side}-"))
            shutil.copyfile(source, folder.uploads(NODES[0]) / name)
    import_pos(folder.path, place / "out", keep_captures=True)
    shutil.rmtree(folder.path)
    return recorded(place / "out")


def test_every_published_pair_is_imported_with_its_integers(
    experiment: RecordedExperiment, published: Path
) -> None:
    expected = json.loads((published / "expected.json").read_text())
    assert set(expected) == set(SCENARIOS.values())
    assert len(experiment.complete) == len(SCENARIOS)
    for run, directory in experiment.complete:
        told = expected[SCENARIOS[run.loop["scenario"]]]
        assert directory.summary.samples == told["samples_after_trim_1s"]
        assert directory.summary.latency_ns.max == told["latency_ns_trim_1s"]["max"]


def test_the_printed_tables_hold_and_four_sentences_are_not_decided(
    experiment: RecordedExperiment,
) -> None:
    found = claims.judge_all(claims.read(CLAIMS), experiment)
    assert [one.text for one in found if one.verdict == "fails"] == []
    undecided = [one for one in found if one.verdict == "not decided"]
    assert [one.claim for one in undecided] == UNDECIDED
    assert "1.00 ms" in undecided[0].text
    assert "1,000,000" in undecided[2].text
    assert len(found) == 10


@pytest.mark.long
def test_they_are_released_and_every_number_is_derived_again(
    experiment: RecordedExperiment, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(experiment.path, tmp_path / "source"))
    (source / "LICENSE").write_text("CC-BY-4.0\n")
    author = "authors:\n  - name: Those who published the captures\n"
    about = "cff-version: 1.2.0\nmessage: cite it\ntitle: Published captures\n"
    (source / "CITATION.cff").write_text(about + author)
    assert release(source, tmp_path / "released", ReleaseOptions(claims=CLAIMS)) == []
    found = {level.name: level for level in verify(tmp_path / "released")}
    verdicts = {name: str(level.verdict) for name, level in found.items()}
    assert verdicts == {
        "files": "pass",
        "grid": "skipped",
        "numbers": "pass",
        "figures": "pass",
        "validity": "skipped",
        "claims": "pass",
        "rerun": "skipped",
    }
    numbers_of = {name: re.findall(r"\d+", level.told) for name, level in found.items()}
    # Of captures, of samples; those that hold, and all.
    assert (numbers_of["numbers"], numbers_of["claims"]) == (["8", "0"], ["6", "10"])
    assert "no plan" in found["grid"].told
    place = tmp_path / "released" / "experiment" / "run-003" / "summary.json"
    samples = json.loads(place.read_text())["samples"]
    text = place.read_text().replace(f'"samples": {samples}', f'"samples": {samples + 1}', 1)
    place.write_text(text)
    (numbers,) = (one for one in verify(tmp_path / "released", only=("numbers",)) if one.wrong)
    assert numbers.wrong[0].startswith("run-003/summary.json: samples: ")


@pytest.mark.parametrize(
    ("changed", "to", "verdict"),
    [
        # One in the last printed digit.
        ("p99.9 prints 7.7 us", "p99.9 prints 7.8 us", "fails"),
        ("max prints 33.1 us", "max prints 33.2 us", "fails"),
        ("p99.9 < 1ms", "p99.9 < 80us", "fails"),
        ("lost = 0", "lost = 1", "fails"),
    ],
)
def test_a_changed_claim_is_found(
    experiment: RecordedExperiment, tmp_path: Path, changed: str, to: str, verdict: str
) -> None:
    text = CLAIMS.read_text("utf-8")
    assert text.count(changed) == 1
    (tmp_path / "claims.yml").write_text(text.replace(changed, to), "utf-8")
    before = claims.judge_all(claims.read(CLAIMS), experiment)
    after = claims.judge_all(claims.read(tmp_path / "claims.yml"), experiment)
    pairs = zip(before, after, strict=True)
    assert [two.verdict for one, two in pairs if one != two] == [verdict]


def test_a_scenario_that_was_not_published_is_told(
    experiment: RecordedExperiment, tmp_path: Path
) -> None:
    text = CLAIMS.read_text("utf-8").replace("l2fwd-hw}", "l2fwd-hhw}", 1)
    (tmp_path / "claims.yml").write_text(text, "utf-8")
    with pytest.raises(PlanError, match=r"l2fwd-hhw.* l2fwd-hw\b"):
        claims.judge_all(claims.read(tmp_path / "claims.yml"), experiment)
