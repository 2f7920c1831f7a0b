"""The names of result files, as the published folders of 2020 and 2026 have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tailtrim_pos.layout import Layout, Pair, Published, Unclear
from tailtrim_pos.naming import of_run, run_of, run_suffix, side_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("runs", "suffix"),
    [(1, "_run0"), (4, "_run0"), (10, "_run0"), (11, "_run00"), (138, "_run000")],
)
def test_run_numbers_have_the_digits_of_the_highest(runs: int, suffix: str) -> None:
    assert run_suffix(0, runs) == suffix


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("latencies-pre.pcap.zst", "latencies-pre_run007.pcap.zst"),
        ("throughput.log", "throughput_run007.log"),
        ("logs", "logs_run007"),
    ],
)
def test_the_run_goes_before_the_first_dot(name: str, of: str) -> None:
    assert of_run(name, "_run007") == of
    assert run_of(of) == (7, name)


@pytest.mark.parametrize("published", Published)
def test_captures_are_paired_by_their_names_and_runs(tmp_path: Path, published: Published) -> None:
    layout = Layout(tmp_path, published)
    for node, name in (
        ("sniffer", "latencies-pre_run0.pcap.zst"),
        ("sniffer", "latencies-post_run0.pcap.zst"),
        ("dut", "ingress_run1.pcap"),
        ("loadgen", "egress_run1.pcap"),
        ("loadgen", "latencies-pre_run2.pcap"),
        ("loadgen", "notes-post_run2.txt"),
    ):
        place = layout.files(node) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    found = [
        (pair.run, pair.name, pair.ingress.name, pair.egress.name)
        for pair in layout.captures()
        if isinstance(pair, Pair)
    ]
    assert found == [
        (0, "latencies", "latencies-pre_run0.pcap.zst", "latencies-post_run0.pcap.zst"),
        (1, "", "ingress_run1.pcap", "egress_run1.pcap"),
    ]


def test_captures_of_one_name_on_two_nodes_are_not_mixed(tmp_path: Path) -> None:
    layout = Layout(tmp_path, Published.NEW)
    for node, name in (
        # Each has a pair.
        ("one", "x-pre_run0.pcap"),
        ("one", "x-post_run0.pcap"),
        ("two", "x-pre_run0.pcap"),
        ("two", "x-post_run0.pcap"),
        # One has a pair, the other a copy of one side.
        ("one", "x-pre_run1.pcap"),
        ("one", "x-post_run1.pcap"),
        ("two", "x-pre_run1.pcap"),
        # Which ingress capture is it?
        ("one", "x-pre_run2.pcap"),
        ("two", "x-pre_run2.pcap"),
        ("three", "x-post_run2.pcap"),
    ):
        place = layout.files(node) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    found = [*layout.captures()]
    pairs = [one for one in found if isinstance(one, Pair)]
    assert [(pair.run, pair.name) for pair in pairs] == [(0, "one-x"), (0, "two-x"), (1, "x")]
    assert all(pair.ingress.parent == pair.egress.parent for pair in pairs)
    (unclear,) = (one for one in found if isinstance(one, Unclear))
    assert unclear.run == 2
    assert {path.parent.name for path in unclear.captures} == {"one", "two", "three"}


def test_a_run_behind_the_suffix_is_read_as_well() -> None:
    assert run_of("latencies-pre.pcap_run0.zst")[0] == 0
    assert side_of("latencies-pre.pcap_run0.zst") == ("ingress", "latencies")


def test_a_run_is_the_last_one_of_a_name_and_a_word_of_its_own() -> None:
    assert run_of("data_run3_run007.tar.gz") == (7, "data_run3.tar.gz")
    assert run_of("overrun7.csv") == (None, "overrun7.csv")


def test_a_word_within_another_is_no_side() -> None:
    assert side_of("spread_run0.pcap") is None
    assert side_of("inside_run0.pcap") is None


def test_what_commands_print_is_stored_as_bytes_of_python_in_2020() -> None:
    old, new = (Layout(None, published) for published in Published)  # type: ignore[arg-type]
    assert old.printed(b"it's\n") == b'b"it\'s\\n"'
    assert new.printed(b"it's\n") == b"it's\n"
    assert json.loads(old.loop({"pkt_sz": 64})) == json.loads(new.loop({"pkt_sz": 64}))
    assert "\n" not in old.loop({"pkt_sz": 64})


def test_captures_of_interrupted_attempts_are_not_those_of_a_run(tmp_path: Path) -> None:
    for place in ("interrupted/2026/a", "node"):
        (tmp_path / place).mkdir(parents=True)
        for side in ("pre", "post"):
            (tmp_path / place / f"x-{side}_run0.pcap").touch()
    (pair,) = Layout(tmp_path, Published.OLD).captures()
    assert isinstance(pair, Pair)
    assert {pair.ingress.parent.name, pair.egress.parent.name} == {"node"}
