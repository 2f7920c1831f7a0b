"""The kernel as a router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.device import InlineDevice
from tailtrim.laboratory.nodes.testbed import DESTINATION_IP

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: Its addresses by version of IP: where packets come in, where they leave.
_ADDRESSES = {
    4: ("198.18.0.254/24", "198.19.0.254/24"),
    6: ("2001:2::fe/64", "2001:2:0:1::fe/64"),
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


class Router(InlineDevice):
    """The kernel as a router of IP."""

    preset: Literal["router"]

    def destination(self, at: Forwarding) -> Port:
        """Return the router's own port."""
        return at.dut_in

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> None:
        """Have the device's node forward packets."""
        route(at, ip)


def route(at: Forwarding, ip: int) -> None:
    """Forward IP of a version between the device's ports; hosts behind it are known beforehand."""
    node, script = at.dut, []
    for port, address in zip((at.dut_in.name, at.dut_out.name), _ADDRESSES[ip], strict=True):
        if ip == 6:  # noqa: PLR2004 - IPv6
            # It announces nothing, and does not ask whether its address is taken.
            script += [_set(f"ipv6/conf/{port}/{name}", value) for name, value in _QUIET.items()]
        else:
            script.append(_set(f"ipv4/conf/{port}/rp_filter", "0"))
        script.append(f"ip link set {port} arp on")
        script.append(f"ip address add {address} dev {port}")
    # After the addresses: a host that becomes a router forgets what it has of IPv6.
    script.append(_set("ipv4/ip_forward" if ip == 4 else "ipv6/conf/all/forwarding", "1"))  # noqa: PLR2004
    neighbour = f"lladdr {at.sink.mac} dev {at.dut_out.name} nud permanent"
    script.append(f"ip neighbour replace {DESTINATION_IP[ip]} {neighbour}")
    # One command: each takes long where it is far away, or emulated.
    ended = node.call("sh", "-ec", "\n".join(script))
    if ended.returncode != 0:
        raise HostError(f"{node.role}: cannot be a router: {ended.stderr.strip()}")


def _set(name: str, value: str) -> str:
    """Return a command that sets a sysctl of the network, where the kernel has it."""
    path = f"/proc/sys/net/{name}"
    return f"[ ! -e {path} ] || echo {value} >{path}"
