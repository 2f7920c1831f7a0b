"""Experiments on a live testbed of network namespaces."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laboratory import all_counted

from tailtrim.laboratory.devices.running_device import DeviceUnderTest, wait_until_ready
from tailtrim.laboratory.devices.wire import Wire
from tailtrim.laboratory.nodes.namespace_testbed import LocalTestbed
from tailtrim.laboratory.nodes.ports import redirect

if TYPE_CHECKING:
    from laboratory import Lab


@pytest.mark.fast
@pytest.mark.parametrize("preset", ["wire", "forward", "testpmd", "bridge", "router", "nftables"])
def test_every_packet_is_accounted_for(lab: Lab, preset: str) -> None:
    program = {"testpmd": "dpdk-testpmd", "nftables": "nft"}.get(preset)
    if program and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    dut = {"preset": preset} | ({"rules": 50, "position": 50} if preset == "nftables" else {})
    ended = lab.run("run", str(lab.plan(dut=dut)), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    summary, generator = run["summary"], lab.result("run-000", "generator")
    taps = lab.result("run-000", "capture")["taps"]
    assert generator["due"] == generator["sent"] == 2_500
    assert taps["ingress"]["packets"] == summary["ingress"]["packets"] == 2_500
    assert taps["egress"]["packets"] == summary["egress"]["packets"]
    assert all_counted(summary)
    assert lab.left() == []
    if preset == "forward":
        device = lab.result("run-000", "device")
        # The probes that asked whether it is ready passed it before.
        assert device["received"] == device["sent"] >= 2_500


def test_an_experiment_explains_itself_and_is_not_overwritten(lab: Lab) -> None:
    plan = lab.plan(repeat=2, floor=True, keep_captures=True)
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    out = lab.folder / "out"
    assert (out / "plan.yml").read_text() == plan.read_text()
    assert json.loads((out / "audit.json").read_text())["schema"] == "tailtrim.audit/1"
    record = json.loads((out / "experiment.json").read_text())
    assert [outcome["run"] for outcome in record["outcomes"]] == ["run-000", "run-001", "run-002"]
    assert [outcome["floor"] for outcome in record["outcomes"]] == [True, False, False]
    assert {path.name for path in (out / "run-001").glob("*.pcap.zst")} == {
        "ingress.pcap.zst",
        "egress.pcap.zst",
    }
    assert "Experiment: out" in ended.stdout
    assert (out / "report" / "report.html").exists()
    again = lab.run("run", str(plan), "--out", "out")
    assert again.returncode == 2
    assert "holds an experiment already" in again.stderr
    done = lab.run("run", str(plan), "--out", "out", "--resume")
    assert done.returncode == 0, done.stderr
    other = lab.run("run", str(lab.plan(repeat=1)), "--out", "out", "--resume")
    assert other.returncode == 2
    assert "a different plan" in other.stderr


@pytest.mark.fast
def test_a_killed_experiment_leaves_nothing_and_goes_on(lab: Lab) -> None:
    plan = lab.plan(repeat=3, order="random", seed=4)
    out = lab.folder / "out"
    with subprocess.Popen(
        lab.command("run", str(plan), "--out", "out"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=lab.environment,
        cwd=lab.folder,
    ) as process:
        until_s = time.monotonic() + 60
        while not (out / "run-000").exists() or not list(out.glob(".run-001-*")):
            assert time.monotonic() < until_s
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    lab.until_ended()
    before = json.loads((out / "experiment.json").read_text())
    first = (out / "run-000" / "summary.json").read_bytes()
    ended = lab.run("run", str(plan), "--out", "out", "--resume")
    assert ended.returncode == 0, ended.stderr
    after = json.loads((out / "experiment.json").read_text())
    assert after["order"] == before["order"]
    assert (out / "run-000" / "summary.json").read_bytes() == first
    assert [outcome["run"] for outcome in after["outcomes"]] == ["run-000", "run-001", "run-002"]
    assert list(out.glob(".run-*")) == []


@pytest.mark.fast
def test_in_a_user_namespace_without_privileges(lab: Lab) -> None:
    # A user other than root has to make the user namespace of the testbed first.
    unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this host allows no user namespaces")
    ended = subprocess.run(
        [*unshare, *lab.command("run", str(lab.plan()), "--out", "out", "--json")],
        capture_output=True,
        text=True,
        check=False,
        env=lab.environment,
        cwd=lab.folder,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert all_counted(json.loads(ended.stdout)["runs"][0]["summary"])
    assert not json.loads((lab.folder / "out" / "experiment.json").read_text())["host"]["root"]
    assert lab.left() == []


@pytest.mark.fast
def test_a_device_that_dies_keeps_what_was_finished(lab: Lab) -> None:
    plan = lab.plan(
        dut={"preset": "command", "command": "$program"},
        loop={"program": [_redirect(), "sleep 0.1"]},
    )
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 4
    assert "error: run-001" in ended.stderr
    assert "(command) died" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (lab.folder / "out" / "run-000" / "summary.json").exists()
    assert not (lab.folder / "out" / "run-001").exists()
    assert lab.left() == []


def _redirect() -> str:
    """Return a device by hand: the kernel passes frames on, and a shell waits."""
    match = "protocol all u32 match u32 0 0 action mirred egress redirect dev {out}"
    steps = (
        "tc qdisc add dev {in} ingress",
        f"tc filter add dev {{in}} parent ffff: {match}",
        "sleep infinity",
    )
    return f"sh -c '{' && '.join(steps)}'"


def test_a_device_that_passes_nothing_is_told(
    lab: Lab,
) -> None:
    dut = {"preset": "command", "command": "sh -c 'echo mute; exec sleep infinity'"}
    ended = lab.run("run", str(lab.plan(dut=dut, limits={"ready_s": 0.5})), "--out", "out")
    assert ended.returncode == 4
    assert "nothing passes" in ended.stderr
    assert "it printed: mute" in ended.stderr
    assert (lab.folder / "out" / "failed" / "run-000" / "dut.log").read_text().startswith("mute")
    assert lab.left() == []


def test_a_bad_plan_and_a_missing_program_are_one_message_each(lab: Lab) -> None:
    ended = lab.run("run", str(lab.plan(traffic={"rate_pps": 0})), "--out", "out")
    assert ended.returncode == 2
    assert ended.stderr.count("error:") == 1
    assert "Traceback" not in ended.stderr
    dut = {"preset": "command", "command": "tailtrim-no-such-program"}
    ended = lab.run("run", str(lab.plan(dut=dut)), "--out", "out")
    assert ended.returncode == 3
    assert "tailtrim-no-such-program" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_interface_that_goes_is_one_clear_error(lab: Lab, tmp_path: Path) -> None:
    agent = str(Path(lab.program).with_name("tailtrim-agent"))
    for verb in (
        ["generate", "--interface", "l0", "--rate", "1000"],
        ["capture", "--tap", "t=l0", "--out", str(tmp_path / "captures")],
        ["forward", "--ingress", "l0", "--egress", "l1"],
    ):
        with (
            LocalTestbed().forwarding(tmp_path) as testbed,
            subprocess.Popen(
                [*testbed.loadgen.prefix, agent, *verb],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=lab.environment,
            ) as process,
        ):
            assert process.stdout
            assert "ready" in process.stdout.readline()
            testbed.loadgen.run("ip", "link", "del", "l0")
            try:
                _, told = process.communicate(timeout=20)
            finally:
                process.kill()
            assert process.returncode == 4, (verb, told)
            assert told.count("error:") == 1, told


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_an_independent_capture_sees_the_same_packets(lab: Lab, tmp_path: Path) -> None:
    agent = str(Path(lab.program).with_name("tailtrim-agent"))
    seen = tmp_path / "sink.pcap"
    with (
        LocalTestbed().forwarding(tmp_path) as testbed,
        DeviceUnderTest(Wire(preset="wire"), testbed),
    ):
        tcpdump = [
            "tcpdump",
            "-i",
            testbed.sink.name,
            "-w",
            str(seen),
            "-s",
            "96",
            "-U",
            "-Z",
            "root",
        ]
        tcpdump += ["--nano", "--immediate-mode", "udp"]
        with subprocess.Popen(
            [*testbed.loadgen.prefix, *tcpdump], stderr=subprocess.PIPE, text=True
        ) as other:
            assert other.stderr
            assert "listening" in other.stderr.readline()
            load = ["generate", "--interface", "l0", "--rate", "5000", "--count", "1000"]
            capture = ["capture", "--tap", "egress=b0", "--out", str(tmp_path)]
            with subprocess.Popen(
                [*testbed.timestamper.prefix, agent, *capture], stdout=subprocess.PIPE, text=True
            ) as tap:
                assert tap.stdout
                assert "ready" in tap.stdout.readline()
                testbed.loadgen.run(agent, *load)
                time.sleep(0.5)
                tap.send_signal(signal.SIGINT)
                tap.communicate(timeout=20)
            other.send_signal(signal.SIGINT)
            other.communicate(timeout=20)
    # Packets that left the device passed the tap and the last fibre, each once and soon after.
    ended = lab.run("analyze", str(tmp_path / "egress.pcap"), str(seen), "--skip", "0", "--json")
    summary = json.loads(ended.stdout)
    assert summary["ingress"]["matched"] == summary["egress"]["matched"] == 1_000
    assert summary["ingress"]["packets"] == summary["egress"]["packets"] == 1_000
    assert 0 < summary["latency_ns"]["min"] < 1_000_000


@pytest.mark.alone
def test_the_selftest_recovers_known_delays(lab: Lab) -> None:
    ended = lab.run("selftest", "--json")
    result = json.loads(ended.stdout)
    assert ended.returncode == (0 if result["recovered"] else 1), ended.stderr
    for floor in ("floor_ns", "device_ns"):
        assert [entry["p"] for entry in result[floor]] == ["0.5", "0.99", "0.999"]
        # Bounds for a machine that does other things as well; the real numbers are in benchmarks/.
        assert 0 < result[floor][0]["measured"] < 200_000
    best = result["truth"][0]
    assert best["true"] >= 20_000
    assert abs(best["error_ns"]) < 100_000
    for check in result["checks"]:
        assert check["rounds"] == 3
        assert check["packets"] > 40_000
        for one in check["truth"]:
            assert one["error_ns"] == one["measured"] - one["true"] - one["floor_ns"]
            # Recovered, or it says which part of the way is the reason.
            assert (one["reason"] is None) == (abs(one["error_ns"]) <= one["bound_ns"])
    assert lab.left() == []


@pytest.mark.parametrize("preset", ["bridge", "forward"])
def test_an_overloaded_run_is_invalid_with_reasons(lab: Lab, preset: str) -> None:
    # More than any host sends: the generator cannot end within its time.
    traffic = {"rate_pps": 20_000_000, "duration_s": 1, "flows": 4}
    plan = lab.plan(dut={"preset": preset}, traffic=traffic, limits={})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert "error:" not in ended.stderr
    reasons = lab.result("run-000", "outcome")["invalid"]
    assert any("the generator sent" in reason for reason in reasons), reasons
    assert any("the generator was late" in reason for reason in reasons), reasons
    assert lab.left() == []


def test_readiness_is_seen_by_packets_not_by_time(lab: Lab, tmp_path: Path) -> None:
    assert lab.left() == []
    with LocalTestbed().forwarding(tmp_path) as testbed:

        def alive() -> None:
            # The device comes up late: the third look finds it.
            looks.append(1)
            if len(looks) == 3:
                redirect(testbed.dut_in, testbed.dut_out)

        looks: list[int] = []
        wait_until_ready(testbed, testbed.sink, 4, alive, 10)
        assert len(looks) >= 3 + 5 - 1
