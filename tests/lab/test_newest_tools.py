"""The tools whose words we read and write, as Debian sid has them: ip, tc, nft."""

from __future__ import annotations

import json
import shlex
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laboratory import all_counted
from peers import FAR, adds_up
from releases import entering, path_with

if TYPE_CHECKING:
    from laboratory import Lab
    from peers import Cable

pytestmark = pytest.mark.packages

AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
RULES = "add table inet t; add chain inet t c; add rule inet t c udp dport 7 accept"


@pytest.fixture
def newest(tmp_path: Path) -> str:
    return path_with(tmp_path / "newest", "sid-peers", "ip", "tc", "nft")


@pytest.mark.parametrize("preset", ["wire", "bridge", "router", "nftables", "xdp"])
def test_a_testbed_is_built(lab: Lab, newest: str, preset: str) -> None:
    lab.environment["PATH"] = newest
    ended = lab.run("run", str(lab.plan(dut={"preset": preset})), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["summary"]["ingress"]["packets"] == 2_500
    assert all_counted(run["summary"])
    assert lab.left() == []


def test_an_audit_reads_the_same(
    cable: Cable, newest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cable.near.must("tc", "qdisc", "add", "dev", "near", "root", "pfifo")
    cable.near.must("tc", "qdisc", "add", "dev", "near", "ingress")
    cable.near.must("nft", RULES)

    def told(name: str) -> list[str]:
        place = tmp_path / f"{name}.tar"
        cable.near.run(AGENT, "audit", "--duration", "0", "--capture", str(place))
        with tarfile.open(place) as archive:
            kept = ("tailtrim/qdiscs", "tailtrim/nftables_rules")
            files = [archive.extractfile(member) for member in kept]
            return [file.read().decode() for file in files if file is not None]

    installed = told("installed")
    assert "near pfifo root\n" in installed[0]
    assert "near ingress\n" in installed[0]
    assert installed[1] == "1"
    monkeypatch.setenv("PATH", newest)
    assert told("newest") == installed


def test_the_reflector_translates(cable: Cable, tmp_path: Path) -> None:
    # All of the agent is within the root: the process that calls nft may mount nothing any more.
    inside = tmp_path / "agent"
    inside.write_text(f'#!/bin/sh\nexec {shlex.join([*entering("sid-peers"), AGENT])} "$@"\n')
    inside.chmod(0o755)
    words = ("--mode", "nat", "--interface", "far", "--echo", "7")
    with cable.reflector(str(inside), *words) as reflector:
        assert cable.asker(FAR, 7).ask(b"one") == b"one"
        result = reflector.stop()
    assert adds_up(result)
    assert result["reflected"] == 1
    assert cable.far.must("nft", "list", "tables") == ""
