"""Open vSwitch with its userspace datapath."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Literal

from tailtrim.devices.program import ProgramDevice
from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.nodes.node import Host, Node
    from tailtrim.nodes.testbed import Forwarding

_PACKAGE = "Debian package openvswitch-switch"
#: Where Debian has the daemon when no alternative links it to /usr/sbin.
_DAEMON = "/usr/lib/openvswitch-switch/ovs-vswitchd"
_SCHEMA = "share/openvswitch/vswitch.ovsschema"

# A switch of its own, apart from one that may run on this host: database, sockets and logs are in
# its folder. One flow, because a switch that learns would also flood.
_SCRIPT = """
set -e
mkdir "$1"
cd "$1"  # and names from here on: the path of a socket has 107 bytes at most
export OVS_RUNDIR=. OVS_LOGDIR=. OVS_DBDIR=. OVS_SYSCONFDIR=.
ovsdb-tool create conf.db "$2"
ovsdb-server conf.db --remote=punix:db.sock --unixctl=db.ctl --no-chdir &
ovs-vsctl --db=unix:db.sock --retry --timeout=10 --no-wait init
"$3" unix:db.sock --unixctl=switch.ctl --no-chdir &
switch=$!
trap 'kill "$switch"; exit 0' TERM
ovs-vsctl --db=unix:db.sock --timeout=10 \
    -- add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure \
    -- add-port br0 "$4" -- add-port br0 "$5"
ovs-ofctl --timeout=10 add-flow br0 "in_port=$4,actions=output:$5"
wait "$switch"
"""


class OpenVSwitch(ProgramDevice):
    """Open vSwitch with its userspace datapath, which needs tun devices."""

    preset: Literal["ovs"]

    needs: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl"), _PACKAGE
    )

    def require(self, host: Host) -> None:
        """Make sure that it is installed, and that there are tun devices."""
        super().require(host)
        if not host.exists("/dev/net/tun"):
            raise HostError(
                "ovs: /dev/net/tun is missing, its userspace datapath needs tun devices"
            )
        _daemon(host)

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        node = at.dut
        self.require(node)
        ports = (at.dut_in.name, at.dut_out.name)
        return ["sh", "-c", _SCRIPT, "ovs", node.path("ovs"), _schema(node), _daemon(node), *ports]


def _daemon(host: Host) -> str:
    found = host.find("ovs-vswitchd") or (_DAEMON if host.exists(_DAEMON) else None)
    if found is None:
        raise HostError(f"ovs-vswitchd is not installed, expected {_PACKAGE}")
    return found


def _schema(node: Node) -> str:
    """Find the schema of the database, which lies beside the programs."""
    tool = node.run("readlink", "-f", node.find("ovsdb-tool") or "/usr/bin/ovsdb-tool").strip()
    for prefix in PurePosixPath(tool).parents[1:3]:
        if node.exists(str(prefix / _SCHEMA)):
            return str(prefix / _SCHEMA)
    raise HostError(f"vswitch.ovsschema is missing, expected {_PACKAGE}")
