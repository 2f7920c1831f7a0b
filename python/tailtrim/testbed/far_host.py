"""Two hosts for round trips: who asks, who answers, and what lies between.

::

    client ──veth── reflector                       direct
    client ──veth── middle ──veth── reflector       bridge, router, firewall:N

The reflector's host gets a firewall of its own where a plan says so. All of it goes with the nodes.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from tailtrim.agent import Agent, program
from tailtrim.errors import RunError
from tailtrim.testbed import kernel
from tailtrim.testbed.host_change import coalescing, preemption, tuned_profile
from tailtrim.testbed.node import Node, allowed, check, environment, link
from tailtrim.testbed.ready import DESTINATION_PORT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim.plan import Dut

#: Where probes go, and the port of UDP echo: that of the firewalls' rule.
TARGET = {"here": "198.18.0.2", "beyond": "198.19.0.2"}
PORT = DESTINATION_PORT
_CLIENT, _NEAR_GATE, _FAR_GATE = "198.18.0.1", "198.18.0.254", "198.19.0.254"
_ASKS, _ANSWERS, _TO_CLIENT, _TO_REFLECTOR = "c0", "r0", "m0", "m1"
_MACS = {
    _ASKS: "02:00:00:00:03:01",
    _TO_CLIENT: "02:00:00:00:03:02",
    _TO_REFLECTOR: "02:00:00:00:03:03",
    _ANSWERS: "02:00:00:00:03:04",
}
_MTU = 1_500
#: So many have to be answered one after the other before anything is measured.
_IN_A_ROW = 5
_TRIES = 20


class Hosts:
    """Client and reflector, answering, for as long as the context lasts.

    Args:
        dut: the reflector and what is done to its host.
        cpus: where the reflector may run; on the last of them it does where it is pinned.
        spared: where it may run as well where it is not pinned.
        lacking: is called with what this host cannot do; raises, or leaves it out.

    Raises:
        HostError: this host lacks what it takes.
        RunError: nothing answers.

    """

    def __init__(
        self,
        dut: Dut,
        cpus: Sequence[int],
        spared: Sequence[int],
        lacking: Callable[[Callable[[], None]], None],
    ) -> None:
        """Set everything up and wait until probes are answered."""
        self._dut = dut
        self.agent: Agent | None = None
        beyond = dut.path == "router" or dut.path.startswith("firewall")
        self.target = TARGET["beyond" if beyond else "here"]
        with ExitStack() as stack:
            self.client = stack.enter_context(Node("client"))
            self.reflector = stack.enter_context(Node("reflector"))
            for node in (self.client, self.reflector):
                node.set("net/ipv6/conf/all/disable_ipv6", "1")
                node.set("net/ipv6/conf/default/disable_ipv6", "1")
            self._lay(stack)
            self._protect()
            for change in (coalescing, tuned_profile, preemption):
                lacking(lambda change=change: change(self.reflector, _ANSWERS, dut, stack))  # type: ignore[misc]
            if dut.protocol == "udp":
                self._answer(stack, cpus, spared)
            self._wait()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the hosts themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything."""
        self._stack.close()

    def check(self) -> None:
        """Make sure that the reflector runs.

        Raises:
            RunError: it has died.

        """
        if self.agent is not None and not self.agent.poll():
            self.agent.result(1)
            raise RunError("the reflector ended before the run did")

    def stop(self) -> dict[str, Any] | None:
        """Stop the reflector and return what it counted; nothing where the kernel answers."""
        return self.agent.stop() if self.agent is not None else None

    def _lay(self, stack: ExitStack) -> None:
        if self._dut.path == "direct":
            _cable(self.client, _ASKS, self.reflector, _ANSWERS)
        else:
            middle = stack.enter_context(Node("middle"))
            middle.set("net/ipv6/conf/default/disable_ipv6", "1")
            _cable(self.client, _ASKS, middle, _TO_CLIENT)
            _cable(middle, _TO_REFLECTOR, self.reflector, _ANSWERS)
            if self._dut.path == "bridge":
                kernel.join(middle, _TO_CLIENT, _TO_REFLECTOR)
            else:
                self._route(middle)
        for node, port, address in (
            (self.client, _ASKS, _CLIENT),
            (self.reflector, _ANSWERS, self.target),
        ):
            node.run("ip", "address", "add", f"{address}/24", "dev", port)
        if self.target == TARGET["beyond"]:
            self.client.run("ip", "route", "add", "198.19.0.0/24", "via", _NEAR_GATE)
            self.reflector.run("ip", "route", "add", "198.18.0.0/24", "via", _FAR_GATE)

    def _route(self, middle: Node) -> None:
        for port, address in ((_TO_CLIENT, _NEAR_GATE), (_TO_REFLECTOR, _FAR_GATE)):
            middle.run("ip", "address", "add", f"{address}/24", "dev", port)
        middle.set("net/ipv4/ip_forward", "1")
        _, _, rule = self._dut.path.partition(":")
        if rule:
            check({"nft": "Debian package nftables"})
            # Replies pass at once, as behind any firewall that looks at requests.
            first = f'iifname "{_TO_REFLECTOR}" accept'
            text = kernel.rules(self._dut.rules, int(rule), first=first)
            middle.run("nft", "-f", "-", given=text)

    def _protect(self) -> None:
        kind, _, rule = self._dut.firewall.partition(":")
        if kind == "nftables":
            check({"nft": "Debian package nftables"})
            text = kernel.rules(self._dut.rules, int(rule), hook="input")
            self.reflector.run("nft", "-f", "-", given=text)
        elif kind == "iptables":
            check({"iptables-nft-restore": "Debian package iptables"})
            text = kernel.iptables_rules(self._dut.rules, int(rule))
            self.reflector.run("iptables-nft-restore", given=text)

    def _answer(self, stack: ExitStack, cpus: Sequence[int], spared: Sequence[int]) -> None:
        dut = self._dut
        # Root of a namespace that is gone soon may stay it; a user namespace may have no other.
        arguments = ["--echo", str(PORT), "--mode", dut.reflect, "--rate", "0", "--user", "0"]
        arguments += ["--interface", _ANSWERS]
        arguments += ["--busy-poll"] if dut.busy_poll else []
        arguments += ["--cpu", str(cpus[-1])] if dut.pinned else []
        anywhere = allowed(sorted({*cpus, *spared}))
        self.agent = Agent("reflect", *arguments, prefix=[*self.reflector.prefix, *anywhere])
        stack.enter_context(self.agent)
        self.agent.ready()

    def _wait(self) -> None:
        """Send probes until some are answered in a row; then neighbours and caches are warm."""
        asked = ["--stop-after", str(_IN_A_ROW), "--rate", "200pps", "--timeout", "0.1", "--json"]
        command = [*self.client.prefix, program(), "ping", *self.asking(), *asked]
        told = ""
        for _ in range(_TRIES):
            self.check()
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment()
            )
            told = ended.stderr.strip()
            if ended.returncode == 0:
                (stream,) = json.loads(ended.stdout)["streams"]
                if stream["probes"]["answered"] == _IN_A_ROW:
                    return
        message = f"the reflector answers no {_IN_A_ROW} probes in a row"
        raise RunError(f"{message}: {told.splitlines()[0]}" if told else message)

    def asking(self) -> list[str]:
        """Return how the client has to ask, as arguments of ``ping``."""
        port = ["--port", str(PORT)] if self._dut.protocol == "udp" else []
        return [self.target, "--protocol", self._dut.protocol, *port]


def _cable(one: Node, name: str, other: Node, peer: str) -> None:
    link(one, name, other, peer, macs=(_MACS[name], _MACS[peer]), mtu=_MTU)
    for node, end in ((one, name), (other, peer)):
        node.run("ip", "link", "set", "lo", "up")
        node.run("ip", "link", "set", end, "up")
