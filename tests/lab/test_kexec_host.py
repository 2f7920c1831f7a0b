"""A plan really boots the device's host: kexec starts another boot line in a virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import guests
import pytest
from guest_host import LINE, KexecHost
from hosts import Hosts, by_ssh, described, mac
from tools import CPIO, QEMU, need

from tailtrim.laboratory.nodes.boot.methods import KEXEC

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.guests


def test_a_plan_boots_another_line_by_kexec(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    by_ssh()
    need(QEMU, CPIO, KEXEC)
    image = guests.made()
    with Hosts(lab.folder, ["gen", "stamp"]) as hosts:
        for one, other in ((("gen", "out"), ("stamp", "a0")), (("stamp", "b1"), ("gen", "back"))):
            hosts.cable(*one, *other, (mac(*one), mac(*other)))
        monkeypatch.setenv("PATH", hosts.path)
        lab.environment["PATH"] = hosts.path
        with KexecHost(hosts, image, lab.folder) as dut:
            dut.has_booted(240)
            said = described(hosts)
            said["nodes"]["dut"] |= {
                "may": ["reboot", "bootline"],
                "boot": {"by": "kexec", "line": LINE},
                "boot_s": 240,
                "cpus": [0],
            }
            plan = lab.plan(
                testbed=said,
                dut={"preset": "router"},
                boot={"kernel": image.kernel, "cmdline": "nohz=off quiet"},
                boots=1,
                traffic={"rate_pps": 100, "flows": 4, "duration_s": 1},
            )
            ended = lab.run("run", str(plan), "--out", "out", timeout_s=600)
            assert ended.returncode == 0, ended.stderr + dut.console.read_text()[-3_000:]
    nodes = lab.result("run-000", "nodes")
    line = nodes["boot"]["boot_line"]
    assert line["set"] == line["seen"] == f"{LINE} nohz=off quiet"
    assert nodes["boot"]["kernel"] == nodes["nodes"]["dut"]["kernel"] == image.kernel
    assert nodes["nodes"]["dut"]["boot_line"] == line["seen"]
    assert lab.result("run-000", "summary")["samples"] > 0
