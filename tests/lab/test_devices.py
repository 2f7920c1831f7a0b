"""Each device under test on a live testbed: packets that enter it leave it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from laboratory import all_counted, passed
from releases import path_with

from tailtrim.laboratory.devices.nftables import rules

if TYPE_CHECKING:
    from laboratory import Lab


@pytest.mark.parametrize(
    "dut",
    [
        {"preset": "testpmd", "driver": "af_xdp"},
        {"preset": "forward", "mode": "wait", "batch": 1},
        {"preset": "xdp"},
        {"preset": "ovs"},
        {"preset": "snort"},
    ],
    ids=lambda dut: " ".join(map(str, dut.values())),
)
def test_what_enters_leaves(lab: Lab, dut: dict[str, Any]) -> None:
    ended = lab.run("run", str(lab.plan(dut=dut)), "--out", "out", "--json")
    if ended.returncode == 3:
        assert ended.stderr.count("error:") == 1
        pytest.skip(ended.stderr.strip())
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["summary"]["ingress"]["packets"] == 2_500
    assert all_counted(run["summary"])
    assert lab.left() == []


@pytest.mark.alone
@pytest.mark.parametrize("preset", ["forward", "bridge", "nftables"])
def test_a_device_passes_what_it_is_sent_on_a_quiet_machine(lab: Lab, preset: str) -> None:
    """Send 5,000 packets/s, of which the kernel forwards a hundred times as many on one CPU."""
    ended = lab.run("run", str(lab.plan(dut={"preset": preset})), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["summary"]["ingress"]["packets"] == 2_500
    assert run["summary"]["ingress"]["lost"] == 0
    # Some are set aside where the generator stood still: on two CPUs it sometimes does.
    assert passed(run["summary"]) > 2_400


@pytest.mark.packages
@pytest.mark.parametrize("root", ["trixie-suricata", "sid-peers"])
def test_suricata_7_and_8_drop_what_a_rule_says_and_nothing_else(lab: Lab, root: str) -> None:
    lab.environment["PATH"] = path_with(lab.folder / "bin", root, "suricata")
    rules = lab.folder / "one-flow.rules"
    # Flow n sends from port 10000 + n.
    rules.write_text('drop udp any 10001 -> any any (msg:"the second flow"; sid:1;)\n')
    for ruleset, most in ((None, 2_500), (str(rules), 1_875)):
        plan = lab.plan(dut={"preset": "suricata", "ruleset": ruleset})
        ended = lab.run("run", str(plan), "--out", f"at-most-{most}", "--json")
        assert ended.returncode == 0, ended.stderr
        (run,) = json.loads(ended.stdout)["runs"]
        assert run["summary"]["ingress"]["packets"] == 2_500
        assert all_counted(run["summary"])
        assert passed(run["summary"]) <= most
    assert lab.left() == []


@pytest.mark.parametrize("preset", ["wire", "forward", "router", "nftables"])
def test_ipv6(lab: Lab, preset: str) -> None:
    traffic = {"rate_pps": 2_000, "duration_s": 0.3, "frame_bytes": 84, "ip": 6}
    plan = lab.plan(dut={"preset": preset}, traffic=traffic)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    if ended.returncode == 3:
        pytest.skip(ended.stderr.strip())
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert passed(run["summary"]) == 600
    assert run["summary"]["egress"]["unmatched"] == 0


def test_large_frames_with_a_vlan_pass_the_wire(lab: Lab) -> None:
    traffic = {"rate_pps": 2_000, "duration_s": 0.3, "frame_bytes": "68,9018", "vlan": 7}
    plan = lab.plan(dut={"preset": "wire"}, traffic=traffic)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert passed(run["summary"]) == 600
    # Without FCS.
    assert run["summary"]["taps"]["ingress"]["bytes"] == 300 * (68 + 9_018 - 8)


def test_a_device_that_is_not_there_does_not_keep_the_others(lab: Lab) -> None:
    lab.environment["PATH"] = lab.path_without("dpdk-testpmd")
    plan = lab.plan(dut={"preset": "$dut"}, loop={"dut": ["testpmd", "bridge"]}, repeat=2)
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert "error:" not in ended.stderr
    told = "warning: run-000 (testpmd) and 1 more: skipped: dpdk-testpmd is not installed"
    assert ended.stderr.count(told) == 1
    assert ended.stderr.index("run-002  testpmd: skipped") < ended.stderr.index("run-001  bridge")
    assert lab.result("run-001", "outcome")["failed"] is None
    alone = lab.run("run", str(lab.plan(dut={"preset": "testpmd"})), "--out", "alone")
    assert alone.returncode == 3
    assert "expected Debian package dpdk-dev" in alone.stderr


def test_the_firewall_has_one_rule_that_fits() -> None:
    lines = rules(30_000, 20_001).splitlines()
    ports = [int(line.split()[2]) for line in lines if "accept" in line]
    assert len(ports) == 30_000
    assert [number for number, port in enumerate(ports, start=1) if port == 20_000] == [20_001]
