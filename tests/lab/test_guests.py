"""Devices in virtual machines: boots that are seen in the record, and nothing left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import guests
import pytest
from test_ending import started, wait_until

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.vm.guest import Guest, GuestSettings
from tailtrim.laboratory.nodes.vm.image import opened
from tailtrim.laboratory.nodes.vm.machine import COMMON

if TYPE_CHECKING:
    from laboratory import Lab

    from tailtrim.laboratory.nodes.vm.image import Image

pytestmark = pytest.mark.guests

ISOLATED = "isolcpus=1 nohz_full=1 rcu_nocbs=1"
PLAN: dict[str, Any] = {
    "dut": {"preset": "router", "node": "vm"},
    "boot": {"kernel": guests.KERNEL, "cmdline": "$line"},
    "boots": 1,
    "vm": {"accelerator": "tcg"},
    "loop": {"line": ["quiet", ISOLATED]},
    "traffic": {"rate_pps": 100, "duration_s": 1},
}
#: s: until a guest is measured. Its boot alone may take ``vm.boot_s``, 120 by default.
BOOTED_S = 180
#: For two runs of one boot.
RATES: dict[str, Any] = {"traffic": {"rate_pps": "$rate", "duration_s": 1}}


@pytest.fixture
def image() -> Image:
    return guests.made()


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


def connections() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("tailtrim-*"))


def test_two_boot_lines_are_booted_and_seen(lab: Lab, image: Image) -> None:
    before, connected = files(image.folder), connections()
    ended = lab.run("run", str(lab.plan(**PLAN)), "--out", "out", timeout_s=300)
    assert ended.returncode == 0, ended.stderr
    assert "2 boots" in ended.stderr
    assert "not those of hardware" in ended.stderr
    seen = {}
    for run in ("run-000", "run-001"):
        nodes = lab.result(run, "nodes")
        dut, line = nodes["boot"], nodes["boot"]["boot_line"]
        assert nodes["roles"] == {"loadgen": "local", "timestamper": "local", "dut": dut["boot"]}
        assert dut["kernel"] == nodes["nodes"][dut["boot"]]["kernel"] == image.kernel
        assert nodes["nodes"][dut["boot"]]["boot_line"] == line["seen"]
        assert dut["accelerator"] == "tcg"
        assert [dut["ports"][name]["kind"] for name in ("d0", "d1")] == ["virtio-net"] * 2
        assert dut["image"]["sha256"] == image.record["sha256"]
        assert line["seen"] == line["set"] == f"{COMMON} {line['asked']}"
        assert nodes["nodes"]["local"]["boot_id"] != dut["boot_id"]
        boot = lab.folder / "out" / "boots" / dut["boot"]
        assert "guest is ready" in (boot / "console.log").read_text()
        assert json.loads((boot / "boot.json").read_text())["boot_id"] == dut["boot_id"]
        assert json.loads((boot / "audit.json").read_text())["schema"]
        running = json.loads((boot / "boot-line.json").read_text())["running"]
        seen[line["asked"]] = (dut["boot_id"], running["isolated"])
        assert lab.result(run, "summary")["samples"] > 0
        assert not [d for d in lab.result(run, "outcome")["invalid"] if "environment" in d]
    assert seen["quiet"][0] != seen[ISOLATED][0]
    assert (seen["quiet"][1], seen[ISOLATED][1]) == ("", "1")
    assert (lab.folder / "out" / "report" / "boots.md").is_file()
    assert files(image.folder) == before
    assert connections() <= connected
    assert lab.left() == []


@pytest.mark.parametrize("moment", ["qemu-system", "ssh -M", "generate"])
def test_killed_at_any_moment(lab: Lab, image: Image, moment: str) -> None:
    del image
    connected = connections()
    plan = lab.plan(**PLAN | {"loop": {"line": ["quiet"]}})
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until(lambda: any(moment in line for line in lab.left()), process, within_s=BOOTED_S)
        process.kill()
    wait_until(lambda: not lab.left())
    wait_until(lambda: connections() == connected)
    taps = subprocess.run(
        ["/usr/bin/env", "ip", "-brief", "link"], capture_output=True, text=True, check=True
    )
    assert "tap0" not in taps.stdout


def test_a_kernel_that_panics_is_told_with_its_last_lines(lab: Lab, image: Image) -> None:
    with pytest.raises(RunError) as raised:
        Guest(image, "rdinit=/none root=/dev/none", GuestSettings(), lab.folder / "console.log")
    assert f"dut: {guests.KERNEL}" in str(raised.value)
    assert "Kernel panic - not syncing" in str(raised.value)


def test_a_boot_that_takes_too_long_is_told_with_its_last_lines(lab: Lab, image: Image) -> None:
    settings = GuestSettings(accelerator="tcg", boot_s=1.0)
    with pytest.raises(RunError, match=r"did not boot within 1 s; its console: "):
        Guest(image, "", settings, lab.folder / "console.log")


def test_a_boot_line_that_does_not_do_what_it_says_is_not_booted(lab: Lab, image: Image) -> None:
    del image
    plan = lab.plan(**PLAN | {"loop": {"line": ["quiet", "isolcpus=5"]}})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 2
    assert "boot.cmdline: " in ended.stderr
    assert "CPUs 0-1" in ended.stderr
    assert not list((lab.folder / "out").glob("run-*"))


def test_an_image_that_was_changed_is_refused(lab: Lab, image: Image) -> None:
    copy = lab.folder / "image"
    ended = lab.run("image", "build", str(copy), "--kernel", guests.KERNEL)
    assert ended.returncode == 0, ended.stderr
    assert image.kernel in ended.stdout
    assert opened(copy).record == image.record
    with (copy / "initramfs").open("ab") as file:
        file.write(b"more")
    plan = lab.plan(**PLAN | {"boot": {"kernel": str(copy)}, "loop": {}})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 3
    assert "initramfs: not the file" in ended.stderr


def test_a_guest_that_panics_is_booted_once_more_and_then_its_runs_fail(
    lab: Lab, image: Image
) -> None:
    del image
    line = "rdinit=/none root=/dev/none"
    plan = lab.plan(**PLAN | {"loop": {"line": [line], "rate": [100, 200]}} | RATES)
    ended = lab.run("run", str(plan), "--out", "out", timeout_s=200)
    assert ended.returncode == 4
    assert "warning: boot-000 was booted again" in ended.stderr
    boots = sorted((lab.folder / "out" / "boots").iterdir())
    first, second = [json.loads((boot / "boot.json").read_text()) for boot in boots]
    assert "Kernel panic - not syncing" in first["failed"]
    assert "Kernel panic - not syncing" in second["failed"]
    assert second["again_after"] == "boot-000"
    assert all("Kernel panic" in (boot / "console.log").read_text() for boot in boots)
    record = json.loads((lab.folder / "out" / "experiment.json").read_text())
    assert [outcome["failed"] for outcome in record["outcomes"]] == [second["failed"]] * 2
    assert lab.left() == []


@pytest.mark.parametrize("moment", ["generate", "ssh -M"])
def test_a_guest_that_stands_still_is_found(lab: Lab, image: Image, moment: str) -> None:
    del image
    plan = lab.plan(
        **PLAN | {"loop": {"line": ["quiet"]}, "vm": {"accelerator": "tcg", "boot_s": 40}}
    )
    with started(lab, "run", str(plan), "--out", "out", "--json") as process:
        wait_until(lambda: any(moment in line for line in lab.left()), process, within_s=BOOTED_S)
        qemu = lab.pid("qemu-system")
        os.kill(qemu, signal.SIGSTOP)
        _, told = process.communicate(timeout=110)
    assert process.returncode == 4, told
    lost = "the connection to guest was lost"
    assert ("within 40 s" if moment == "ssh -M" else lost) in told
    wait_until(lambda: not lab.left())


def test_a_device_is_kept_up_in_its_guest(lab: Lab, image: Image) -> None:
    del image
    dut = {"preset": "router", "node": "vm", "lifetime": "configuration"}
    limits = {"lateness_p99_us": 1e6, "sent_share": 0.5, "warm_up_s": 5}
    loop = {"line": ["quiet"], "rate": [100, 200]}
    plan = lab.plan(**PLAN | {"dut": dut, "limits": limits, "loop": loop} | RATES)
    ended = lab.run("run", str(plan), "--out", "out", "--json", timeout_s=250)
    assert ended.returncode == 0, ended.stderr
    for run in ("run-000", "run-001"):
        record, nodes = lab.result(run, "device"), lab.result(run, "nodes")
        assert (record["device"], nodes["boot"]["boot"]) == ("device-000", "boot-000")
        assert record["warm_up"]["windows"][0]["samples"] > 400
        assert lab.result(run, "summary")["samples"] > 0
    assert lab.left() == []


#: A tap and a generator of 300 probes at work while the clock is set 10 s ahead.
STEPPED = """
set -e; cd /tmp; ip link set lo up
{agent} capture --tap there=lo --out there --duration 5s >tap.json &
{agent} generate --interface lo --dst-mac {mac} --rate 100 --duration 3s >sent.json &
sleep 2
date -s "@$(($(date +%s) + 10))" >date.txt
wait
cat tap.json sent.json
"""


@pytest.mark.faults
def test_a_clock_that_is_stepped_is_told_and_departures_do_not_follow(
    lab: Lab, image: Image
) -> None:
    """Only a guest's clock may be stepped here: nothing else measures with it."""
    settings = GuestSettings(accelerator="tcg")
    with Guest(image, "quiet", settings, lab.folder / "console.log") as guest:
        script = STEPPED.format(agent=guest.session.agent, mac="02:00:00:00:00:01")
        told = guest.session.call("sh", "-c", script, within_s=60)
    assert told.returncode == 0, told.stderr
    lines = map(json.loads, told.stdout.splitlines())
    tap, sent = [line for line in lines if line["event"] == "result"]
    (step,) = tap["clock_steps"]
    assert step["by_ns"] == pytest.approx(10e9, abs=1.1e9)
    assert sent["sent"] == 300
    assert sent["lateness_ns"]["max"] < 2e9
