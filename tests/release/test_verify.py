"""A release is verified, and each kind of change to one is found by name."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release import LEVELS, CheckResult, Verdict, checksums, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.long

RUN = "experiment/run-001"


def levels(root: Path) -> dict[str, CheckResult]:
    return {level.name: level for level in verify(root)}


def failed(root: Path) -> dict[str, tuple[str, ...]]:
    return {name: level.wrong for name, level in levels(root).items() if level.wrong}


def tells(told: Sequence[str], *expected: tuple[str, ...]) -> None:
    """Assert that there are as many findings as expected, each with its facts, in order."""
    for one, facts in zip(told, expected, strict=True):
        for fact in facts:
            assert fact in one


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record, indent=2) + "\n")


def test_a_release_is_verified_elsewhere(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = copied.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    found = levels(Path("..") / copied.name)
    verdicts = [found[name].verdict for name in LEVELS]
    assert verdicts == [Verdict.PASS] * 5 + [Verdict.SKIPPED] * 2
    assert re.fullmatch("2 .*captures, 0 .*samples", found["numbers"].told)
    assert not list(empty.iterdir())


def test_a_changed_byte_is_found(copied: Path) -> None:
    place = copied / RUN / "egress.pcap"
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)
    wrong = failed(copied)
    tells(wrong["files"], (f"{RUN}/egress.pcap: changed", "SHA256SUMS"))
    assert wrong["numbers"][0].startswith("run-001/summary.json: ingress.matched: ")


def test_a_changed_number_is_found_with_new_checksums(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    place = copied / RUN / "summary.json"
    quantile = next(
        q for q in json.loads(place.read_text())["latency_ns"]["quantiles"] if q["p"] == "0.99"
    )
    value = quantile["value"]
    place.write_text(place.read_text().replace(f'"value": {value}', f'"value": {value - 1}'))
    sealed(copied)
    wrong = failed(copied)
    assert "files" not in wrong
    where = "run-001/summary.json: latency_ns.quantiles p 0.99.value: "
    tells(wrong["numbers"], (f"{where}{value - 1} ", f" {value} derived"))


def test_a_changed_row_of_a_table_is_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    place = copied / RUN / "histogram.parquet"
    table = pq.read_table(place)
    counts = table["count"].to_pylist()
    counts[3] += 1
    pq.write_table(table.set_column(1, table.schema.field(1), pa.array(counts)), place)
    sealed(copied)
    facts = (
        "run-001/histogram.parquet: row 3, ",
        f"count: {counts[3]} ",
        f" {counts[3] - 1} derived",
    )
    tells(failed(copied)["numbers"], facts)


def test_a_removed_run_is_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    shutil.rmtree(copied / RUN)
    sealed(copied)
    facts = ("run-001 (forward rate=20000)", "missing", "no result")
    tells(failed(copied)["grid"], facts)


def test_a_run_removed_from_the_record_is_found(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    shutil.rmtree(copied / RUN)
    changed(copied / "experiment" / "experiment.json", lambda record: record["outcomes"].pop())
    sealed(copied)
    facts = ("run-001 (forward rate=20000)", "missing", "record has no outcome")
    tells(failed(copied)["grid"], facts)


def test_a_run_that_is_not_of_the_plan_is_found(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    shutil.copytree(copied / RUN, copied / "experiment" / "run-002")
    sealed(copied)
    tells(failed(copied)["grid"], ("run-002: not ", "plan"))


def test_changed_values_of_a_figure_are_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    figures = copied / "report" / "figures"
    lines = (figures / "hdr.csv").read_text().splitlines()
    was = lines[2]
    lines[2] = was.rpartition(",")[0] + ",1"
    (figures / "hdr.csv").write_text("\n".join(lines) + "\n")
    (figures / "more.csv").write_text("")
    (figures / "cdf.csv").unlink()
    sealed(copied)
    tells(
        failed(copied)["figures"],
        ("report/figures/cdf.csv: missing",),
        ("report/figures/more.csv: not of the report",),
        ("report/figures/hdr.csv: line 3: ", f"{lines[2]!r} in the", f"{was!r} derived"),
    )


def test_a_release_with_the_website_of_earlier_versions_is_verified(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    (copied / "site").mkdir()
    (copied / "report").rename(copied / "site" / "report")
    pages = ("index.html", "site/run-000.html", "site/loop-0-0.html")
    for name in pages:
        (copied / name).write_text("<!doctype html>")

    def named(crate: dict[str, Any]) -> None:
        for entity in crate["@graph"]:
            if entity["@id"].startswith("report/"):
                entity["@id"] = f"site/{entity['@id']}"
        crate["@graph"] += [{"@id": name, "@type": "File", "sha256": ""} for name in pages]

    changed(copied / "ro-crate-metadata.json", named)
    sealed(copied)
    found = levels(copied)
    assert {name: level.wrong for name, level in found.items() if level.wrong} == {}
    assert found["figures"].verdict == Verdict.PASS
    (copied / "site" / "report" / "figures" / "hdr.csv").write_text("")
    tells(failed(copied)["figures"], ("site/report/figures/hdr.csv: 0 lines",))


def test_an_additional_file_is_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    (copied / "install.sh").write_text("echo\n")
    assert failed(copied)["files"][0] == "install.sh: not in SHA256SUMS"
    sealed(copied)
    assert any(one.startswith("install.sh: not of") for one in failed(copied)["files"])


def test_an_invalid_run_told_as_valid_is_found(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    changed(copied / RUN / "generator.json", lambda told: told.update(refused=990, sent=10))
    sealed(copied)
    facts = ("run-001: ", "told as valid", "refused 990 packets")
    tells(failed(copied)["validity"][:1], facts)


def test_a_changed_environment_is_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    changed(copied / RUN / "nodes.json", lambda told: told["nodes"]["local"].update(kernel="5.4"))
    sealed(copied)
    facts = ("run-001: ", "told as valid", "environment changed", "kernel was 6.12.0, is 5.4")
    tells(failed(copied)["validity"], facts)


def test_packages_that_are_missing_changed_or_of_no_node_are_found(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    (place,) = (copied / "experiment" / "packages").iterdir()
    name = f"experiment/packages/{place.name}"
    place.write_text(place.read_text().replace("3.134", "3.135"))
    place.with_name("other.txt").write_text("adduser 3.134\n")
    sealed(copied)
    tells(
        failed(copied)["files"],
        ("ro-crate-metadata.json: lacks experiment/packages/other.txt",),
        (f"{name}: not ", "packages of local", "sum"),
        ("experiment/packages/other.txt: ", "of no node"),
    )
    place.with_name("other.txt").unlink()
    place.unlink()
    sealed(copied)
    tells(failed(copied)["files"], (f"{name}: missing", "packages of local"))


def test_a_changed_plan_is_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    place = copied / "experiment" / "plan.yml"
    place.write_text(place.read_text().replace("skip_s: 0.01", "skip_s: 0.02"))
    sealed(copied)
    tells(
        failed(copied)["validity"],
        ("experiment.json: plan.skip_s: not ", "plan.yml"),
        ("run-000: summary.json: 0.01 s ", "plan 0.02 s"),
        ("run-001: summary.json: 0.01 s ", "plan 0.02 s"),
    )


def test_changed_loop_variables_are_found(copied: Path, sealed: Callable[[Path], None]) -> None:
    changed(copied / RUN / "loop.json", lambda told: told["loop"].update(rate=30_000))
    sealed(copied)
    facts = ("run-001/loop.json: loop is {'rate': 30000}", "plan {'rate': 20000}")
    tells(failed(copied)["grid"], facts)


def test_invalid_skipped_and_repeated_runs_are_told(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    doubts = {"invalid": ["it was noisy"], "repeated": ["dut died"]}
    changed(copied / RUN / "outcome.json", lambda told: told.update(doubts))
    changed(
        copied / "experiment" / "experiment.json",
        lambda told: told["outcomes"][1].update(doubts),
    )
    sealed(copied)
    name = "run-001 (forward rate=20000 (invalid))"
    notes = (f"{name}: invalid: it was noisy", f"{name}: repeated: dut died")
    assert levels(copied)["grid"].notes == notes


def test_a_repository_of_the_release_is_no_part_of_it(copied: Path) -> None:
    (copied / ".git" / "objects").mkdir(parents=True)
    (copied / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert failed(copied) == {}


def refused(root: Path) -> str:
    with pytest.raises(ReleaseError) as error:
        verify(root)
    return str(error.value).replace(str(root), "DIR")


def test_what_is_not_a_release_is_refused(tmp_path: Path) -> None:
    told = refused(tmp_path)
    assert told.startswith("DIR: not a release")
    assert "release.json" in told


def test_a_symbolic_link_is_refused(copied: Path) -> None:
    (copied / RUN / "dut.log").symlink_to("/etc/hostname")
    assert refused(copied).startswith(f"DIR: '{RUN}/dut.log' is a symbolic link")


def test_a_pipe_is_refused(copied: Path) -> None:
    os.mkfifo(copied / RUN / "dut.log")
    assert refused(copied).startswith(f"DIR: '{RUN}/dut.log' is not a file")


def test_a_path_outside_is_refused(copied: Path) -> None:
    with (copied / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64}  ../secret\n")
    assert "'../secret' is outside" in refused(copied)


def test_a_run_outside_is_refused(copied: Path) -> None:
    def elsewhere(record: dict[str, Any]) -> None:
        record["outcomes"][0]["run"] = "../../run-000"

    changed(copied / "experiment" / "experiment.json", elsewhere)
    told = refused(copied)
    for fact in ("experiment.json", "'../../run-000' is not"):
        assert fact in told


def test_a_capture_outside_is_an_error_of_its_run(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    def elsewhere(record: dict[str, Any]) -> None:
        record["taps"]["ingress"]["capture"] = "../run-000/ingress.pcap"

    changed(copied / RUN / "summary.json", elsewhere)
    sealed(copied)
    (found,) = failed(copied)["numbers"]
    assert found.startswith("run-001/summary.json: taps.ingress.capture: ")
    for fact in ('"../run-000/ingress.pcap" in the release', '"ingress.pcap" derived'):
        assert fact in found


def test_a_testbed_outside_is_not_read(copied: Path, sealed: Callable[[Path], None]) -> None:
    with (copied / "experiment" / "plan.yml").open("a") as file:
        file.write("testbed: /etc/testbed.yml\n")
    sealed(copied)
    (found,) = failed(copied)["grid"]
    for fact in ("plan.yml: testbed: ", "expected local or testbed.yml"):
        assert fact in found


def test_a_huge_record_is_refused(copied: Path) -> None:
    place = copied / RUN / "nodes.json"
    os.truncate(place, 300 << 20)
    assert refused(copied).startswith(f"DIR/{RUN}/nodes.json: more than 268,435,456 bytes")


def test_a_damaged_table_is_an_error_of_its_run(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    (copied / RUN / "histogram.parquet").write_bytes(b"PAR1")
    sealed(copied)
    told = failed(copied)["numbers"][0]
    for fact in ("run-001", "histogram.parquet: ", "cannot be read"):
        assert fact in told


def test_a_byte_that_makes_a_summary_unreadable_is_found_by_the_name_of_its_file(
    copied: Path,
) -> None:
    place = copied / RUN / "summary.json"
    place.write_text(place.read_text().replace('"ingress"', '"ingresx"', 1))
    found = failed(copied)
    tells(found["files"], (f"{RUN}/summary.json: changed", "SHA256SUMS"))
    tells(found["numbers"], (f"{place}: ", "lacks 'ingress'"))


def test_checksums_are_those_of_sha256sum(released: Path) -> None:
    found = checksums.read(released)
    assert f"{RUN}/summary.json" in found
    assert "SHA256SUMS" not in found
