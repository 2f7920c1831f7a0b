"""Devices under test that the kernel itself is: bridge, router, firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.testbed.local import DUT_IN, DUT_OUT, MACS, SINK
from tailtrim.testbed.node import check
from tailtrim.testbed.ready import DESTINATION_IP, DESTINATION_PORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.plan import Dut
    from tailtrim.testbed.node import Node

#: Ports of the rules that do not fit the packets, all below :data:`DESTINATION_PORT`.
_OTHER_PORTS = DESTINATION_PORT - 1


#: Addresses of a router by version of IP.
_ROUTER = {
    4: {DUT_IN: "198.18.0.254/24", DUT_OUT: "198.19.0.254/24"},
    6: {DUT_IN: "2001:2::fe/64", DUT_OUT: "2001:2:0:1::fe/64"},
}
_QUIET = {
    "addr_gen_mode": "1",
    "accept_dad": "0",
    "accept_ra": "0",
    "router_solicitations": "0",
    # It reports its multicast groups at once, not in mid-run.
    "mldv1_unsolicited_report_interval": "1",
    "mldv2_unsolicited_report_interval": "1",
    "disable_ipv6": "0",
}


def bridge(node: Node) -> None:
    """Join the device's ports by a bridge that says nothing itself."""
    join(node, DUT_IN, DUT_OUT)


def join(node: Node, *ports: str) -> None:
    """Join ports of a node by a bridge that says nothing itself."""
    node.run("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0")
    for port in ports:
        node.run("ip", "link", "set", port, "master", "br0")
    node.run("ip", "link", "set", "br0", "up", "arp", "off", "multicast", "off")


def router(node: Node, ip: int) -> None:
    """Forward IP of a version between the device's ports; who is behind it is known beforehand."""
    for port, address in _ROUTER[ip].items():
        if ip == 6:  # noqa: PLR2004 - IPv6
            # It announces nothing, and asks nobody whether its address is taken.
            for name, value in _QUIET.items():
                node.set(f"net/ipv6/conf/{port}/{name}", value)
        else:
            node.set(f"net/ipv4/conf/{port}/rp_filter", "0")
        node.run("ip", "link", "set", port, "arp", "on")
        node.run("ip", "address", "add", address, "dev", port)
    # After the addresses: a host that becomes a router forgets what it has of IPv6.
    node.set("net/ipv4/ip_forward" if ip == 4 else "net/ipv6/conf/all/forwarding", "1")  # noqa: PLR2004
    neighbour = ["lladdr", MACS[SINK], "dev", DUT_OUT, "nud", "permanent"]
    node.run("ip", "neighbour", "replace", DESTINATION_IP[ip], *neighbour)


def firewall(node: Node, dut: Dut) -> None:
    """Filter what is forwarded.

    Raises:
        HostError: nftables is missing, from this host or from its kernel.

    """
    check({"nft": "Debian package nftables"})
    node.run("nft", "-f", "-", given=rules(dut.rules, dut.position))


def rules(count: int, position: int, *, hook: str = "forward", first: str | None = None) -> str:
    """Write the firewall of the reflector paper: N accept rules, of which one fits the packets.

    ``first`` is a rule before them. What fits none of them is dropped where it is forwarded; a host
    keeps what else is for it.
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
