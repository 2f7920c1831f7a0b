"""Captures by AF_XDP of interfaces with several queues."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.laboratory.nodes.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laboratory import Lab

QUEUES = 4
PACKETS = 2_000


class Cables:
    """A bridge that sends all it gets to the taps ``one`` and ``two``, as a splitter does."""

    def __init__(self, node: Namespace, lab: Lab) -> None:
        self.node, self.lab = node, lab
        of = ("numrxqueues", str(QUEUES), "numtxqueues", str(QUEUES))
        # One that snoops sends a packet of its own when it begins.
        node.run("ip", "link", "add", "split", "type", "bridge", "mcast_snooping", "0")
        for name in ("load", "one", "two"):
            peer = ("peer", "name", f"{name}-port", *of)
            node.run("ip", "link", "add", name, *of, "type", "veth", *peer)
            node.run("ip", "link", "set", f"{name}-port", "master", "split")
        for name in ("load", "one", "two", "load-port", "one-port", "two-port", "split"):
            node.run("ip", "link", "set", name, "arp", "off", "up")

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.node.prefix, self.lab.agent, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.lab.environment,
            cwd=self.lab.folder,
        )

    def send(self, interface: str) -> None:
        """Send to each queue of the other end, at the same time."""
        load = ("--rate", "10kpps", "--count", str(PACKETS))
        senders = [
            self.start(
                "generate",
                "--interface",
                f"xdp:{interface}:{queue}",
                *load,
                "--src-port",
                f"{queue + 1}",
            )
            for queue in range(QUEUES)
        ]
        for sender in senders:
            *_, result = ended(sender)
            assert result["sent"] == PACKETS


@pytest.fixture
def cables(lab: Lab) -> Iterator[Cables]:
    with Namespace("queues") as node:
        for which in ("all", "default"):
            node.call("sysctl", "-w", f"net.ipv6.conf.{which}.disable_ipv6=1")
        yield Cables(node, lab)


def first(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


def ended(process: subprocess.Popen[str], *, stop: bool = False) -> list[dict[str, Any]]:
    if stop:
        process.terminate()
    told, wrong = process.communicate(timeout=60)
    assert process.returncode == 0, wrong
    return [json.loads(line) for line in told.splitlines()]


def test_a_tap_takes_all_queues_and_says_how(cables: Cables) -> None:
    """Regression: packets of other queues than the first one went to the kernel."""
    tapping = cables.start("capture", "--tap", "all=xdp:load-port", "--out", "taken")
    mode = first(tapping)["xdp"]["all"]
    assert (mode["queues"], mode["attached"], mode["zero_copy"]) == (QUEUES, "native", False)
    assert mode["zero_copy_refused"].startswith("Operation not supported")
    cables.send("load")
    tap = ended(tapping, stop=True)[-1]["taps"]["all"]
    assert tap["packets"] == QUEUES * PACKETS
    counts = [
        tap["dropped"],
        *(tap["xdp"][name] for name in ("ring_full", "fill_empty", "elsewhere")),
    ]
    assert counts == [0, 0, 0, 0]
    assert tap["disk_waited_ns"] == 0
    assert "interface" not in tap


def test_taps_on_all_queues_are_matched_while_they_capture(cables: Cables) -> None:
    taps = ("--tap", "ingress=xdp:one", "--tap", "egress=xdp:two")
    how = ("--live", "--analyze", "matched", "--allow-negative", "--skip", "0s")
    tapping = cables.start("capture", *taps, *how)
    assert set(first(tapping)["xdp"]) == {"ingress", "egress"}
    cables.send("load")
    result = ended(tapping, stop=True)[-1]
    assert result["analysis"]["samples"] == QUEUES * PACKETS
    for tap in result["taps"].values():
        assert (tap["packets"], tap["xdp"]["elsewhere"]) == (QUEUES * PACKETS, 0)
