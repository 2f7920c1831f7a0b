"""Open vSwitch with its userspace datapath."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Literal

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.program import ProgramDevice
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.testbed import Forwarding

_PACKAGE = "openvswitch-switch"
#: Where Debian has the daemon when no alternative links it to /usr/sbin.
_PLACE = "/usr/lib/openvswitch-switch/ovs-vswitchd"
_DAEMON = Tool("ovs-vswitchd", _PACKAGE, service=True, places=(_PLACE,))
_DATABASE = Tool("ovsdb-tool", _PACKAGE, service=True)
_PROGRAMS = (
    _DATABASE,
    Tool("ovsdb-server", _PACKAGE, service=True),
    Tool("ovs-vsctl", _PACKAGE, service=True),
    Tool("ovs-ofctl", _PACKAGE, service=True),
    _DAEMON,
)
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

    tools: ClassVar[tuple[Tool, ...]] = _PROGRAMS
    device_files: ClassVar[tuple[str, ...]] = ("/dev/net/tun",)

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        node = at.dut
        daemon = node.find(_DAEMON) or _DAEMON.program
        ports = (at.dut_in.name, at.dut_out.name)
        return ["sh", "-c", _SCRIPT, "ovs", node.path("ovs"), _schema(node), daemon, *ports]


def _schema(node: Node) -> str:
    """Find the schema of the database, in a folder near that of the programs."""
    tool = node.run("readlink", "-f", node.find(_DATABASE) or _DATABASE.program).strip()
    for prefix in PurePosixPath(tool).parents[1:3]:
        if node.exists(str(prefix / _SCHEMA)):
            return str(prefix / _SCHEMA)
    raise HostError(f"vswitch.ovsschema is missing, expected {_DATABASE.source}")
