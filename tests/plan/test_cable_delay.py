"""Lengths of cables: the delay that is taken off the latencies, and its sign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.nodes.cable_delay import correction

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts" / "testbed.yml"
TO_DUT, TO_TAP = "{interface: enp1s0f1, cable: dut.left", "{interface: enp2s0f0, cable: dut.right"
COPIES = """
nodes:
  gen:
    ssh: {host: gen}
    ports: {out: {interface: e0, cable: dut.left}, back: {interface: e1, cable: dut.right}}
  stamp:
    ssh: {host: stamp}
    ports: {a0: {interface: e0, cable_m: 20}, b0: {interface: e1, cable_m: 3}}
  dut:
    ssh: {host: dut}
    ports: {left: {interface: e0, split_m: 1.5}, right: {interface: e1, split_m: 2.5}}
roles:
  loadgen: {node: gen, send: out, sink: back}
  timestamper: {node: stamp, tap_in: a0, tap_out: b0}
  dut: {node: dut, dut_in: left, dut_out: right}
"""


def loaded(tmp_path: Path, said: str) -> TestbedDescription:
    (tmp_path / "testbed.yml").write_text(said, "utf-8")
    return plans.load_testbed(tmp_path / "testbed.yml")


def inline(to_dut: str, to_tap: str) -> str:
    said = EXAMPLE.read_text("utf-8").replace(TO_DUT, TO_DUT + to_dut, 1)
    return said.replace(TO_TAP, TO_TAP + to_tap, 1)


def test_inline_both_cables_of_the_device_are_taken_off(tmp_path: Path) -> None:
    """10 m and 2 m at 4.9 ns/m are 58.8 ns."""
    found = correction(loaded(tmp_path, inline(", cable_m: 10", ", cable_m: 2")))
    assert found is not None
    assert found.ns == 59
    assert [part.between for part in found.parts] == [
        "stamp.a1 to dut.left",
        "dut.right to stamp.b0",
    ]


def test_copies_the_way_to_the_ingress_tap_counts_the_other_way(tmp_path: Path) -> None:
    """1.5 m - 20 m + 2.5 m + 3 m: the stamp at the ingress is late, so latencies are too short."""
    found = correction(loaded(tmp_path, COPIES))
    assert found is not None
    assert found.ns == round(-13 * 4.9)
    assert [part.sign for part in found.parts] == [1, -1, 1, 1]


def test_another_cable_has_its_own_speed(tmp_path: Path) -> None:
    found = correction(loaded(tmp_path, COPIES + "ns_per_m: 4.3\n"))
    assert found is not None
    assert found.ns == -56


def test_without_lengths_nothing_is_corrected(tmp_path: Path) -> None:
    said = COPIES.replace(", cable_m: 20", "").replace(", cable_m: 3", "")
    said = said.replace(", split_m: 1.5", "").replace(", split_m: 2.5", "")
    assert correction(loaded(tmp_path, said)) is None


@pytest.mark.parametrize(
    ("found", "by", "told"),
    [
        (", cable_m: 3", "", "length .*to stamp.b0"),
        ("cable: dut.left}", "cable: dut.left, split_m: 1}", "for dut_in and dut_out"),
        ("cable_m: 3", "cable_m: -3", "cable_m"),
        (
            "cable: dut.left}",
            "cable: dut.left, cable_m: 9}",
            "dut.left .*8 and 9 m",
        ),
    ],
)
def test_lengths_that_do_not_fit(tmp_path: Path, found: str, by: str, told: str) -> None:
    said = (
        COPIES.replace("split_m: 1.5", "split_m: 1.5, cable_m: 8") if "cable_m: 9" in by else COPIES
    )
    assert found in said
    with pytest.raises(PlanError, match=told):
        loaded(tmp_path, said.replace(found, by, 1))
