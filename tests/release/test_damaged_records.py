"""Records that fuzzing found to end in errors of Python: each is an error with its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailtrim.errors import ReleaseError, RunDirectoryError
from tailtrim.publishing.release import checksums, safe_files, verify
from tailtrim.publishing.release.derivation import captures_of
from tailtrim.publishing.release.documents import citation_of
from tailtrim.results import RunDirectory
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.long

DEEP = "[" * 100_000


def change(path: Path, *keys: str | int, value: Any) -> None:
    """Put a value into a JSON file."""
    record = json.loads(path.read_text())
    within = record
    for key in keys[:-1]:
        within = within[key]
    within[keys[-1]] = value
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    "text",
    [
        "title: 2026-99-99\n",
        "title: !!int x\n",
        "title: !!float ''\n",
        "title: !!timestamp 2\n",
        "title: !!bool x\n",
        f"title: {DEEP}\n",
        "title: &a [*a]\n",
    ],
)
def test_a_citation_with_an_impossible_value_is_refused(tmp_path: Path, text: str) -> None:
    place = tmp_path / "CITATION.cff"
    place.write_text(text)
    with pytest.raises(ReleaseError, match="not YAML"):
        citation_of(place)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("ingress", "packets"), "many"),
        (("ingress", "lost"), [1]),
        (("ingress", "lost"), True),
        (("ingress", "packets"), 10**400),
        (("taps", "ingress", "first_ns"), 1.5),
        (("taps", "egress"), "egress.pcap"),
        (("latency_ns", "quantiles"), {"p": "0.5"}),
        (("latency_ns", "quantiles", 0, "p"), 0.5),
        (("warnings",), "none"),
        (("departed_late",), [1]),
    ],
)
def test_a_summary_with_a_value_of_another_type_is_refused(
    copied: Path, keys: tuple[str | int, ...], value: Any
) -> None:
    run = copied / "experiment" / "run-000"
    change(run / "summary.json", *keys, value=value)
    with pytest.raises(RunDirectoryError, match=r"run-000/summary\.json: not a summary: "):
        RunDirectory(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [("invalid", "it was noisy"), ("failed", 1), ("label", None), ("invalid", [1]), ("floor", 0)],
)
def test_an_outcome_with_a_value_of_another_type_is_refused(
    copied: Path, key: str, value: Any
) -> None:
    change(copied / "experiment" / "experiment.json", "outcomes", 0, key, value=value)
    with pytest.raises(RunDirectoryError, match=rf"experiment\.json: .*{key}: "):
        recorded(copied / "experiment")


def test_an_outcome_that_is_no_object_is_refused(copied: Path) -> None:
    change(copied / "experiment" / "experiment.json", "outcomes", 0, value="run-000")
    with pytest.raises(RunDirectoryError, match=r"experiment\.json: .*expected an object"):
        recorded(copied / "experiment")


@pytest.mark.parametrize("name", ["experiment.json", "run-000/summary.json"])
def test_a_record_that_is_nested_too_deep_is_refused(copied: Path, name: str) -> None:
    (copied / "experiment" / name).write_text(DEEP)
    with pytest.raises(RunDirectoryError, match=name):
        recorded(copied / "experiment")


@pytest.mark.parametrize("text", [DEEP, '{"repetition": 1e400}'])
def test_loop_variables_that_cannot_be_read_are_none(copied: Path, text: str) -> None:
    (copied / "experiment" / "run-000" / "loop.json").write_text(text)
    first, _ = recorded(copied / "experiment").runs
    assert first.loop == {}


def test_a_capture_whose_name_no_file_can_have_is_refused(copied: Path) -> None:
    run = copied / "experiment" / "run-000"
    change(run / "summary.json", "taps", "ingress", "capture", value="x" * 3_000)
    with pytest.raises(ReleaseError, match="is not a file of the run"):
        captures_of(run)


def test_taps_that_are_no_objects_fail_the_numbers_of_their_run(
    copied: Path, sealed: Callable[[Path], None]
) -> None:
    change(copied / "experiment" / "run-000" / "capture.json", "taps", "ingress", value="x")
    sealed(copied)
    (wrong,) = (one.wrong for one in verify(copied, only=("numbers",)) if one.wrong)
    assert [one.split(":")[0] for one in wrong] == ["run-000"]
    assert "cannot be derived again" in wrong[0]


COMPARED = """\
- claim: The forwarder is as fast at twice the rate
  a: {rate: 10000}
  b: {rate: 20000}
  expect: p50 of A < p50 of B
"""


def test_more_lost_packets_than_memory_has_room_for_are_not_compared(copied: Path) -> None:
    for place in copied.glob("experiment/run-*/second.parquet"):
        table = pq.read_table(place)[:1]
        # Behind the trim, which ends within second 0.
        for name, value in (("second", 1), ("lost", 1 << 40)):
            field = table.schema.field(name)
            at = table.column_names.index(name)
            table = table.set_column(at, field, pa.array([value], field.type))
        pq.write_table(table, place)
    (copied / "claims.yml").write_text(COMPARED)
    (wrong,) = (one.wrong for one in verify(copied, only=("claims",)) if one.wrong)
    assert "1,099,511,627,776 packets were lost" in wrong[0]


def test_a_table_with_a_column_of_another_type_fails_its_level(copied: Path) -> None:
    place = copied / "experiment" / "run-000" / "histogram.parquet"
    table = pq.read_table(place)
    text = pa.array([str(value) for value in table["count"].to_pylist()])
    at = table.column_names.index("count")
    pq.write_table(table.set_column(at, "count", text), place)
    (level,) = (one for one in verify(copied, only=("figures",)) if one.wrong)
    assert level.told == "cannot be checked"


def test_a_name_with_a_line_separator_has_a_checksum(tmp_path: Path) -> None:
    (tmp_path / "a\u2028b\x85c").write_text("")
    checksums.write(tmp_path)
    assert checksums.wrong(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "inside"),
    [("a/b", True), ("a..b", True), ("", False), ("/a", False), ("../a", False), ("a/..", False)],
)
def test_paths_that_leave_their_folder_are_known(name: str, *, inside: bool) -> None:
    assert safe_files.inside(name) is inside
