"""Devices in containers: their files, their limits, and nothing left of either."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import guests
import pytest
from laboratory import passed
from pairs import NEAR
from peers import EVERYWHERE
from reflectors import FAR
from releases import unpacked
from test_ending import started, wait_until
from tools import need

from tailtrim.analysis.roundtrip import read_hpct
from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.container.group import ControlGroup, since
from tailtrim.laboratory.nodes.container.node import Container
from tailtrim.laboratory.nodes.container.root import prepared
from tailtrim.laboratory.nodes.container.settings import ContainerSettings
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.vm.forwarding import GuestNode
from tailtrim.laboratory.nodes.vm.guest import Guest, GuestSettings
from tailtrim.laboratory.nodes.vm.image import opened
from tailtrim.laboratory.nodes.vm.root import SQFSTAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laboratory import Lab
    from pairs import Pair

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(
        " cgroup" not in Path("/proc/mounts").read_text(encoding="utf-8"),
        reason="containers need control groups, which are not mounted here",
    ),
]

#: Rules that come with the package, as the container has them.
_OF_PACKAGE = "/etc/suricata/rules/decoder-events.rules"
CONTAINED: dict[str, Any] = {"preset": "forward", "mode": "wait", "node": "container"}


def groups() -> set[Path]:
    """Return the control groups of containers on this host."""
    return set(Path("/sys/fs/cgroup").glob("tailtrim-*")) | set(
        Path("/sys/fs/cgroup").glob("*/tailtrim-*")
    )


def loops() -> set[str]:
    """Return the files that loop devices have."""
    return {path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")}


@pytest.fixture
def outside(lab: Lab) -> Iterator[Namespace]:
    before = groups()
    with Namespace("dut", lab.folder, cpus=[0], spared=[0]) as node:
        yield node
    assert groups() == before


def root_of(folder: Path, *programs: str) -> Path:
    """Make a root that has a few programs of this host, with their libraries."""
    for program in programs:
        found = shutil.which(program)
        assert found
        told = subprocess.run(["/usr/bin/ldd", found], capture_output=True, text=True, check=True)
        paths = [word for word in told.stdout.split() if word.startswith("/")]
        for path in (found, *paths):
            place = folder / path.removeprefix("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
    return folder


def test_its_files_are_its_own_and_stay_as_they_are(outside: Namespace, tmp_path: Path) -> None:
    root = root_of(tmp_path / "root", "sh", "cat")
    (root / "told").write_text("before\n")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    given = prepared(str(root), ())
    with Container(outside, given, ContainerSettings()) as inside:
        script = "cat /told; echo changed >/told; echo new >/new; echo run >/run/x; cat /told"
        assert inside.run("sh", "-c", script) == "before\nchanged\n"
        # Until it ends, it keeps the files it wrote; files outside its root are not there.
        assert inside.run("cat", "/told", "/new") == "changed\nnew\n"
        assert not inside.exists("/etc/os-release")
        assert inside.exists("/new")
        with pytest.raises(HostError, match="Read-only file system"):
            inside.run("sh", "-c", "echo 1 >/sys/kernel/profiling")
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    assert not Path("/run/x").exists()
    assert not Path("/new").exists()
    assert given.record["sha256"] != prepared(str(root / "lib"), ()).record["sha256"]


def test_files_of_the_node_can_be_mounted_and_are_read_only(
    outside: Namespace, tmp_path: Path
) -> None:
    own = tmp_path / "rules" / "own.rules"
    own.parent.mkdir()
    own.write_text("a rule\n")
    root = prepared(str(root_of(tmp_path / "root", "sh", "cat")), ())
    with Container(outside, root, ContainerSettings(mounts=[str(own)])) as inside:
        assert inside.run("cat", str(own)) == "a rule\n"
        with pytest.raises(HostError, match="Read-only file system"):
            inside.run("sh", "-c", f"echo another >{own}")
    assert own.read_text() == "a rule\n"
    with pytest.raises(HostError, match="missing: No such file"):
        Container(outside, root, ContainerSettings(mounts=[str(tmp_path / "missing")]))


def test_a_root_that_leads_out_of_itself_is_refused(outside: Namespace, tmp_path: Path) -> None:
    root = root_of(tmp_path / "root", "sh")
    (tmp_path / "elsewhere").mkdir()
    (root / "srv").symlink_to(tmp_path / "elsewhere")
    shared = Path("/srv") / f"tailtrim-{os.getpid()}"
    shared.mkdir()
    try:
        with pytest.raises(HostError, match="leads out of the container's root"):
            Container(outside, prepared(str(root), ()), ContainerSettings(mounts=[str(shared)]))
    finally:
        shared.rmdir()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_program_that_is_only_on_the_host_is_told(lab: Lab, tmp_path: Path) -> None:
    root = root_of(tmp_path / "root", "sh")
    dut = {"preset": "nftables", "node": "container", "container": {"root": str(root)}}
    ended = lab.run("run", str(lab.plan(dut=dut)), "--out", "out")
    assert ended.returncode == 3
    assert ended.stderr.count("error:") == 1
    assert "Debian package nftables" in ended.stderr
    assert "dut.container.packages" in ended.stderr


@pytest.mark.fast
def test_limits_are_set_seen_and_counted(lab: Lab) -> None:
    before = groups()
    limits = {"cpu.max": "$quota", "memory.max": "64M"}
    plan = lab.plan(
        dut=CONTAINED | {"node": "$where", "container": limits},
        loop={"where": ["bare", "container"], "quota": ["max", "1000 100000"]},
    )
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    runs = json.loads(ended.stdout)["runs"]
    assert [passed(run["summary"]) for run in runs[:2]] == [2_500] * 2
    # A device that waits for CPU time may lose packets to a full queue, but each one is accounted.
    slow = runs[2]["summary"]
    outcomes = dict(slow["ingress"])
    assert outcomes.pop("packets") == sum(outcomes.values()) == 2_500
    assert "container" not in lab.result("run-000", "nodes")
    free, limited = (lab.result(run, "nodes")["container"] for run in ("run-001", "run-002"))
    for one in (free, limited):
        assert one["root"] == {"files": "of the host"}
        assert 0 < one["counted"]["memory_peak_bytes"] < 64 << 20
        assert one["counted"]["oom_kill"] == 0
    assert free["limits"]["cpu.max"] == "max"
    assert limited["limits"]["cpu.max"] == "1000 100000"
    assert free["counted"]["nr_throttled"] == 0
    assert limited["counted"]["nr_throttled"] > 0
    assert limited["counted"]["throttled_usec"] > 10_000
    # One ms of CPU time in 100 ms: a tenth of a second is what the slowest waited.
    assert slow["latency_ns"]["max"] > 20e6
    assert slow["latency_ns"]["max"] > runs[1]["summary"]["latency_ns"]["max"]
    assert groups() == before
    assert lab.left() == []


def test_more_memory_than_its_limit_ends_the_device(lab: Lab) -> None:
    hungry = "sh -c 'much=$$(head -c 100000000 /dev/zero | tr \\\\0 a); sleep 9'"
    dut = {"preset": "command", "command": hungry, "node": "container"}
    plan = lab.plan(dut=dut | {"container": {"memory.max": "32M"}}, limits={"ready_s": 20})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 4
    assert "memory.max" in ended.stderr
    assert lab.left() == []


def test_a_limit_that_the_kernel_refuses_is_told(outside: Namespace) -> None:
    before = groups()
    with pytest.raises(HostError, match=r"dut: .*: cannot be set to 999:999 .*1: "):
        ControlGroup(outside, {"io.max": "999:999 rbps=1"})
    assert groups() == before


def image_of(root: Path, folder: Path) -> Path:
    """Make an image without a kernel of a root, as ``tailtrim image build`` does of packages."""
    need(SQFSTAR)
    folder.mkdir()
    place = folder / "root.squashfs"
    with subprocess.Popen(
        ["/usr/bin/tar", "--create", "--directory", str(root), "."], stdout=subprocess.PIPE
    ) as tar:
        sqfstar = ["/usr/bin/env", "sqfstar", "-quiet", "-no-progress", str(place)]
        subprocess.run(sqfstar, stdin=tar.stdout, check=True, capture_output=True)
    record = {
        "schema": "tailtrim.image/1",
        "root": {"release": "own", "asked": []},
        "packages": {"sh": "1"},
        "sha256": {place.name: hashlib.sha256(place.read_bytes()).hexdigest()},
    }
    (folder / "image.json").write_text(json.dumps(record))
    return folder


# The moments: while control groups are made, while mounts are made, when it runs, when it ends.
@pytest.mark.parametrize(
    "moment", ["Makes a control group", "Makes the files", "forward --ingress", "generate"]
)
def test_killed_at_any_moment(lab: Lab, moment: str) -> None:
    before, had = groups(), loops()
    image = image_of(root_of(lab.folder / "root", "sh"), lab.folder / "image")
    settings = {"cpu.max": "90000 100000", "root": str(image)}
    plan = lab.plan(dut=CONTAINED | {"container": settings})
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until(lambda: any(moment in line for line in lab.left()), process)
        process.kill()
    wait_until(lambda: not lab.left())
    wait_until(lambda: groups() == before)
    wait_until(lambda: loops() == had)
    ended = lab.run("run", str(plan), "--out", "out", "--resume")
    assert ended.returncode == 0, ended.stderr
    of_image = json.loads((image / "image.json").read_text())
    root = lab.result("run-000", "nodes")["container"]["root"]
    assert root["sha256"] == of_image["sha256"]["root.squashfs"]
    assert root["packages"] == {"sh": "1"}
    assert groups() == before
    assert loops() == had


def test_an_image_that_was_changed_is_refused(lab: Lab) -> None:
    image = image_of(root_of(lab.folder / "root", "sh"), lab.folder / "image")
    with (image / "root.squashfs").open("ab") as file:
        file.write(b"more")
    plan = lab.plan(dut=CONTAINED | {"container": {"root": str(image)}})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 3
    assert "root.squashfs: not the file" in ended.stderr


def test_what_only_a_kernel_makes_a_guest_is_no_guest(lab: Lab) -> None:
    image = image_of(root_of(lab.folder / "root", "sh"), lab.folder / "image")
    with pytest.raises(HostError, match="has no kernel, expected an image made with --kernel"):
        opened(image)


@pytest.mark.packages
@pytest.mark.parametrize("root", ["trixie-suricata", "sid-peers"])
def test_suricata_7_and_8_beside_the_wire_and_the_reference_forwarder(lab: Lab, root: str) -> None:
    rules = lab.folder / "one-flow.rules"
    # Flow n sends from port 10000 + n.
    rules.write_text('drop udp any 10001 -> any any (msg:"the second flow"; sid:1;)\n')
    container = {"root": str(unpacked(root)), "mounts": [str(rules)]}
    dut = {"preset": "$dut", "node": "container", "container": container, "ruleset": "$rules"}
    plan = lab.plan(
        dut=dut,
        loop={"dut": ["forward", "suricata"], "rules": [_OF_PACKAGE, str(rules)]},
        floor=True,
    )
    ended = lab.run("run", str(plan), "--out", "out", "--json", timeout_s=200)
    assert ended.returncode == 0, ended.stderr
    runs = json.loads(ended.stdout)["runs"]
    assert len(runs) == 4
    wire, forward, package, own = (run["summary"] for run in runs)
    assert [passed(one) for one in (wire, forward)] == [2_500, 2_500]
    assert 2_400 < passed(package) <= 2_500
    assert 1_775 < passed(own) <= 1_875
    # A quarter of the packets, 625, within the bounds above.
    assert 525 < own["ingress"]["lost"] <= 625
    medians = [_median(one) for one in (wire, forward, package)]
    assert medians == sorted(medians)
    nodes = lab.result("run-002", "nodes")
    assert nodes["container"]["root"]["directory"] == str(unpacked(root))
    assert nodes["container"]["counted"]["memory_peak_bytes"] > 10 << 20
    assert "rules successfully loaded" in (lab.folder / "out/run-002/dut.log").read_text()
    assert lab.left() == []


def _median(summary: dict[str, Any]) -> int:
    return next(int(q["value"]) for q in summary["latency_ns"]["quantiles"] if q["p"] == "0.5")


@pytest.mark.packages
def test_hipercontracer_2_asks_a_reflector_that_is_in_a_container_too(
    pair: Pair,
) -> None:
    root = prepared(str(unpacked("sid-peers")), ())
    folder = Path(pair.near.path("hpct"))
    folder.mkdir()
    # It looks its user up.
    settings = ContainerSettings(mounts=["/etc/passwd"])
    words = (pair.lab.agent, "reflect", "--echo", "7", *EVERYWHERE)
    ask = ("hipercontracer", "--iomodule", "UDP", "-S", NEAR, "-D", FAR, "-P", "--iterations", "3")
    leave = ("--pinginterval", "200", "--pingudpdestinationport", "7", "-R", str(folder))
    with (
        Container(pair.near, root, settings) as client,
        Container(pair.far, root, settings) as server,
        server.start(*words, log="reflect.log"),
    ):
        pair.lab.until(Path(server.path("reflect.log")), "ready")
        asked = client.call(*ask, *leave, "-U", "root", "--resultscompression", "None")
    files = [path for path in folder.rglob("*.hpct") if path.is_file()]
    assert files, asked.stdout[-300:] + asked.stderr[-300:]
    pings = [ping for file in files for ping in read_hpct(file)]
    assert pings
    assert {(ping.module, ping.status) for ping in pings} == {("UDP", 255)}


@pytest.mark.guests
def test_limits_of_cgroup_v2(tmp_path: Path) -> None:
    """In a guest, whose groups are all of version 2; this host's may be of version 1."""
    image = guests.made()
    limits = {"cpu.max": "10000 100000", "cpu.weight": "50", "memory.max": "32M"}
    with (
        Guest(image, "quiet", GuestSettings(accelerator="tcg"), tmp_path / "console.log") as guest,
        GuestNode("dut", guest.session, [], tmp_path, cpus=[0], spared=[0]) as node,
    ):
        node.run("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
        with ControlGroup(node, limits) as group:
            assert set(group.versions.values()) == {2}
            place = group.joining[-2]
            told = node.run("sh", "-c", f"cd {place} && cat cpu.max cpu.weight memory.max")
            assert told.split() == ["10000", "100000", "50", str(32 << 20)]
            before = group.counted()
            node.run(*group.joining, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
            counted = since(before, group.counted())
        assert counted["nr_throttled"] > 0
        assert counted["throttled_usec"] > 0
        assert counted["memory_peak_bytes"] > 0
        # All that was enabled for it is disabled again.
        assert node.run("find", "/sys/fs/cgroup", "-name", "tailtrim-*") == ""
        assert node.run("cat", "/sys/fs/cgroup/cgroup.subtree_control").strip() == ""


def test_without_root_what_is_bare_is_done_and_the_rest_skipped_with_the_reason(lab: Lab) -> None:
    # tailtrim sets this itself where it is root of a user namespace only.
    lab.environment["TAILTRIM_USER_NAMESPACE"] = "1"
    dut = CONTAINED | {"node": "$where"}
    plan = lab.plan(dut=dut, loop={"where": ["bare", "container"]})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    told = "warning: run-001 (forward in container): skipped: a container needs root"
    assert ended.stderr.count(told) == 1
    assert lab.result("run-000", "outcome")["failed"] is None
    alone = lab.run("run", str(lab.plan(dut=CONTAINED)), "--out", "alone")
    assert alone.returncode == 3
    assert alone.stderr.count("error: a container needs root") == 1
