"""Plans that boot the device's host, and hosts that die: their sshd and shell are real."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from booting_hosts import LINE, OLD, RELEASE, BootingHost, Plug
from hosts import described
from test_ending import started, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hosts import Hosts
    from laboratory import Lab

pytestmark = pytest.mark.faults

BOOT: dict[str, Any] = {
    "boot": {"kernel": RELEASE, "cmdline": "$line"},
    "boots": 1,
    "loop": {"line": ["quiet", "quiet nosoftlockup"]},
}


@pytest.fixture
def dut(three_hosts: Hosts) -> BootingHost:
    return BootingHost(three_hosts, "dut")


@pytest.fixture
def plug(lab: Lab, dut: BootingHost) -> Iterator[Plug]:
    with Plug(dut) as plug:
        plug.states[1] = True
        lab.environment |= plug.environment
        yield plug


def bootable(hosts: Hosts, **more: Any) -> dict[str, Any]:
    said = described(hosts)
    said["nodes"]["dut"] |= {
        "may": ["reboot", "bootline"],
        "boot": {"by": "kexec", "line": LINE},
        "boot_s": 20,
    } | more
    return said


def test_a_plan_boots_the_devices_host(lab: Lab, three_hosts: Hosts, dut: BootingHost) -> None:
    plan = lab.plan(testbed=bootable(three_hosts), floor=True, **BOOT)
    ended = lab.run("run", str(plan), "--out", "out", timeout_s=240)
    assert ended.returncode == 0, ended.stderr
    assert "2 boots" in ended.stderr
    seen = {}
    for run in ("run-000", "run-001", "run-002"):
        nodes = lab.result(run, "nodes")
        assert nodes["roles"] == {"loadgen": "gen", "timestamper": "stamp", "dut": "dut"}
        assert not [d for d in lab.result(run, "outcome")["invalid"] if "environment" in d]
        if "boot" not in nodes:
            continue
        boot, line = nodes["boot"], nodes["boot"]["boot_line"]
        assert line["set"] == line["seen"] == f"{LINE} {line['asked']}"
        assert (boot["kernel"], boot["by"]) == (RELEASE, "kexec")
        assert nodes["nodes"]["dut"]["boot_line"] == line["seen"]
        assert nodes["nodes"]["dut"]["boot_id"] == boot["boot_id"]
        place = lab.folder / "out" / "boots" / boot["boot"]
        assert json.loads((place / "boot.json").read_text())["boot_id"] == boot["boot_id"]
        assert json.loads((place / "audit.json").read_text())["schema"]
        assert lab.result(run, "summary")["samples"] > 0
        seen[line["asked"]] = boot["boot_id"]
    assert set(seen) == {"quiet", "quiet nosoftlockup"}
    assert len(set(seen.values())) == 2
    assert dut.line.startswith(f"{LINE} quiet")
    for host in three_hosts.hosts.values():
        assert host.left() == []


def test_a_boot_line_that_does_not_do_what_it_says_is_not_booted(
    lab: Lab, three_hosts: Hosts, dut: BootingHost
) -> None:
    more = BOOT | {"loop": {"line": ["quiet", "isolcpus=900"]}}
    ended = lab.run("run", str(lab.plan(testbed=bootable(three_hosts), **more)), "--out", "out")
    assert ended.returncode == 2, ended.stderr
    assert "boot.cmdline: " in ended.stderr
    assert '"900" in isolcpus= is beyond CPUs 0-' in ended.stderr
    assert dut.line == OLD


def test_a_boot_that_hangs_is_cycled_once_and_fails_its_runs(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    dut.hangs_after_kexec()
    said = bootable(three_hosts, power=plug.said, boot_s=8)
    ended = lab.run("run", str(lab.plan(testbed=said, order="plan", **BOOT)), "--out", "out")
    assert ended.returncode == 4, ended.stderr
    assert "its power was cycled" in ended.stderr
    assert dut.cycles == 1
    # The outlet mended it: the second boot comes up.
    assert lab.result("run-001", "nodes")["boot"]["boot_line"]["seen"] == dut.line
    assert dut.line == f"{LINE} quiet nosoftlockup"


def test_a_search_goes_on_behind_a_boot_line_that_hangs(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    pytest.importorskip("pydoe", reason="needs tailtrim[trim]")
    dut.hangs_after_kexec()
    said = bootable(three_hosts, power=plug.said, boot_s=8)
    words = {"soft": "nosoftlockup", "hard": "nowatchdog"}
    changes = {name: {"baseline": "", "changed": word} for name, word in words.items()}
    boot = {"kernel": RELEASE, "cmdline": "quiet $soft $hard"}
    plan = lab.plan(testbed=said, boot=boot, trim={"candidates": changes})
    # With this seed a change is booted first: the one that hangs.
    with started(lab, "trim", str(plan), "--out", "out", "--seed", "2") as process:
        record = lab.folder / "out" / "trim.json"
        wait_until(lambda: len(searched(record)) > 2, process, within_s=240)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    first, *others = searched(record)[:3]

    assert "after its power was cycled" in first["observation"]["untried"]
    assert dut.cycles == 1
    assert first["changes"]
    boots = [
        json.loads(path.read_text()) for path in sorted(record.parent.glob("boots/*/boot.json"))
    ]
    assert "failed" in boots[0]
    for one, boot in zip(others, boots[1:], strict=False):
        line = [changes[name]["changed"] for name in one["changes"]]
        assert boot["boot_line"]["seen"] == " ".join([LINE, "quiet", *line])


def searched(record: Path) -> list[dict[str, Any]]:
    """Return the trials of a search so far."""
    if not record.exists():
        return []
    trials: list[dict[str, Any]] = json.loads(record.read_text())["trials"]
    return trials


def test_a_boot_that_hangs_without_power_leaves_the_host_out(
    lab: Lab, three_hosts: Hosts, dut: BootingHost
) -> None:
    dut.hangs_after_kexec()
    said = bootable(three_hosts, boot_s=3)
    ended = lab.run("run", str(lab.plan(testbed=said, **BOOT)), "--out", "out")
    assert ended.returncode == 4, ended.stderr
    assert "within 3 s" in ended.stderr
    assert "node dut died" in ended.stderr
    assert "nodes.dut.power" in ended.stderr


def test_a_host_that_dies_in_a_run_is_cycled_and_the_run_is_repeated(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    said = bootable(three_hosts, power=plug.said)
    ended, told = _dying(lab, said, three_hosts, dut)
    assert ended == 0, told
    assert dut.cycles == 1
    (why,) = lab.result("run-000", "outcome")["repeated"]
    assert "its power was cycled" in why
    assert lab.result("run-000", "summary")["samples"] > 0
    assert lab.result("run-001", "outcome")["repeated"] == []
    assert why in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "nodes.dut.power"),
        ({"may": []}, "nodes.dut.may"),
    ],
)
def test_a_host_that_dies_and_may_not_be_cycled_is_left_out(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, more: dict[str, Any], told: str
) -> None:
    code, words = _dying(lab, bootable(three_hosts, **more), three_hosts, dut)
    assert code == 4, words
    assert "error: run-000 (forward): " in words
    assert "node dut died" in words
    assert told in words


def test_a_host_that_does_not_come_back_is_left_out(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    dut.broken = True
    said = bootable(three_hosts, power=plug.said, boot_s=3)
    code, words = _dying(lab, said, three_hosts, dut)
    assert code == 4, words
    assert dut.cycles == 1
    assert "node dut died" in words
    assert "cycled once" in words


def test_a_host_that_dies_in_a_boot_is_booted_again(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    said = bootable(three_hosts, power=plug.said)
    boot = {"kernel": RELEASE, "cmdline": "quiet"}
    ended, told = _dying(lab, said, three_hosts, dut, boot=boot, boots=1)
    assert ended == 0, told
    assert dut.cycles == 1
    assert dut.line == f"{LINE} quiet"
    assert lab.result("run-000", "nodes")["boot"]["boot"] == "boot-001"
    assert len(lab.result("run-000", "outcome")["repeated"]) == 1


def _dying(
    lab: Lab, said: dict[str, Any], hosts: Hosts, dut: BootingHost, **more: Any
) -> tuple[int, str]:
    """Run two runs, or what else is said; the device's host dies while the first one measures."""
    traffic = {"rate_pps": 1_000, "flows": 4, "duration_s": 3}
    plan = lab.plan(testbed=said, traffic=traffic, **(more or {"repeat": 2}))
    with subprocess.Popen(
        lab.command("run", str(plan), "--out", "out", "--json"),
        cwd=lab.folder,
        env=lab.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        ends = time.monotonic() + 60
        while hosts.hosts["gen"].find("generate --interface") is None:
            assert time.monotonic() < ends
            time.sleep(0.05)
        dut.dies()
        _, told = running.communicate(timeout=120)
    return running.returncode, told


def test_what_of_a_plan_cannot_run_is_found_before_it_runs(
    lab: Lab, three_hosts: Hosts, dut: BootingHost, plug: Plug
) -> None:
    said = bootable(three_hosts, power=plug.said)
    plan = lab.plan(
        dut={"preset": "$dut", "command": "no-such-program {in} {out}"},
        boot={"kernel": "$kernel", "cmdline": "$line"},
        loop={
            "dut": ["forward", "xdp", "command"],
            "kernel": [RELEASE, "4.19.0-none"],
            "line": ["quiet", "isolcpus=900"],
        },
        testbed=said,
        boots=1,
    )
    code, found = _checked(lab, said, plan)
    assert code == 3
    of_plan = [(one["kind"], one["what"]) for one in found if one["where"] == "plan"]
    faults = [what for kind, what in of_plan if kind == "fault"]
    assert any("(xdp" in what and "and 3 more: preset xdp" in what for what in faults)
    assert any("and 3 more: no-such-program" in what for what in faults)
    assert any("/boot/vmlinuz-4.19.0-none is missing" in what for what in faults)
    assert any('"900" in isolcpus= is beyond CPUs 0-' in what for what in faults)
    assert any(kind == "good" and what.startswith("4 of 12 runs") for kind, what in of_plan)
    good = [one["what"] for one in found if one["kind"] == "good" and one["where"] == "dut"]
    assert any(what.startswith("its power is on (netio http://127.0.0.1:") for what in good)
    assert dut.line == OLD
    (told,) = (
        one["what"]
        for one in _checked(lab, bootable(three_hosts, may=["reboot"]), plan)[1]
        if one["where"] == "plan"
    )
    assert told.endswith("add bootline to nodes.dut.may of the testbed file")


def _checked(lab: Lab, said: dict[str, Any], plan: Path) -> tuple[int, list[dict[str, str]]]:
    place = lab.folder / "testbed.yml"
    place.write_text(yaml.safe_dump(said), encoding="utf-8")
    ended = lab.run("testbed", "check", str(place), "--plan", str(plan), "--json")
    found: list[dict[str, str]] = json.loads(ended.stdout)["findings"]
    return ended.returncode, found
