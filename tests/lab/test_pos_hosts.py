"""Folders of pos on hosts that are reached by SSH: real ones of sshd, in namespaces."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hosts import Hosts, by_ssh
from pos_runs import PosRun

from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laboratory import Lab

FOLDERS = Path(__file__).parents[2] / "plugins" / "pos" / "tests" / "folders"
NODES = ("tartu", "vilnius", "riga")
PLACES = (
    *("tartu=gen", "tartu:eth1=gen.out", "tartu:eth2=gen.back", "riga=stamp"),
    *("vilnius=dut", "vilnius:eth1=dut.left", "vilnius:eth2=dut.right"),
)
# The host's own processes are in its /proc with those of all namespaces below.
_PROGRAMS = "for of in /proc/[0-9]*; do tr '\\0\\n' '  ' <$of/cmdline; echo; done 2>/dev/null"
_IDLE = re.compile(r"$|sleep 0\.2|sh -c |tr |sshd: /")


class OnHosts:
    """A copy of the folders, three hosts with cables, and their testbed file."""

    def __init__(self, place: Path, hosts: Hosts) -> None:
        self.hosts, self.run, self._file = hosts, PosRun(place, FOLDERS), place / "lab.yml"
        # The runs of one rate and size are enough.
        (self.run.folders / "forwarding" / "loop-variables.yml").write_text(
            "pkt_rate: [1000]\npkt_sz: [64]\n", "utf-8"
        )
        self.write()

    def write(self, **of_dut: Any) -> None:
        """Write the testbed file."""
        ports: dict[str, dict[str, Any]] = {
            "gen": {"out": {"cable": "dut.left"}, "back": {"cable": "dut.right"}},
            "dut": {"left": {}, "right": {}},
            "stamp": {"a0": {}, "b0": {}},
        }
        nodes: dict[str, Any] = {
            name: {
                "ssh": self.hosts.ssh(name),
                "ports": {port: said | {"interface": port} for port, said in of_node.items()},
            }
            for name, of_node in ports.items()
        }
        nodes["dut"] |= of_dut
        if shutil.which("sudo"):
            # One host is not reached as root.
            nodes["stamp"]["ssh"]["user"] = "tester"
        roles = {
            "loadgen": {"node": "gen", "send": "out", "sink": "back"},
            "timestamper": {"node": "stamp", "tap_in": "a0", "tap_out": "b0"},
            "dut": {"node": "dut", "dut_in": "left", "dut_out": "right"},
        }
        self._file.write_text(yaml.safe_dump({"nodes": nodes, "roles": roles}), "utf-8")

    @property
    def words(self) -> list[str]:
        """Arguments of the script."""
        places = [word for place in PLACES for word in ("--map", place)]
        return [*NODES, "--testbed", str(self._file), *places, "--image", "debian-*"]

    def send_for(self, seconds: int) -> None:
        """Make the traffic so long that one look at a host after another meets it."""
        generator = self.run.folders / "forwarding" / "loadgen" / "generator.sh"
        text = generator.read_text("utf-8").replace("--duration 1s", f"--duration {seconds}s")
        generator.write_text(text, "utf-8")

    def links(self) -> dict[str, str]:
        """Return the interfaces of each host, and whether they are up."""
        found = {}
        for name, host in self.hosts.hosts.items():
            rows = json.loads(host.run("ip", "-json", "link"))
            ports = [row for row in rows if row["ifname"] != "lo"]
            found[name] = " ".join(sorted(f"{r['ifname']} {'UP' in r['flags']}" for r in ports))
        return found

    def programs(self) -> dict[str, str]:
        """Return the processes of each host other than sshd, also in namespaces below it."""
        return {name: self.of_host(name) for name in self.hosts.hosts}

    def of_host(self, name: str) -> str:
        """Return those of one host."""
        lines = set(self.hosts.hosts[name].run("sh", "-c", _PROGRAMS).splitlines())
        return " ".join(sorted(line for line in lines if not _IDLE.match(line)))


@pytest.fixture
def on_hosts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnHosts]:
    """Return three hosts, two of them cabled twice, or skip loudly."""
    by_ssh()
    with Hosts(lab.folder, ["gen", "dut", "stamp"]) as hosts:
        for number, (one, other) in enumerate((("out", "left"), ("back", "right"))):
            macs = (f"02:00:00:00:08:{number}1", f"02:00:00:00:08:{number}2")
            hosts.cable("gen", one, "dut", other, macs)
        hosts.hosts["stamp"].run("ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0")
        monkeypatch.setenv("PATH", hosts.path)
        yield OnHosts(lab.folder, hosts)


def test_a_folder_runs_on_hosts_as_it_does_here(on_hosts: OnHosts) -> None:
    run, before = on_hosts.run, on_hosts.links()
    ended = run.go("forwarding", *on_hosts.words, "--skip", "0s")
    assert ended.returncode == 0, ended.stderr
    (setup,) = (run.results / "scripts" / "tartu").glob("*_setup.stdout")
    told = setup.read_text("utf-8")
    for line in ("hostname=tartu", "late --remote=7", "note=before after"):
        assert f"{line}\n" in told
    assert "from tartu\nbefore\nafter\n" in ended.stdout
    experiment = recorded(run.out)
    ((_, result),) = experiment.complete
    assert result.summary.samples == result.summary.ingress.packets == 1000
    (outcome,) = json.loads((run.out / "experiment.json").read_text("utf-8"))["outcomes"]
    clocks = "the captures are of two hosts, dut and gen, whose clocks are not compared"
    assert outcome["invalid"] == [clocks]
    topology = json.loads((run.results / "config" / "tartu" / "topology.json").read_text("utf-8"))
    assert {"port": "eth1", "mac": "", "peer": "vilnius", "peer_port": "eth1"} in topology
    for host in on_hosts.hosts.hosts.values():
        assert host.left() == []
    assert on_hosts.links() == before
    assert run.left() == []


URL = "https://github.com/gallenmu/MoonGen"
CLONED = f"""#!/bin/bash
set -e
pos allocations allocate tartu vilnius
pos commands launch vilnius -- sh -c 'for port in eth1 eth2; do ip link set $port up; done'
pos commands launch tartu -- git clone {URL} m
pos commands launch --name sender tartu -- \\
    m/build/MoonGen soft-gen.lua --fix-packetrate 1000 --packets 1500 0 1
