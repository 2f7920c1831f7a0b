"""Folders of pos on virtual machines: with the image and the boot parameters that they ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pos_runs import PosRun
from tools import CPIO, MMDEBSTRAP, QEMU, need

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.vm.kernel import DEPMOD
from tailtrim.laboratory.nodes.vm.root import SQFSTAR
from tailtrim_pos.guest_nodes import images_of

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.guests

SCRIPT = """#!/bin/bash
set -e
pos allocations allocate ada bob
pos nodes image ada debian-bookworm@2026-01-01
pos nodes image bob debian-bookworm
pos nodes bootparameter ada isolcpus=1 nohz_full=1
{ pos nodes reset ada; } & first=$!
{ pos nodes reset bob; } & wait $first; wait $!
{ pos commands launch --infile ada.sh --name m ada; } & first=$!
{ pos commands launch --infile bob.sh --name m bob; } & wait $first; wait $!
pos commands launch --name again ada -- cat /proc/sys/kernel/random/boot_id
pos nodes reset ada
pos commands launch --name again ada -- cat /proc/sys/kernel/random/boot_id
pos allocations free ada
"""
ADA = """#!/bin/bash
set -e
cat /proc/cmdline
echo 60 >/proc/sys/vm/swappiness
ip address add 10.1.2.1/24 dev eth1
ip link set eth1 up
pos_sync
echo hello >/dev/udp/10.1.2.2/7000
pos_sync
"""
BOB = """#!/bin/bash
set -e
cat /proc/cmdline
hostname
ip address add 10.1.2.2/24 dev eth1
ip link set eth1 up
pos_run waits -- sleep 1000
pos_kill waits
python3 -c '
import socket, subprocess
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(("10.1.2.2", 7000))
link.settimeout(120)
subprocess.run(["pos_sync"], check=True)
open("received.txt", "wb").write(link.recv(100))
'
pos_upload received.txt
pos_sync
"""


@pytest.fixture
def guests(lab: Lab) -> PosRun:
    """Return what runs folders, or skip loudly where there can be no virtual machines."""
    if os.geteuid() != 0:
        pytest.skip("taps of guests need root here")
    need(QEMU, MMDEBSTRAP, SQFSTAR, CPIO, DEPMOD)
    try:
        images_of(["x=bookworm/cloud"], print)
    except HostError as error:
        pytest.skip(f"no image for guests can be made: {error}")
    run = PosRun(lab.folder, Path(__file__).parents[2] / "plugins" / "pos" / "tests" / "folders")
    folder = run.folders / "guests"
    folder.mkdir()
    for name, text in (("experiment.sh", SCRIPT), ("ada.sh", ADA), ("bob.sh", BOB)):
        (folder / name).write_text(text, "utf-8")
    return run


def test_nodes_are_machines_with_their_image_and_boot_line(guests: PosRun) -> None:
    image = "debian-bookworm=bookworm/cloud"
    ended = guests.go("guests", "ada", "bob", "--image", image, within_s=600)
    assert ended.returncode == 0, ended.stderr
    assert "warning" not in ended.stderr
    scripts = guests.results / "scripts"
    lines = {node: guests.printed("m.stdout", node).splitlines() for node in ("ada", "bob")}
    assert lines["ada"][0].endswith("isolcpus=1 nohz_full=1")
    assert "isolcpus" not in lines["bob"][0]
    assert lines["bob"][1] == "bob"
    assert (guests.results / "files" / "bob" / "received.txt").read_text() == "hello\n"
    before, after = sorted((scripts / "ada").glob("*_again.stdout"))
    assert before.read_text() != after.read_text()
    hardware = json.loads((guests.results / "config" / "ada" / "hardware.json").read_text())
    assert hardware["kernel"].endswith("-cloud-amd64")
    assert guests.left() == []
