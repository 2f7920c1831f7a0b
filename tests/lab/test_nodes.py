"""Guarantees of all kinds of nodes to experiments."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import guests
import pytest
from tools import SUDO, need

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes.container.node import Container
from tailtrim.laboratory.nodes.container.root import prepared
from tailtrim.laboratory.nodes.container.settings import ContainerSettings
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.ssh.address import Ssh
from tailtrim.laboratory.nodes.ssh.node import SshNode
from tailtrim.laboratory.nodes.ssh.session import SshSession
from tailtrim.laboratory.nodes.vm.forwarding import GuestNode
from tailtrim.laboratory.nodes.vm.guest import Guest, GuestSettings
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hosts import Hosts
    from laboratory import Lab

    from tailtrim.laboratory.nodes.node import Frames, Node


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """Return a guest for all tests: each has a node of its own in it."""
    console = tmp_path_factory.mktemp("guest") / "console.log"
    with Guest(guests.made(), "quiet", GuestSettings(accelerator="tcg"), console) as guest:
        yield guest


@pytest.fixture(
    params=[
        *("namespace", "container", "ssh", "sudo"),
        pytest.param("vm", marks=pytest.mark.guests),
    ]
)
def node(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Node]:
    if request.param == "namespace":
        with Namespace("dut", lab.folder, cpus=[0], spared=[0]) as node:
            yield node
        return
    if request.param == "container":
        if os.geteuid() != 0:
            pytest.skip("containers need root")
        with (
            Namespace("dut", lab.folder, cpus=[0], spared=[0]) as node,
            Container(node, prepared(None, ()), ContainerSettings()) as inside,
        ):
            yield inside
        return
    if request.param == "vm":
        booted: Guest = request.getfixturevalue("guest")
        with GuestNode("dut", booted.session, [], lab.folder, cpus=[0], spared=[0]) as inside:
            yield inside
        return
    hosts: Hosts = request.getfixturevalue("one_host")
    address = Ssh(**hosts.ssh("far"))
    if request.param == "sudo":
        need(SUDO)
        address = address.model_copy(update={"user": "tester"})
    with (
        SshSession("far", address, "test") as session,
        SshNode("dut", session, [], lab.folder, cpus=[0], spared=[0]) as remote,
    ):
        yield remote


def test_a_command_runs_to_its_end(node: Node) -> None:
    assert node.run("sh", "-c", "read word; echo $word", given="said\n") == "said\n"
    ended = node.call("sh", "-c", "echo out; echo problem >&2; exit 3")
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "out\n", "problem\n")
    with pytest.raises(HostError, match=r"^dut: sh -c echo problem >&2; exit 3: problem$"):
        node.run("sh", "-c", "echo problem >&2; exit 3")


def test_programs_are_found_or_named_with_their_package(node: Node) -> None:
    assert node.find(Tool("sh", "dash"))
    assert node.find(Tool("no-such", "x")) is None
    assert node.find(Tool("no-such", "x", places=("/no-such", "/bin/sh"))) == "/bin/sh"
    node.require(Tool("sh", "dash"))
    with pytest.raises(HostError, match=r"^no-such is not installed, expected Debian package x"):
        node.require(Tool("no-such", "x"))


def test_files_go_there_and_come_back(node: Node, tmp_path: Path) -> None:
    place = node.put("told.txt", "this\n")
    assert place == node.path("told.txt")
    assert node.run("cat", place) == "this\n"
    node.run("sh", "-c", f"echo that >{node.path('left.txt')}")
    left = node.get("left.txt")
    assert left is not None
    assert left.read_text() == "that\n"
    assert left.parent == tmp_path
    assert node.get("missing.txt") is None
    node.run("mkdir", "-p", node.path("folder/within"))
    node.run("sh", "-c", f"echo within >'{node.path('folder/within/left.txt')}'")
    within = node.get("folder/within/left.txt")
    assert within is not None
    assert within.read_text() == "within\n"
    assert node.exists(place)
    assert not node.exists(node.path("missing.txt"))


def test_its_facts_and_its_clocks(node: Node) -> None:
    assert node.facts.kernel == node.run("uname", "-r").strip()
    assert node.facts.machine == node.run("uname", "-m").strip()
    before, after = node.clocks(), node.clocks()
    assert all(one <= other for one, other in zip(before, after, strict=True))
    assert abs(before[0] - float(node.run("date", "+%s"))) < 60


def test_settings_that_its_kernel_lacks_are_left_alone(node: Node) -> None:
    node.set("net/ipv4/ip_forward", "1")
    assert node.run("cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"
    node.set("net/ipv4/no_such_setting", "1")


def test_an_open_command_ends_with_its_input(node: Node) -> None:
    process = node.open("cat", output=subprocess.PIPE, errors=subprocess.DEVNULL)
    assert process.poll() is None
    assert process.stdin
    assert process.stdout
    process.stdin.write("said\n")
    process.stdin.close()
    assert process.stdout.read() == "said\n"
    assert process.wait(10) == 0
    process.stdout.close()


def test_a_program_ends_with_all_that_it_started(node: Node, lab: Lab) -> None:
    del lab
    words = ("sh", "-c", "setsid sleep 1000 & echo $SAID; exec sleep 1001")
    with node.start(*words, log="dut.log", environment={"SAID": "started"}) as program:
        until_s = time.monotonic() + 10
        while program.last_words() != "started":
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert program.alive
        children = node.call("pgrep", "-f", "sleep 100[01]").stdout.split()
        assert len(children) >= 2
    assert not program.alive
    assert not set(children) & set(node.call("pgrep", "-f", "sleep 100[01]").stdout.split())


@pytest.mark.fast
def test_frames_go_in_and_out_of_ports(node: Node) -> None:
    node.run("ip", "link", "add", "one", "type", "veth", "peer", "name", "other")
    for port in ("one", "other"):
        node.run("ip", "link", "set", port, "up", "arp", "off", "multicast", "off")
    frame = bytes(12) + b"\x88\xb5" + b"tailtrim".ljust(50, b"\0")
    with node.frames("one") as sender, node.frames("other") as receiver:
        sender.send(frame)
        seen = None
        while seen != frame:
            seen = receiver.receive(5)
            assert seen is not None
        node.run("ip", "link", "del", "one")
        with pytest.raises(RunError, match="one: "):
            _send_until_refused(sender, frame)
    with pytest.raises(RunError, match="dut: no-such: "):
        node.frames("no-such")


def _send_until_refused(sender: Frames, frame: bytes) -> None:
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        sender.send(frame)
        time.sleep(0.05)