"""


def test_a_clone_on_a_host_is_what_stands_in(on_hosts: OnHosts) -> None:
    run, before = on_hosts.run, on_hosts.links()
    (run.folders / "wrong" / "experiment.sh").write_text(CLONED, "utf-8")
    ended = run.go("wrong", *on_hosts.words, "--repository", f"{URL}=moongen")
    assert ended.returncode == 0, ended.stderr
    assert "total 1500 packets with 96000 bytes" in run.printed("sender.stdout")
    assert on_hosts.links() == before


def test_what_is_killed_leaves_nothing_on_hosts(on_hosts: OnHosts) -> None:
    run, before, idle = on_hosts.run, on_hosts.links(), on_hosts.programs()
    on_hosts.send_for(10)
    words = run.command("forwarding", *on_hosts.words, "--skip", "0s", "--out", str(run.out))
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=run.environment
    ) as running:
        try:
            _until(lambda: "tailtrim-agent generate" in on_hosts.of_host("gen"))
        finally:
            running.send_signal(signal.SIGKILL)
    _until(lambda: not any(host.left() for host in on_hosts.hosts.hosts.values()))
    _until(lambda: not run.left())
    assert (on_hosts.links(), on_hosts.programs()) == (before, idle)


def test_a_run_whose_host_lost_the_connection_is_repeated(on_hosts: OnHosts) -> None:
    run, before, idle = on_hosts.run, on_hosts.links(), on_hosts.programs()
    on_hosts.send_for(10)
    words = run.command("forwarding", *on_hosts.words, "--skip", "0s", "--out", str(run.out))
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=run.environment
    ) as running:
        try:
            _until(lambda: "tailtrim-agent generate" in on_hosts.of_host("gen"))
            for pid in on_hosts.hosts.hosts["dut"].serving():
                os.kill(pid, signal.SIGKILL)
            _, told = running.communicate(timeout=100)
        finally:
            running.kill()
    assert running.returncode == 0, told
    assert "run 0 (pkt_sz=64, pkt_rate=1000)" in told
    (outcome,) = json.loads((run.out / "experiment.json").read_text("utf-8"))["outcomes"]
    assert [why.split(":")[0] for why in outcome["repeated"]] == ["vilnius"]
    # It has its bridge again.
    ((_, result),) = recorded(run.out).complete
    assert result.summary.samples == 10_000
    assert (on_hosts.links(), on_hosts.programs()) == (before, idle)


def test_boot_parameters_of_a_host_that_may_not_be_booted_are_refused(on_hosts: OnHosts) -> None:
    run = on_hosts.run
    script = run.folders / "wrong" / "experiment.sh"
    script.write_text("#!/bin/bash\npos nodes bootparameter vilnius isolcpus=1\n", "utf-8")
    on_hosts.write(may=["reboot"])
    told = "vilnius: node dut may not be booted with another boot line"
    ended = run.go("wrong", *on_hosts.words)
    assert ended.returncode == 4
    assert told in ended.stderr
    assert "nodes.dut.boot" in ended.stderr
    checked = run.go("wrong", *on_hosts.words, "--dry-run")
    assert checked.returncode == 0
    assert told.replace(": ", ": boot parameters are refused: ", 1) in checked.stdout
    assert "vilnius: eth1 to tartu:eth1, " in checked.stdout
    for host in on_hosts.hosts.hosts.values():
        assert host.left() == []


def _until(true: Any) -> None:
    """Wait until something is so: at most as long as a host needs to notice that we are gone."""
    until_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.1)
