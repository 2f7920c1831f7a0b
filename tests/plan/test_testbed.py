"""Testbed files: allowed content, and the errors for mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.nodes import drawing
from tailtrim.laboratory.nodes.ssh.address import SshHost

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
SAID = (EXAMPLE / "testbed.yml").read_text("utf-8")


def mistakes(tmp_path: Path, said: str) -> list[str]:
    """Return what is wrong with a file, with its lines."""
    place = tmp_path / "testbed.yml"
    place.write_text(said, "utf-8")
    with pytest.raises(PlanError) as raised:
        plans.load_testbed(place)
    return [str(one).removeprefix(f"{place}: ") for one in raised.value.args]


def replaced(found: str, by: str) -> str:
    assert found in SAID
    return SAID.replace(found, by, 1)


def test_the_example_is_inline() -> None:
    described = plans.load_testbed(EXAMPLE / "testbed.yml")
    assert described.inline == (("stamp", "a1"), ("stamp", "b1"))
    assert described.used() == {
        "loadgen": ["out", "back"],
        "timestamper": ["a0", "b0", "a1", "b1"],
        "dut": ["left", "right"],
    }


def test_taps_get_copies_where_the_cables_go_to_the_device(tmp_path: Path) -> None:
    said = replaced("cable: stamp.a0", "cable: dut.left")
    said = said.replace("cable: stamp.b1", "cable: dut.right")
    said = said.replace(", cable: dut.left}\n      b0", "}\n      b0")
    said = said.replace("b0: {interface: enp2s0f0, cable: dut.right}", "b0: {interface: enp2s0f0}")
    (tmp_path / "copies.yml").write_text(said, "utf-8")
    described = plans.load_testbed(tmp_path / "copies.yml")
    assert described.inline is None
    assert described.used()["timestamper"] == ["a0", "b0"]


def test_a_plan_names_the_file_or_has_it_inline(tmp_path: Path) -> None:
    plan, runs = plans.load(EXAMPLE / "plan.yml")
    assert plan.testbed == plans.load_testbed(EXAMPLE / "testbed.yml")
    assert len(runs) == 6
    text = (EXAMPLE / "plan.yml").read_text("utf-8")
    inner = "\n".join(f"  {line}" for line in SAID.splitlines())
    (tmp_path / "inline.yml").write_text(text.replace(" testbed.yml\ndut", f"\n{inner}\ndut"))
    inline, _ = plans.load(tmp_path / "inline.yml")
    assert inline.testbed == plan.testbed


def test_a_node_without_a_kind_is_a_host_by_ssh(tmp_path: Path) -> None:
    (tmp_path / "testbed.yml").write_text(replaced("  gen:\n", "  gen:\n    kind: ssh\n"), "utf-8")
    described = plans.load_testbed(tmp_path / "testbed.yml")
    assert described == plans.load_testbed(EXAMPLE / "testbed.yml")
    # As records had it before there were kinds.
    told = described.model_dump(mode="json")["nodes"]["gen"]
    assert list(told)[:3] == ["ssh", "may", "power"]
    assert "kind" not in told
    said = replaced("  gen:\n", "  gen:\n    kind: shh\n")
    (problem,) = mistakes(tmp_path, said)
    assert problem.endswith("nodes.gen.kind: expected 'ssh', not 'shh' (did you mean ssh?)")


def test_paths_begin_where_the_file_is(tmp_path: Path) -> None:
    said = replaced("user: root}", "key: keys/lab, known_hosts: ~/known}")
    (tmp_path / "testbed.yml").write_text(said, "utf-8")
    gen = plans.load_testbed(tmp_path / "testbed.yml").nodes["gen"]
    assert isinstance(gen, SshHost)
    address = gen.ssh
    assert address.key == str(tmp_path / "keys" / "lab")
    assert address.known_hosts == "~/known"


def test_all_mistakes_are_told_at_once_with_what_may_be_meant(tmp_path: Path) -> None:
    said = replaced("may: [tune]", "may: [tun]").replace("user: root}", "usr: root}", 1)
    said = said.replace('mac: "02:00:00:00:07:01"', "mac: nothing")
    said = said.replace("a1: {interface: enp1s0f1", "a1: {interfaces: enp1s0f1")
    told = (
        ("line 9: nodes.gen.ssh.usr: ", "host, port, user, jump, key, known_hosts", "mean user?"),
        ("line 13: nodes.gen.ports.out.mac: ", " ^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"),
        (
            "line 19: nodes.stamp.ports.a1.interfaces: ",
            "interface, mac, pci, cable, cable_m, split_m",
            "mean interface?",
        ),
        (
            "line 24: nodes.dut.may.0: ",
            "'tune', 'reboot' or 'bootline'",
            "not 'tun'",
            "mean tune?",
        ),
    )
    for mistake, facts in zip(mistakes(tmp_path, said), told, strict=True):
        for fact in facts:
            assert fact in mistake


def test_names_that_are_not_there(tmp_path: Path) -> None:
    said = replaced("node: gen, send: out", "node: gn, send: out")
    said = said.replace("tap_in: a0", "tap_in: a9").replace("cable: dut.right", "cable: dot.right")
    told = (
        ("line 20: nodes.stamp.ports.b0.cable: ", "'dot'", "gen, stamp, dut", "mean dut?"),
        ("line 29: roles.loadgen.node: ", "'gn'", "gen, stamp, dut", "mean gen?"),
        ("line 30: roles.timestamper.tap_in: ", "stamp has no port 'a9'", "a0, a1, b0, b1"),
    )
    for mistake, facts in zip(mistakes(tmp_path, said), told, strict=True):
        for fact in facts:
            assert fact in mistake


@pytest.mark.parametrize(
    ("found", "by", "told"),
    [
        ("cable: stamp.a0", "cable: stamp.a1", "stamp.a1 .*gen.out and dut.left"),
        (", cable: stamp.a0", "", "send goes nowhere.*stamp.a0 .*dut.left"),
        ("tap_out: b0", "tap_out: b1", "sink goes to stamp.b1.*timestamper.*inline"),
        ("b1: {interface: enp2s0f1}", "b1: {interface: enp2s0f0}", "enp2s0f0 is port b0"),
        ("host: gen.example.org", "host: -oProxyCommand=sh", "name of letters"),
        ("cable: stamp.a0", "cable: stamp", "expected NODE.PORT, not 'stamp'"),
    ],
)
def test_what_does_not_fit_together(tmp_path: Path, found: str, by: str, told: str) -> None:
    assert re.search(told, "; ".join(mistakes(tmp_path, replaced(found, by))))


def test_a_testbed_that_is_no_file(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yml"
    text = dedent(
        """\
        name: one
        testbed: locl
        dut: {preset: wire}
        traffic: {rate_pps: 10, duration_s: 2}
        """
    )
    plan.write_text(text, "utf-8")
    with pytest.raises(PlanError, match=r"line 2: testbed: .*local, .*testbed file"):
        plans.load(plan)


def test_it_is_drawn() -> None:
    described = plans.load_testbed(EXAMPLE / "testbed.yml")
    assert "  out        enp1s0f0 02:00:00:00:07:01  --  stamp.a0  [send]" in drawing.text(
        described
    )
    picture = drawing.svg(described)
    assert picture.count('class="cable"') == 4
    assert picture.count('class="node"') == 3
