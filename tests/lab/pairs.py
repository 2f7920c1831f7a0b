"""Two hosts and a fibre between them, for round trips whose every probe and datagram is counted."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from reflectors import FAR

from tailtrim.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from laboratory import Lab

NEAR = "10.99.0.1"
NEAR_6, FAR_6 = "fd99::1", "fd99::2"


class Pair:
    """Two hosts and a fibre between them."""

    def __init__(self, near: Namespace, far: Namespace, lab: Lab) -> None:
        self.near, self.far, self.lab = near, far, lab
        link(near, "veth0", far, "veth0", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
        for node, v4, v6 in ((near, NEAR, NEAR_6), (far, FAR, FAR_6)):
            node.run("ip", "address", "add", f"{v4}/24", "dev", "veth0")
            node.run("ip", "address", "add", f"{v6}/64", "dev", "veth0", "nodad")
            for name in ("lo", "veth0"):
                node.run("ip", "link", "set", name, "up")
        # A link takes its time until IPv6 goes through it; the first probes would wait or be lost.
        for target in (FAR, FAR_6):
            self.wait_for(target)

    def wait_for(self, target: str) -> None:
        command = [self.lab.agent, "ping", target, "-p", "icmp", "-n", "1", "--timeout", "0.2"]
        for _ in range(50):
            tried = subprocess.run([*self.near.prefix, *command], capture_output=True, check=False)
            if tried.returncode == 0:
                return
        raise AssertionError(tried.stderr.decode())

    def measure(self, *words: str) -> dict[str, Any]:
        """Run the agent's ping and return its only stream, checked."""
        command = [*self.near.prefix, self.lab.agent, "ping", *words, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode in {0, 1}, ended.stderr
        (stream,) = json.loads(ended.stdout)["streams"]
        add_up(stream)
        assert isinstance(stream, dict)
        return stream


def add_up(stream: dict[str, Any]) -> None:
    """See that every probe and every datagram is counted once."""
    for counts, whole in ((stream["probes"], "due"), (stream["replies"], "datagrams")):
        parts = [value for name, value in counts.items() if name != whole]
        assert counts[whole] == sum(parts), counts
    assert sum(stream["lost_ways"].values()) == stream["probes"]["lost"]
    if "follow_up" in stream:
        assert sum(stream["follow_up"].values()) == stream["probes"]["answered"]
    for side in ("ingress", "egress"):
        counts = stream["summary"][side]
        assert counts["packets"] == sum(v for k, v in counts.items() if k != "packets"), counts
    assert stream["probes"]["answered"] == stream["summary"]["samples"] + stream["unstamped"]
    assert stream["replies"]["first"] == stream["probes"]["answered"]
    assert stream["replies"]["late"] == stream["probes"]["late"]
