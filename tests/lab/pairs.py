"""Two hosts and a fibre between them, for round trips whose every probe and datagram is counted."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from laboratory import Lab
from reflectors import FAR
from wire import Wire

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wire import Fate

NEAR = "10.99.0.1"
NEAR_6, FAR_6 = "fd99::1", "fd99::2"


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a verb of the agent, which says when it is ready, until the block ends."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def straight(near: Namespace, far: Namespace) -> None:
    """Lay a fibre between both."""
    link(near, "veth0", far, "veth0", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)


class Pair:
    """Two hosts and the path between them."""

    def __init__(
        self,
        near: Namespace,
        far: Namespace,
        lab: Lab,
        lay: Callable[[Namespace, Namespace], None] = straight,
    ) -> None:
        self.near, self.far, self.lab = near, far, lab
        lay(near, far)
        for node, v4, v6 in ((near, NEAR, NEAR_6), (far, FAR, FAR_6)):
            node.run("ip", "address", "add", f"{v4}/24", "dev", "veth0")
            node.run("ip", "address", "add", f"{v6}/64", "dev", "veth0", "nodad")
            for name in ("lo", "veth0"):
                node.run("ip", "link", "set", name, "up")
        # A link takes its time until IPv6 goes through it; the first probes would wait or be lost.
        for target in (FAR, FAR_6):
            self.wait_for(target)

    def wait_for(self, target: str) -> None:
        command = [self.lab.agent, "ping", target, "-p", "icmp", "-c", "1", "--timeout", "0.2"]
        for _ in range(50):
            tried = subprocess.run([*self.near.prefix, *command], capture_output=True, check=False)
            if tried.returncode == 0:
                return
        raise AssertionError(tried.stderr.decode())

    def until_bound(self, port: int) -> None:
        """Wait until a program of the far host listens on a UDP port."""
        tables = [Path(f"/proc/{self.far.pid}/net/{name}") for name in ("udp", "udp6")]
        until_s = time.monotonic() + 20
        while not any(f":{port:04X} " in table.read_text() for table in tables):
            assert time.monotonic() < until_s, f"nothing listens on UDP port {port}"
            time.sleep(0.01)

    def until_received(self, packets: int) -> None:
        """Wait until so many more packets came to the near host."""
        counts = Path(f"/proc/{self.near.pid}/net/dev")

        def received() -> int:
            text = counts.read_text()
            return int(next(line for line in text.splitlines() if "veth0:" in line).split()[2])

        enough, until_s = received() + packets, time.monotonic() + 20
        while received() < enough:
            assert time.monotonic() < until_s, "nothing comes back"
            time.sleep(0.01)

    def ping(self, *words: str) -> str:
        """Run the agent's ping and return what it printed."""
        command = [*self.near.prefix, self.lab.agent, "ping", *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode in {0, 1}, ended.stderr
        return ended.stdout

    def measure(self, *words: str) -> dict[str, Any]:
        """Run the agent's ping and return its only stream, checked."""
        return only_stream(self.ping(*words, "--json"))


@contextmanager
def paired(folder: Path, fate: Fate | None = None) -> Iterator[Pair]:
    """Make both hosts, or skip loudly; a wire between them does with frames as it is told."""
    names = ("near", "far") if fate is None else ("near", "far", "between")
    with ExitStack() as stack:
        try:
            for name in names:
                (folder / name).mkdir()
            nodes = [stack.enter_context(Namespace(name, folder / name)) for name in names]
        except HostError as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        lay = stack.enter_context(Wire(nodes[2], fate)).lay if fate else straight
        yield Pair(nodes[0], nodes[1], Lab(folder), lay)


def only_stream(output: str) -> dict[str, Any]:
    """Return the only stream of a result, checked."""
    (stream,) = json.loads(output)["streams"]
    assert isinstance(stream, dict)
    add_up(stream)
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
