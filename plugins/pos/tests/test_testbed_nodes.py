"""Which host each node is, and how hosts are booted for a folder: without any host."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory.nodes.ssh.address import SshHost
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim_pos import testbed_nodes
from tailtrim_pos.provider import Boot
from tailtrim_pos.repositories import Repository
from tailtrim_pos.testbed_nodes import Map, TestbedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = TestbedDescription.model_validate(
    {
        "nodes": {
            "gen": {
                "ssh": {"host": "gen.example.org"},
                "ports": {
                    "out": {"interface": "enp1s0", "cable": "dut.left"},
                    "back": {"interface": "enp2s0", "cable": "dut.right"},
                },
            },
            "dut": {
                "ssh": {"host": "dut.example.org"},
                "may": ["reboot", "bootline"],
                "boot": {"by": "kexec", "line": "root=/dev/sda1 ro"},
                "ports": {"left": {"interface": "eno1"}, "right": {"interface": "eno2"}},
            },
        },
        "roles": {
            "loadgen": {"node": "gen", "send": "out", "sink": "back"},
            "timestamper": {"node": "gen", "tap_in": "out", "tap_out": "back"},
            "dut": {"node": "dut", "dut_in": "left", "dut_out": "right"},
        },
    }
)


def nodes(*places: str) -> TestbedNodes:
    return TestbedNodes(DESCRIPTION, Map(places, DESCRIPTION), "pos test", lambda _: None)


def test_nodes_are_hosts_by_their_names_or_as_mapped() -> None:
    mapped = nodes("tartu=gen", "tartu:eth1=gen.out")
    mapped.check("tartu")
    mapped.check("dut")
    with pytest.raises(PlanError, match=r"unknown node 'gen', .*--map gen=HOST"):
        mapped.check("gen")
    assert mapped.interfaces("tartu", []) == [
        {"port": "eth1", "mac": "", "peer": "dut", "peer_port": "eno1"},
        {"port": "enp2s0", "mac": "", "peer": "dut", "peer_port": "eno2"},
    ]
    assert mapped.interfaces("dut", [])[0]["peer_port"] == "eth1"


def test_devices_of_a_host_have_the_order_of_the_testbed_file(tmp_path: Path) -> None:
    mapped = nodes("tartu=gen", "tartu:eth1=gen.out")
    mapped.repositories = [Repository("https://example.org/x", None)]
    (tmp_path / "bin").mkdir()
    mapped.write_repositories("tartu", [], tmp_path, "/usr/bin/python3")
    assert json.loads((tmp_path / "ports.json").read_text("utf-8")) == ["eth1", "enp2s0"]


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (["tartu"], "expected NODE=HOST or NODE:PORT=HOST.PORT"),
        (["tartu:eth1=gen"], "expected NODE=HOST or NODE:PORT=HOST.PORT"),
        (["tartu=moon"], "host 'moon', .* gen, dut"),
        (["tartu:eth1=gen.left"], "gen .*no port 'left', .* out, back"),
        (["tartu=gen", "tartu:eth1=dut.left"], "tartu is gen already"),
        (["tartu=gen", "riga=gen"], "gen is two nodes"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(places: Sequence[str], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        nodes(*places)


def test_hosts_that_may_not_be_booted_say_what_is_missing() -> None:
    assert nodes().unbootable("dut") is None
    why = nodes().unbootable("gen")
    assert why is not None
    assert "add reboot to nodes.gen.may" in why
    assert "add nodes.gen.boot to" in why


def test_a_host_is_booted_where_its_parameters_change_only(monkeypatch: pytest.MonkeyPatch) -> None:
    boots: list[tuple[str, str, str]] = []

    def session(*_: Any) -> Any:
        facts = SimpleNamespace(kernel="6.1.0")
        return SimpleNamespace(lost=False, stale=None, facts=facts, close=lambda: None)

    def rebooted(name: str, _: Any, asked: Any) -> None:
        boots.append((name, asked.kernel, asked.cmdline))

    monkeypatch.setattr(SshHost, "reserve", session)
    monkeypatch.setattr(testbed_nodes, "rebooted", rebooted)
    mapped = nodes("vilnius=dut")

    async def resets() -> None:
        for parameters in ([], ["isolcpus=1", "nohz_full=1"], ["isolcpus=1", "nohz_full=1"], []):
            await mapped.prepare("vilnius", Boot("host", parameters, ["vilnius"], Path()), None)

    asyncio.run(resets())
    assert boots == [("dut", "6.1.0", "isolcpus=1 nohz_full=1"), ("dut", "6.1.0", "")]
