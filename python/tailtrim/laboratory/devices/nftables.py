"""The kernel's firewall, nftables."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tailtrim.laboratory.devices.device import InlineDevice
from tailtrim.laboratory.devices.router import route
from tailtrim.laboratory.nodes.testbed import DESTINATION_PORT
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: Ports of the rules that do not fit the packets, all below :data:`DESTINATION_PORT`.
_OTHER_PORTS = DESTINATION_PORT - 1
NFT = Tool("nft", "nftables")


class Nftables(InlineDevice):
    """A router with a firewall; one of its rules accepts the packets."""

    preset: Literal["nftables"]
    rules: int = Field(default=1, ge=1, le=100_000, description="Number of rules.")
    position: int = Field(
        default=1, ge=1, description="The rule that accepts the packets, counted from 1."
    )

    tools: ClassVar[tuple[Tool, ...]] = (NFT,)

    @model_validator(mode="after")
    def _is_there(self) -> Self:
        if self.position > self.rules:
            raise ValueError(f"position: there are {self.rules} rules, not {self.position}")
        return self

    def destination(self, at: Forwarding) -> Port:
        """Return the router's own port."""
        return at.dut_in

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> None:
        """Have the device's node forward packets that one of its rules accepts."""
        route(at, ip)
        load(at.dut, rules(self.rules, self.position))


def load(node: Node, ruleset: str) -> None:
    """Have a node follow rules.

    Raises:
        HostError: nftables is missing, from the node or from its kernel.

    """
    node.require(NFT)
    node.run("nft", "-f", "-", given=ruleset)


def rules(count: int, position: int, *, hook: str = "forward", first: str | None = None) -> str:
    """Write the firewall of the reflector paper: N accept rules, and one of them fits the packets.

    ``first`` is a rule before them. A forwarded packet that fits none of them is dropped; a host
    keeps other packets that are for it.
    """
    policy = "drop" if hook == "forward" else "accept"
    lines = [
        "table inet tailtrim {",
        f"    chain {hook} {{",
        f"        type filter hook {hook} priority 0; policy {policy};",
        *([f"        {first}"] if first else []),
    ]
    lines += [f"        udp dport {port} accept" for port in _ports(count, position)]
    return "\n".join([*lines, "    }", "}"]) + "\n"


def iptables_rules(count: int, position: int) -> str:
    """Write the same for a host itself, in the words of iptables-restore."""
    ports = _ports(count, position)
    lines = [f"-A INPUT -p udp -m udp --dport {port} -j ACCEPT" for port in ports]
    return "\n".join(["*filter", ":INPUT ACCEPT [0:0]", *lines, "COMMIT"]) + "\n"


def _ports(count: int, position: int) -> Iterator[int]:
    """Yield a port for each rule: that of the packets at one position, others elsewhere."""
    for number in range(1, count + 1):
        yield DESTINATION_PORT if number == position else (number - 1) % _OTHER_PORTS + 1
