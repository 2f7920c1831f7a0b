"""Open vSwitch with its userspace datapath as the device under test."""

from __future__ import annotations

from pathlib import Path

from tailtrim.errors import HostError
from tailtrim.testbed.local import DUT_IN, DUT_OUT
from tailtrim.testbed.node import check, which

_PACKAGE = "Debian package openvswitch-switch"
#: Where Debian has the daemon when no alternative links it to /usr/sbin.
_DAEMON = Path("/usr/lib/openvswitch-switch/ovs-vswitchd")
_SCHEMA = Path("share/openvswitch/vswitch.ovsschema")

# A switch of its own, apart from one that may run on this host: database, sockets and logs are in
# its folder. One flow, because a switch that learns would also flood.
_SCRIPT = """
set -e
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


def command(folder: Path) -> list[str]:
    """Return how to start it.

    Args:
        folder: for its database, sockets and logs.

    Raises:
        HostError: it is not installed, or this kernel has no tun devices.

    """
    check(dict.fromkeys(("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl"), _PACKAGE))
    if not Path("/dev/net/tun").exists():
        raise HostError("ovs: /dev/net/tun is missing, its userspace datapath needs tun devices")
    daemon = which("ovs-vswitchd") or (str(_DAEMON) if _DAEMON.exists() else None)
    if daemon is None:
        raise HostError(f"ovs-vswitchd is not installed, expected {_PACKAGE}")
    switch = folder / "ovs"
    switch.mkdir()
    return ["sh", "-c", _SCRIPT, "ovs", str(switch), str(_schema()), daemon, DUT_IN, DUT_OUT]


def _schema() -> Path:
    """Find the schema of the database, which lies beside the programs."""
    tool = which("ovsdb-tool")
    for prefix in Path(tool or "/usr/bin/ovsdb-tool").resolve().parents[1:3]:
        if (prefix / _SCHEMA).exists():
            return prefix / _SCHEMA
    raise HostError(f"vswitch.ovsschema is missing, expected {_PACKAGE}")
