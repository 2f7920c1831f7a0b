"""Plans on three hosts that are reached by SSH: real ones of sshd, in namespaces."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hosts import by_ssh, cabled, described, mac
from laboratory import passed

from tailtrim.laboratory.nodes.testbed_check import clock_finding

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab


@pytest.mark.fast
def test_a_plan_runs_on_three_hosts_and_leaves_nothing(lab: Lab, three_hosts: Hosts) -> None:
    plan = lab.plan(testbed=described(three_hosts), floor=True)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    for run in ("run-000", "run-001"):
        summary = lab.result(run, "summary")
        assert passed(summary) == lab.result(run, "generator")["sent"] > 0
        _says_where(lab.result(run, "nodes"))
    assert "stamp" in (lab.folder / "out" / "testbed.svg").read_text()
    for host in three_hosts.hosts.values():
        assert host.left() == []
    assert lab.left() == []


@pytest.mark.parametrize("fewer", [{"stamp": "gen"}, {"stamp": "gen", "dut": "gen"}])
def test_one_host_may_have_several_roles(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, fewer: dict[str, str]
) -> None:
    by_ssh()
    with cabled(lab.folder, fewer) as hosts:
        monkeypatch.setitem(lab.environment, "PATH", hosts.path)
        plan = lab.plan(testbed=described(hosts, fewer))
        ended = lab.run("run", str(plan), "--out", "out", "--json")
        assert ended.returncode == 0, ended.stderr
        assert lab.result("run-000", "summary")["samples"] > 0
        for host in hosts.hosts.values():
            assert host.left() == []


def _says_where(nodes: dict[str, Any]) -> None:
    """Each number has a node, which has a kernel and a boot line, and a clock."""
    assert nodes["roles"] == {"loadgen": "gen", "timestamper": "stamp", "dut": "dut"}
    assert nodes["ports"]["tap_in"]["mac"] == mac("stamp", "a0")
    assert nodes["numbers"]["summary"] == {
        "node": "stamp",
        "clocks": {"ingress": "CLOCK_REALTIME", "egress": "CLOCK_REALTIME"},
    }
    for number in nodes["numbers"].values():
        node = nodes["nodes"][number["node"]]
        assert node["kernel"] == platform.release()
        assert node["boot_line"] == " ".join(Path("/proc/cmdline").read_text().split())


def test_a_testbed_that_is_right_is_told_as_such(lab: Lab, three_hosts: Hosts) -> None:
    found = _checked(lab, described(three_hosts))
    assert [one["what"] for one in found if one["kind"] == "fault"] == []
    good = {one["where"]: one["what"] for one in found if one["kind"] == "good"}
    assert good["gen.out"] == "its frames arrive at stamp.a0"
    assert len([where for where in good if "." in where]) == 8
    for host in three_hosts.hosts.values():
        assert host.left() == []


@pytest.mark.fast
def test_swapped_cables_are_found(lab: Lab, three_hosts: Hosts) -> None:
    said = described(three_hosts)
    ports = said["nodes"]["gen"]["ports"]
    ports["out"]["interface"], ports["back"]["interface"] = "back", "out"
    del ports["out"]["mac"], ports["back"]["mac"]
    faults = _faults(lab, said)
    assert ("gen.out", "a frame sent there arrived at stamp.b1", "stamp.a0") in faults
    assert ("stamp.b1", "a frame sent there arrived at gen.out", "gen.back") in faults


def test_a_wrong_mac_and_a_port_that_is_not_there_are_found(lab: Lab, three_hosts: Hosts) -> None:
    said = described(three_hosts)
    said["nodes"]["dut"]["ports"]["left"]["mac"] = "02:00:00:00:09:09"
    said["nodes"]["stamp"]["ports"]["a0"]["interface"] = "none0"
    assert sorted(_faults(lab, said)) == [
        ("dut.left", f"left has the MAC address {mac('dut', 'left')}", "02:00:00:00:09:09"),
        ("stamp.a0", "there is no interface none0", ""),
    ]


def test_a_port_without_a_link_is_found(lab: Lab, three_hosts: Hosts) -> None:
    dut = three_hosts.hosts["dut"]
    dut.run("ip", "link", "add", "dummy0", "type", "veth", "peer", "name", "dummy1")
    said = described(three_hosts)
    said["nodes"]["dut"]["ports"]["spare"] = {"interface": "dummy0"}
    assert ("dut.spare", "dummy0 is down: no carrier within 15 s", "a link") in _faults(lab, said)


def test_the_port_of_the_connection_is_refused(lab: Lab, three_hosts: Hosts) -> None:
    said = described(three_hosts)
    said["nodes"]["dut"]["ports"]["left"] = {"interface": "control"}
    what = "control is the way to this host by SSH, which would be cut"
    assert ("dut.left", what, "a port for tests only") in _faults(lab, said)


def test_a_missing_right_is_found(lab: Lab, three_hosts: Hosts) -> None:
    said = described(three_hosts)
    said["nodes"]["dut"]["ssh"]["user"] = "guest"
    ((where, what, _),) = _faults(lab, said)
    assert where == "dut"
    assert what.startswith("the user is not root and may not become it: ")


def test_an_unknown_host_key_and_a_host_that_is_away_are_found(
    lab: Lab, three_hosts: Hosts
) -> None:
    said = described(three_hosts)
    nothing = lab.folder / "nothing"
    nothing.touch()
    said["nodes"]["gen"]["ssh"]["known_hosts"] = str(nothing)
    said["nodes"]["dut"]["ssh"]["port"] = 23
    (dut, away, _), (gen, unknown, _) = sorted(_faults(lab, said))
    assert (gen, dut) == ("gen", "dut")
    assert unknown.endswith("Host key verification failed.")
    assert away.endswith("Connection refused")


def test_an_old_agent_is_found_replaced_and_cleaned(lab: Lab, three_hosts: Hosts) -> None:
    dut = three_hosts.hosts["dut"]
    _checked(lab, described(three_hosts))
    (place,) = dut.run("sh", "-c", "ls /root/.cache/tailtrim/agent-*/tailtrim-agent").split()
    dut.run("sh", "-c", f"echo old >{place}; mkdir /root/.cache/tailtrim/agent-old")
    notes = [one["what"] for one in _checked(lab, described(three_hosts)) if one["kind"] == "note"]
    assert notes == [
        "the agent was missing or of another version, and was copied there",
        "has agents of other versions: agent-old",
    ]
    ended = lab.run("testbed", "clean", str(_file(lab, described(three_hosts))))
    assert ended.returncode == 0, ended.stderr
    assert dut.run("ls", "/root/.cache") == ""


def test_two_clocks_are_found() -> None:
    found = clock_finding("stamp", "/dev/ptp0", "/dev/ptp1")
    assert found.kind == "fault"
    assert found.what == "two clocks: tap_in has /dev/ptp0, tap_out has /dev/ptp1"
    assert clock_finding("stamp", "/dev/ptp0", None).kind == "fault"
    assert clock_finding("stamp", "/dev/ptp0", "/dev/ptp0").kind == "good"
    assert clock_finding("stamp", None, None).kind == "good"


def _file(lab: Lab, said: dict[str, Any]) -> Path:
    place = lab.folder / "testbed.yml"
    place.write_text(yaml.safe_dump(said), encoding="utf-8")
    return place


def _checked(lab: Lab, said: dict[str, Any]) -> list[dict[str, str]]:
    ended = lab.run("testbed", "check", str(_file(lab, said)), "--json")
    told: dict[str, Any] = json.loads(ended.stdout)
    assert ended.returncode == (3 if told["faults"] else 0), ended.stderr
    found: list[dict[str, str]] = told["findings"]
    return found


def _faults(lab: Lab, said: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = _checked(lab, said)
    return [(o["where"], o["what"], o["expected"]) for o in found if o["kind"] == "fault"]
