"""Steps of an experiment on each node, told without doing them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_pci import FUNCTION, FakeHost
from unwired import Bare

from tailtrim.laboratory.experiment.dry_run import dry_run
from tailtrim.laboratory.experiment.plan_check import lacking
from tailtrim.laboratory.nodes.vm import pci
from tailtrim.laboratory.nodes.vm.machine import COMMON
from tailtrim.laboratory.plan import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
TRAFFIC = {"rate_pps": 100, "duration_s": 2}
POWER = {"kind": "person", "machine": "rack 3"}

Steps = dict[str, list[tuple[str, str]]]


def told(folder: Path, plan: dict[str, Any]) -> tuple[dict[str, Any], Steps]:
    """Return all of it, and the steps on each node."""
    place = folder / "plan.yml"
    place.write_text(yaml.safe_dump({"name": "dry", "traffic": TRAFFIC} | plan), "utf-8")
    would = dry_run(*load(place)).as_json()
    steps = {
        node["node"]: [(step["do"], step["what"]) for step in node["steps"]]
        for node in would["nodes"]
    }
    return would, steps


def hosts(**dut: Any) -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load((EXAMPLE / "testbed.yml").read_text("utf-8"))
    said["nodes"]["dut"] |= dut
    return said


def has(steps: list[tuple[str, str]], do: str, *parts: str) -> bool:
    return any(kind == do and all(part in what for part in parts) for kind, what in steps)


def test_each_host_is_told_what_is_done_to_it(tmp_path: Path) -> None:
    allowed = {
        "may": ["reboot", "bootline"],
        "boot": {"by": "kexec", "line": "root=/dev/sda1 ro"},
        "power": POWER,
    }
    plan = {
        "testbed": hosts(**allowed),
        "dut": {"preset": "router"},
        "boot": {"kernel": "$kernel", "cmdline": "isolcpus=1"},
        "loop": {"kernel": ["6.1.0-40-amd64", "6.12.48-rt"]},
        "boots": 2,
        "floor": False,
    }
    would, steps = told(tmp_path, plan)
    assert (would["runs"], would["boots"], would["configurations"]) == (4, 4, 2)
    assert (would["expected_s"], would["expected_is"]) == (8, "at least")
    assert set(steps) == {"gen", "stamp", "dut"}
    for node in steps.values():
        assert has(node, "reserve", "for dry")
        assert has(node, "copy agent", "~/.cache/tailtrim")
    line = "root=/dev/sda1 ro isolcpus=1"
    assert has(steps["dut"], "boot", "kexec", "kernel 6.12.48-rt", f"line: {line}")
    assert has(steps["dut"], "ports", "enp1s0f0, enp1s0f1: ", "namespace of the dut")
    assert has(steps["dut"], "set up", "ip address add 198.18.0.254/24 dev enp1s0f0")
    assert has(steps["dut"], "set up", "ip neighbour replace 198.19.0.1 lladdr 02:00:00:00:07:02")
    assert has(steps["dut"], "power", "off and on once", "(person at rack 3)")
    assert has(steps["gen"], "power", "not switched (no power")
    # Its file names the CPUs of the generator, and not those of the timestamper.
    assert has(steps["gen"], "start", "generate --interface enp1s0f0", "--cpu 2", "--duration 2.0")
    taps = "--tap ingress=enp1s0f0 --tap egress=enp2s0f0"
    assert has(steps["stamp"], "start", f"taskset --cpu-list CPU tailtrim-agent capture {taps}")


def test_power_that_may_not_be_used_is_told(tmp_path: Path) -> None:
    plan = {"testbed": hosts(power=POWER, may=[]), "dut": {"preset": "wire"}}
    _, steps = told(tmp_path, plan)
    assert has(steps["dut"], "power", "not switched (no reboot")


def test_steps_have_the_runs_that_they_are_for(tmp_path: Path) -> None:
    would, _ = told(tmp_path, {"dut": {"preset": "$dut"}, "loop": {"dut": ["bridge", "forward"]}})
    (dut,) = (node for node in would["nodes"] if node["node"] == "dut")
    (bridged,) = (one for one in dut["steps"] if "link add br0" in one["what"])
    (forwards,) = (one for one in dut["steps"] if one["do"] == "start")
    assert (bridged["runs"], forwards["runs"]) == (["run-001"], ["run-002"])


def test_a_device_that_is_kept_is_started_and_warmed_up_once(tmp_path: Path) -> None:
    """Two rates, with the wire before them and again at the end."""
    plan = {
        "dut": {"preset": "forward", "lifetime": "configuration"},
        "traffic": TRAFFIC | {"rate_pps": "$rate"},
        "loop": {"rate": [100, 200]},
        "limits": {"warm_up_s": 30},
        "order": "plan",
    }
    would, steps = told(tmp_path, plan)
    runs = {
        node["node"]: {step["what"]: step["runs"] for step in node["steps"]}
        for node in would["nodes"]
    }
    (forwards,) = (of for what, of in runs["dut"].items() if "tailtrim-agent forward" in what)
    (warm,) = (what for kind, what in steps["dut"] if kind == "warm up")
    for fact in ("as in run-001, 5 s", "is steady", "30 s at most"):
        assert fact in warm
    assert forwards == runs["dut"][warm] == runs["loadgen"][warm] == ["run-001"]
    (captures,) = (of for what, of in runs["timestamper"].items() if "agent capture" in what)
    assert captures == ["run-000", "run-001", "run-002", "run-003"]


def two_taps() -> dict[str, Any]:
    said = hosts()
    gen, stamp = (said["nodes"][name]["ports"] for name in ("gen", "stamp"))
    gen |= {"tap": stamp.pop("b0"), "on": stamp.pop("b1") | {"cable": "gen.back"}}
    del gen["back"]["cable"], gen["back"]["mac"]
    gen["tap"] = {"interface": "enp2s0f0"}
    said["nodes"]["dut"]["ports"]["right"]["cable"] = "gen.tap"
    said["roles"]["timestamper"] |= {"tap_out": "tap", "tap_out_node": "gen"}
    return said


def test_minutes_of_taps_on_two_nodes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    place = tmp_path / "plan.yml"
    plan = {"name": "x", "testbed": two_taps(), "dut": {"preset": "wire"}, "traffic": TRAFFIC}
    place.write_text(yaml.safe_dump(plan | {"by_minute": True}), "utf-8")
    loaded, (run,) = load(place)
    why = lacking(loaded, run, Bare(), {})
    assert re.match("by_minute: .*taps .*stamp and gen, .*one node", str(why))
    place.write_text(yaml.safe_dump(plan), "utf-8")
    loaded, (run,) = load(place)
    assert lacking(loaded, run, Bare(), {}) is None


def test_a_second_timestamper_is_told(tmp_path: Path) -> None:
    _, steps = told(tmp_path, {"testbed": two_taps(), "dut": {"preset": "wire"}})
    assert has(steps["stamp"], "start", "capture --tap ingress=enp1s0f0", "--stamps STAMPS")
    assert has(steps["gen"], "start", "capture --tap egress=enp2s0f0", "--stamps STAMPS")
    assert has(steps["gen"], "ports", "enp2s0f0, enp2s0f1: ", "namespace of the timestamper_out")
    assert has(steps["gen"], "start", "generate --interface enp1s0f0", "--dst-mac MAC")


@pytest.mark.parametrize(
    ("dut", "do", "part"),
    [
        ({"preset": "testpmd"}, "start", "dpdk-testpmd"),
        ({"preset": "ovs"}, "start", "ovs-vswitchd"),
        ({"preset": "suricata"}, "start", "suricata -c $RUN/suricata.yaml"),
        ({"preset": "snort"}, "start", "snort -Q --daq afpacket -i d0:d1"),
        ({"preset": "nftables"}, "set up", "nft -f -"),
        ({"preset": "xdp"}, "set up", "XDP program to d0"),
        ({"preset": "command", "command": "x {in} {out}"}, "start", "x d0 d1"),
        (
            {"preset": "forward", "node": "container", "container": {"cpu.max": "50000 100000"}},
            "container",
            "files, read-only; cpu.max 50000 100000",
        ),
        ({"preset": "forward", "disturb": "stop:2ms,100ms"}, "start", "disturb stop:2ms,100ms"),
    ],
)
def test_each_device_is_told(tmp_path: Path, dut: dict[str, Any], do: str, part: str) -> None:
    _, steps = told(tmp_path, {"dut": dut, "floor": False})
    assert has(steps["dut"], do, part)


def test_a_reflector_is_told_with_how_its_host_is_tuned(tmp_path: Path) -> None:
    dut = {"preset": "reflector", "preemption": "full", "tuned": "network-latency"}
    _, steps = told(tmp_path, {"dut": dut, "traffic": TRAFFIC | {"frame_bytes": 100}})
    assert has(steps["reflector"], "tune", "tuned-adm profile network-latency")
    assert has(steps["reflector"], "tune", "/sys/kernel/debug/sched/preempt full")
    assert has(steps["reflector"], "start", "tailtrim-agent reflect --echo")
    assert has(steps["client"], "start", "tailtrim-agent ping 198.18.0.2")


def test_round_trips_are_told_by_host(tmp_path: Path) -> None:
    dut = {"preset": "reflector", "path": "bridge"}
    traffic = TRAFFIC | {"frame_bytes": 100}
    _, steps = told(tmp_path, {"testbed": hosts(), "dut": dut, "traffic": traffic})
    assert has(steps["dut"], "start", "tailtrim-agent reflect --echo")
    assert has(steps["gen"], "start", "tailtrim-agent ping 198.18.0.2")
    assert has(steps["stamp"], "set up", "ip link add br0 type bridge")


def test_a_virtual_machine_is_told_with_its_boot(tmp_path: Path) -> None:
    plan = {
        "dut": {"preset": "bridge", "node": "vm"},
        "boot": {"kernel": "trixie/rt", "cmdline": "quiet"},
        "boots": 1,
    }
    would, steps = told(tmp_path, plan)
    assert would["boots"] == 1
    line = f"{COMMON} quiet"
    guest = steps["dut (virtual machine)"]
    assert has(guest, "boot", "QEMU", "kernel trixie/rt", f"line: {line}")
    assert has(guest, "set up", "ip link set d0 master br0")


PASSED = {
    "dut": {"preset": "router", "node": "vm"},
    "boot": {"kernel": "trixie/amd64"},
    "boots": 1,
    "vm": {"accelerator": "tcg", "ports": {"in": {"pci": "03:00.0", "cable": "eth4"}}},
    "floor": False,
}
MACHINE = "dut (virtual machine)"


def test_a_pci_device_that_would_be_passed_through_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeHost(tmp_path, monkeypatch)
    monkeypatch.setattr(pci, "ROOT", fake.root)
    _, steps = told(tmp_path, PASSED)
    passed = "d0: 0000:03:00.0 (eth2, 02:00:00:00:0a:02, IOMMU group 12)"
    assert has(steps[MACHINE], "ports", passed, "from ixgbe to vfio-pci")
    assert has(steps[MACHINE], "ports", "d1: virtio-net, ", "taps of the timestamper")
    assert has(steps["timestamper"], "ports", "eth4: ", "namespace of the timestamper")
    assert has(steps["timestamper"], "set up", "redirect dev eth4")
    assert fake.writes == []


def test_settings_of_a_virtual_function_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeHost(tmp_path, monkeypatch)
    fake.function(trust=False)
    monkeypatch.setattr(pci, "ROOT", fake.root)
    ports = {"in": {"pci": FUNCTION, "cable": "eth4"}}
    _, steps = told(tmp_path, PASSED | {"vm": {"accelerator": "tcg", "ports": ports}})
    trusted = "ip link set eth2 vf 0 trust on, and off after the boot"
    assert has(steps[MACHINE], "ports", trusted)


def test_why_a_pci_device_cannot_be_passed_through_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pci, "ROOT", tmp_path / "nothing")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    _, steps = told(tmp_path, PASSED)
    assert has(steps[MACHINE], "ports", "in 0000:03:00.0: ", "no IOMMU")
