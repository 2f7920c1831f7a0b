"""Taps in other places than inline on one host: on mirrors, and on two hosts with two clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kept_clocks
import pytest
import yaml
from hosts import Hosts, by_ssh, cabled, described
from laboratory import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laboratory import Lab

#: Ports of a switch, with what they are cabled to.
_SWITCH = {
    "s0": ("gen", "out"),
    "s1": ("dut", "left"),
    "s2": ("dut", "right"),
    "s3": ("gen", "back"),
    "m0": ("stamp", "a0"),
    "m1": ("stamp", "b0"),
}
_MIRROR = """
ip link add one type bridge; ip link add two type bridge
for port in s0 s1; do ip link set $port master one; done
for port in s2 s3; do ip link set $port master two; done
for port in s0 s1 s2 s3 m0 m1 one two; do
    ethtool -K $port tx off rx off gro off gso off tso off 2>/dev/null
    ip link set $port up multicast off
done
mirror() {
    tc qdisc add dev $1 ingress
    tc filter add dev $1 parent ffff: protocol all u32 match u32 0 0 \
        action mirred egress mirror dev $2
}
mirror s0 m0; mirror s2 m1
for place in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$place; done
"""


@pytest.fixture
def mirrored(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """Return three hosts whose cables go through a switch that mirrors to the taps."""
    by_ssh()
    with Hosts(lab.folder, ["gen", "stamp", "dut", "switch"]) as hosts:
        for port, (host, peer) in _SWITCH.items():
            group = "09" if port.startswith("m") else "07"
            macs = (f"02:00:00:00:{group}:2{port[1]}", f"02:00:00:00:{group}:1{port[1]}")
            hosts.cable("switch", port, host, peer, macs)
        hosts.hosts["switch"].run("sh", "-c", _MIRROR)
        monkeypatch.setenv("PATH", hosts.path)
        lab.environment["PATH"] = hosts.path
        yield hosts


def _on_mirrors(hosts: Hosts) -> dict[str, Any]:
    said = described(hosts)
    ports = {name: node["ports"] for name, node in said["nodes"].items()}
    for node in ports.values():
        for port in node.values():
            port.pop("mac")
            port.pop("cable", None)
    ports["gen"]["out"]["cable"], ports["gen"]["back"]["cable"] = "dut.left", "dut.right"
    for name in ("a1", "b1"):
        del ports["stamp"][name]
    return said


def test_a_timestamper_on_mirrors_sees_all_packets(lab: Lab, mirrored: Hosts) -> None:
    plan = lab.plan(testbed=_on_mirrors(mirrored))
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    summary, sent = lab.result("run-000", "summary"), lab.result("run-000", "generator")["sent"]
    assert passed(summary) == sent > 0
    assert lab.result("run-000", "outcome")["invalid"] == []
    ports = lab.result("run-000", "capture")["ports"]
    assert ports["tap_in"]["packets"] >= sent
    assert ports["sink"]["packets"] >= sent
    assert all(port["dropped"] == port["missed_errors"] == 0 for port in ports.values())


def test_what_a_mirror_loses_is_not_taken_for_the_devices_loss(lab: Lab, mirrored: Hosts) -> None:
    """A mirror that copies at most 100 kbit/s; the device loses nothing."""
    switch = mirrored.hosts["switch"]
    switch.run("sh", "-c", "tc qdisc add dev m1 root tbf rate 100kbit burst 2k limit 2k")
    plan = lab.plan(testbed=_on_mirrors(mirrored))
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    invalid = lab.result("run-000", "outcome")["invalid"]
    assert any("the mirror" in why for why in invalid), invalid


@pytest.fixture
def two_taps(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """Return three hosts; the load generator has the second tap."""
    by_ssh()
    with cabled(lab.folder) as hosts:
        hosts.cable("dut", "second", "gen", "tap", ("02:00:00:00:09:01", "02:00:00:00:09:02"))
        hosts.cable("gen", "on", "gen", "last", ("02:00:00:00:09:03", "02:00:00:00:09:04"))
        monkeypatch.setenv("PATH", hosts.path)
        lab.environment["PATH"] = hosts.path
        yield hosts


def _two(hosts: Hosts) -> dict[str, Any]:
    said = described(hosts)
    nodes, roles = said["nodes"], said["roles"]
    nodes["dut"]["ports"]["right"] = {"interface": "second", "cable": "gen.tap"}
    nodes["gen"]["ports"] = {
        "out": {"interface": "out", "cable": "stamp.a0"},
        "tap": {"interface": "tap"},
        "on": {"interface": "on", "cable": "gen.back"},
        "back": {"interface": "last"},
    }
    nodes["stamp"]["ports"] = {
        "a0": {"interface": "a0"},
        "a1": {"interface": "a1", "cable": "dut.left"},
    }
    roles["timestamper"] |= {"tap_out": "tap", "tap_out_node": "gen"}
    return said


def test_two_clocks_without_a_bound_make_a_run_invalid(lab: Lab, two_taps: Hosts) -> None:
    ended = lab.run("run", str(lab.plan(testbed=_two(two_taps))), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (invalid,) = lab.result("run-000", "outcome")["invalid"]
    assert invalid.startswith("latency is not measurable: the taps are on stamp and gen, and how")
    (lab.folder / "testbed.yml").write_text(yaml.safe_dump(_two(two_taps)))
    checked = lab.run("testbed", "check", "testbed.yml")
    assert "fault  stamp and gen: two clocks" in checked.stdout
    taps = lab.result("run-000", "nodes")["taps"]
    assert (taps["clocks"], taps["bound_ns"]) == (2, None)
    assert [taps[name]["node"] for name in ("ingress", "egress")] == ["stamp", "gen"]


def _measured(lab: Lab, hosts: Hosts, delay: str) -> tuple[dict[str, Any], list[str]]:
    """Return what is recorded of the clocks of a run, and why it is invalid."""
    said = {"preset": "forward", "delay": f"constant:{delay}"}
    plan = lab.plan(testbed=_two(hosts), dut=said)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    invalid: list[str] = lab.result("run-000", "outcome")["invalid"]
    return lab.result("run-000", "nodes")["taps"], invalid


def test_two_clocks_that_ptp4l_keeps_carry_their_bound(lab: Lab, two_taps: Hosts) -> None:
    """The true difference is 0; a packet that ptp4l stamps late takes some ms here."""
    kept_clocks.cabled(two_taps, "stamp", "gen")
    kept_clocks.by_ptp(two_taps, "stamp", "gen")
    taps, invalid = _measured(lab, two_taps, "10ms")
    assert 0 < taps["bound_ns"] < 10_000_000, taps
    server, client = (taps["before"][name]["bounds"][0] for name in ("stamp", "gen"))
    assert (server["by"], server["stamping"], server["ns"]) == ("PTP", "software", 0)
    assert client["source"] == server["source"]
    assert client["ns"] > 0
    assert taps["before"]["gen"]["programs"] == ["ptp4l"]
    assert invalid == []
    assert lab.run("report", "out", "--out", "page").returncode == 0
    page = (lab.folder / "page" / "report.html").read_text()
    assert '<svg class="testbed"' in page
    assert "two, at most" in page


def test_two_clocks_whose_bound_is_above_the_median_make_a_run_invalid(
    lab: Lab, two_taps: Hosts
) -> None:
    """A client of NTP that takes its source for 10 ms away."""
    kept_clocks.cabled(two_taps, "stamp", "gen")
    kept_clocks.by_ntp(two_taps, "stamp", "gen", 0.010)
    taps, invalid = _measured(lab, two_taps, "200us")
    assert taps["bound_ns"], taps
    assert 9_900_000 < taps["bound_ns"] < 20_000_000
    assert taps["why"] == f"NTP, source {kept_clocks.SERVER}"
    assert taps["before"]["stamp"]["bounds"][0]["ns"] == 0
    assert taps["before"]["gen"]["programs"] == ["chronyd"]
    assert invalid[0].startswith("latency is not measurable: the taps are on stamp and gen, their")
