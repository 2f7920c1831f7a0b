"""A reflector on a host of its own: round trips to it are measured, not packets that pass.

Its options describe the path between it and the client, and its host. All of it goes with the
nodes; changes beyond them are taken back.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tailtrim.errors import RunError
from tailtrim.laboratory.devices import nftables
from tailtrim.laboratory.devices.bridge import join
from tailtrim.laboratory.devices.device import Device
from tailtrim.laboratory.devices.host_change import (
    AS_IS,
    TUNED,
    coalescing,
    preemption,
    tuned_profile,
)
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.laboratory.nodes.testbed import DESTINATION_PORT
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Ability, Reflection

#: Where probes go: on the client's network or beyond a router. The port of UDP echo is that of the
#: firewalls' rule.
_HERE, _BEYOND = "198.18.0.2", "198.19.0.2"
_PORT = DESTINATION_PORT
_CLIENT, _NEAR_GATE, _FAR_GATE = "198.18.0.1", "198.18.0.254", "198.19.0.254"
#: So many have to be answered one after the other before anything is measured.
_IN_A_ROW = 5
_TRIES = 20
_IPTABLES = Tool("iptables-nft-restore", "iptables")
#: Options that name a rule: their values without one, and with one.
_WITH_RULE = {
    "path": (("direct", "bridge", "router"), ("firewall",)),
    "firewall": (("none",), ("nftables", "iptables")),
}


class Reflector(Device):
    """Measure round trips to a reflector instead of packets that pass a device."""

    preset: Literal["reflector"]
    protocol: Literal["udp", "icmp"] = Field(
        default="udp", description="UDP echo, or ICMP echo (answered by the kernel)."
    )
    reflect: Literal["socket", "af-xdp", "xdp", "nat"] = Field(
        default="socket", description="Where requests are reflected."
    )
    busy_poll: bool = Field(
        default=False, description="Busy-poll instead of sleeping until a request arrives."
    )
    pinned: bool = Field(default=False, description="Pin the reflector to one CPU.")
    path: str = Field(
        default="direct",
        description="Path between the hosts: direct, bridge, router, or firewall:N, a router"
        " whose rule N of `rules` accepts the probes.",
    )
    firewall: str = Field(
        default="none",
        description="Firewall of the reflector's host: none, nftables:N or iptables:N (by"
        " nftables), whose rule N of `rules` accepts the probes.",
    )
    rules: int = Field(default=1, ge=1, le=100_000, description="Number of rules of a firewall.")
    coalesce_us: int | Literal["as-is"] = Field(
        default="as-is", description="Interrupt coalescing of its NIC, in µs."
    )
    tuned: str = Field(default="as-is", description="Profile of tuned on its host.")
    preemption: Literal["as-is", "none", "voluntary", "lazy", "full"] = Field(
        default="as-is", description="Preemption mode of its host's kernel."
    )

    tools_of_options: ClassVar[Mapping[str, Tool]] = {
        "path: firewall": nftables.NFT,
        "firewall: nftables": nftables.NFT,
        "firewall: iptables": _IPTABLES,
        "reflect: nat": nftables.NFT,
        "tuned": TUNED,
    }

    @property
    def polls(self) -> bool:
        """Whether it polls instead of waiting."""
        return self.busy_poll

    @field_validator("path", "firewall")
    @classmethod
    def _known_rule(cls, value: str, info: ValidationInfo) -> str:
        words, with_rule = _WITH_RULE[info.field_name or ""]
        if value not in words and not re.fullmatch(rf"({'|'.join(with_rule)}):[1-9]\d*", value):
            told = [*words, *(f"{word}:RULE" for word in with_rule)]
            raise ValueError(f"expected {', '.join(told[:-1])} or {told[-1]}, such as 1001")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for option in _WITH_RULE:
            kind, _, rule = getattr(self, option).partition(":")
            if rule and int(rule) > self.rules:
                raise ValueError(f"{option}: {kind} has {self.rules} rules, not {rule}")
        if self.protocol == "icmp" and self.reflect != "socket":
            raise ValueError("reflect: ICMP is answered by the kernel only")
        if self.protocol == "icmp" and ":" in self.path + self.firewall:
            raise ValueError("protocol: the rules of a firewall are for UDP")
        return self

    def require(self, host: Host) -> None:
        """Make sure that the programs of its firewalls are there."""
        if ":" in self.path or self.firewall.startswith("nftables"):
            host.require(nftables.NFT)
        if self.firewall.startswith("iptables"):
            host.require(_IPTABLES)

    @property
    def tunes(self) -> bool:
        """Whether the NIC, the kernel or tuned of its host are set."""
        return any(one != AS_IS for one in (self.coalesce_us, self.tuned, self.preemption))

    @property
    def needs(self) -> tuple[Ability, ...]:
        """A node in between, unless the path is direct."""
        return ("between",) if self.joined else ()

    @property
    def joined(self) -> bool:
        """Whether a node lies between client and reflector."""
        return self.path != "direct"

    @property
    def routed(self) -> bool:
        """Whether that node is a router."""
        return self.joined and self.path != "bridge"

    @property
    def target(self) -> str:
        """The address that probes go to."""
        return _BEYOND if self.routed else _HERE

    def asking(self) -> list[str]:
        """Return how a client has to ask, as arguments of ``ping``."""
        port = ["--dst-port", str(_PORT)] if self.protocol == "udp" else []
        return [self.target, "--protocol", self.protocol, *port]


class RunningReflector:
    """A reflector that answers, for as long as the context lasts.

    Args:
        reflector: with what is done to its host.
        at: where.
        lacking: is called with what the host may be unable to do; raises, or leaves it out.

    Raises:
        HostError: the host lacks what it takes.
        RunError: nothing answers.

    """

    def __init__(
        self, reflector: Reflector, at: Reflection, lacking: Callable[[Callable[[], None]], None]
    ) -> None:
        """Set everything up and wait until probes are answered."""
        self._reflector, self._at = reflector, at
        self._agent: Agent | None = None
        with ExitStack() as stack:
            self._connect()
            self._protect()
            lacking(partial(coalescing, at.answers, reflector.coalesce_us))
            lacking(partial(tuned_profile, at.reflector, reflector.tuned, stack))
            lacking(partial(preemption, at.reflector, reflector.preemption, stack))
            if reflector.protocol == "udp":
                self._agent = stack.enter_context(self._answer())
                self._agent.ready()
            self._wait()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    def check(self) -> None:
        """Make sure that the reflector runs.

        Raises:
            RunError: it has died.

        """
        if self._agent is not None and not self._agent.poll():
            self._agent.result(1)
            raise RunError("the reflector ended before the run did")

    def stop(self) -> dict[str, Any] | None:
        """Stop the reflector and return what it counted; nothing where the kernel answers."""
        return self._agent.stop() if self._agent is not None else None

    def _connect(self) -> None:
        at = self._at
        if at.between is not None and self._reflector.routed:
            self._route(*at.between)
        elif at.between is not None:
            join(*at.between)
        for port, address in ((at.asks, _CLIENT), (at.answers, self._reflector.target)):
            port.node.run("ip", "address", "add", f"{address}/24", "dev", port.name)
        if self._reflector.routed:
            at.client.run("ip", "route", "add", "198.19.0.0/24", "via", _NEAR_GATE)
            at.reflector.run("ip", "route", "add", "198.18.0.0/24", "via", _FAR_GATE)

    def _route(self, near: Port, far: Port) -> None:
        node = near.node
        for port, address in ((near, _NEAR_GATE), (far, _FAR_GATE)):
            node.run("ip", "address", "add", f"{address}/24", "dev", port.name)
        node.set("net/ipv4/ip_forward", "1")
        _, _, rule = self._reflector.path.partition(":")
        if rule:
            # Replies pass at once, as behind any firewall that looks at requests.
            first = f'iifname "{far.name}" accept'
            nftables.load(node, nftables.rules(self._reflector.rules, int(rule), first=first))

    def _protect(self) -> None:
        node = self._at.reflector
        kind, _, rule = self._reflector.firewall.partition(":")
        if kind == "nftables":
            nftables.load(node, nftables.rules(self._reflector.rules, int(rule), hook="input"))
        elif kind == "iptables":
            node.require(_IPTABLES)
            text = nftables.iptables_rules(self._reflector.rules, int(rule))
            node.run("iptables-nft-restore", given=text)

    def _answer(self) -> Agent:
        reflector, node = self._reflector, self._at.reflector
        # Root of a namespace that is gone soon may stay it; a user namespace may have no other.
        arguments = ["--echo", str(_PORT), "--mode", reflector.reflect, "--limit", "0"]
        arguments += ["--user", "0", "--interface", self._at.answers.name]
        arguments += ["--busy-poll"] if reflector.busy_poll else []
        arguments += ["--cpu", str(node.cpus[-1])] if reflector.pinned else []
        return Agent(node, "reflect", *arguments, cpus=sorted({*node.cpus, *node.spared}))

    def _wait(self) -> None:
        """Send probes until some are answered in a row; then neighbours and caches are warm."""
        client = self._at.client
        asked = ["--count", str(_IN_A_ROW), "--rate", "200pps", "--timeout", "0.1", "--json"]
        told = ""
        for _ in range(_TRIES):
            self.check()
            ended = client.call(client.agent, "ping", *self._reflector.asking(), *asked)
            told = ended.stderr.strip()
            if ended.returncode == 0:
                (stream,) = json.loads(ended.stdout)["streams"]
                if stream["probes"]["answered"] == _IN_A_ROW:
                    return
        message = f"the reflector answers no {_IN_A_ROW} probes in a row"
        raise RunError(f"{message}: {told.splitlines()[0]}" if told else message)
