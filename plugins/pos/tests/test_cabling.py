"""Cables of local nodes: those that are usual, those that a user gives, and after a reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim_pos import cabling

if TYPE_CHECKING:
    from pos_runs import PosRun


def told(cables: list[cabling.Cable]) -> list[str]:
    ends = [(cable.one, cable.other) for cable in cables]
    return [f"{a.node}:{a.port}={b.node}:{b.port}" for a, b in ends]


def test_each_two_nodes_have_two_cables() -> None:
    assert told(cabling.usual(["a", "b", "c"])) == [
        *("a:eth1=b:eth1", "a:eth2=b:eth2"),
        *("a:eth3=c:eth1", "a:eth4=c:eth2"),
        *("b:eth3=c:eth3", "b:eth4=c:eth4"),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a:eth1", "expected NODE:PORT=NODE:PORT"),
        ("a=b", "expected NODE:PORT=NODE:PORT"),
        ("a:eth1=b:averyveryverylongname", "expected NODE:PORT=NODE:PORT"),
        ("a:eth1=b:eth1=c:eth1", "expected NODE:PORT=NODE:PORT"),
        ("a:eth1=a:eth1", "a:eth1 has two cables"),
    ],
)
def test_a_cable_that_makes_no_sense_is_told(given: str, expected: str) -> None:
    with pytest.raises(PlanError, match=expected):
        cabling.cables_of([given])


SCRIPT = """#!/bin/bash
set -e
pos allocations allocate a b
pos nodes reset a
pos nodes reset b
pos commands launch b -- sh -c 'ip link set eno8 up; ip addr add 10.0.0.2/24 dev eno8'
pos commands launch a -- sh -c 'ip addr add 10.0.0.9/24 dev eno7; touch /etc/left'
pos nodes reset a
pos commands launch a -- sh -c '! ip addr show eno7 | grep 10.0.0.9; ! test -e /etc/left'
pos commands launch a -- sh -c 'ip link set eno7 up; ip addr add 10.0.0.1/24 dev eno7'
pos commands launch -v --name ping a -- ping -c 1 -W 5 10.0.0.2
pos commands launch -v --name who a -- sh -c 'hostname; ls /sys/class/net'
"""


@pytest.mark.parametrize("rootless", [False, True])
def test_cables_outlive_a_reset_and_what_was_set_does_not(run_of: PosRun, rootless: bool) -> None:
    script = run_of.folders / "wrong" / "experiment.sh"
    script.write_text(SCRIPT, "utf-8")
    words = ("a", "b", "--cable", "a:eno7=b:eno8")
    ended = run_of.go("wrong", *words, rootless=rootless)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 received" in run_of.printed("ping.stdout")
    assert run_of.printed("who.stdout").split() == ["a", "eno7", "lo"]
    assert run_of.left() == []
