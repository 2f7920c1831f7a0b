"""A plan boots the device's host by GRUB's next entry; a boot that fails falls back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import grub_disk
import guests
import pytest
from guest_host import LINE, GrubHost
from hosts import Hosts, by_ssh, described, mac
from tools import CPIO, QEMU, need

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.guests

#: A kernel without a first program panics, and resets the machine.
PANICS = "rdinit=/none root=/dev/none"


def test_a_boot_of_a_plan_that_panics_falls_back_by_grub(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_ssh()
    need(QEMU, CPIO)
    grub_disk.required()
    image = guests.made()
    with Hosts(lab.folder, ["gen", "stamp"]) as hosts:
        for one, other in ((("gen", "out"), ("stamp", "a0")), (("stamp", "b1"), ("gen", "back"))):
            hosts.cable(*one, *other, (mac(*one), mac(*other)))
        monkeypatch.setenv("PATH", hosts.path)
        lab.environment["PATH"] = hosts.path
        with GrubHost(hosts, image, lab.folder) as dut:
            dut.has_booted(240)
            said = described(hosts)
            said["nodes"]["dut"] |= {
                "may": ["reboot", "bootline"],
                "boot": {"by": "grub", "line": LINE},
                "boot_s": 240,
                "cpus": [0],
            }
            plan = lab.plan(
                testbed=said,
                dut={"preset": "router"},
                boot={"kernel": image.kernel, "cmdline": PANICS},
                boots=1,
                traffic={"rate_pps": 100, "flows": 4, "duration_s": 1},
            )
            ended = lab.run("run", str(plan), "--out", "out", timeout_s=600)
            console = dut.console.read_text(errors="replace")
            assert ended.returncode == 4, ended.stderr + console[-3_000:]
            assert dut.run("ls", "/boot/grub").split() == ["grub.cfg", "grubenv"]
    lines = re.findall(r"Command line: BOOT_IMAGE=\S+ (.*)", console)
    assert lines == [f"{LINE} old", f"{LINE} {PANICS}", f"{LINE} old"]
    assert "Kernel panic - not syncing" in console
    told = "/proc/cmdline lacks rdinit=/none root=/dev/none and also has old"
    assert told in " ".join(ended.stderr.split())
