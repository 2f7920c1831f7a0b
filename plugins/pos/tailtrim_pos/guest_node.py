"""A node that is a virtual machine: its kernel, settings and files are its alone until a reset.

A script's changes there reach nothing else, and are gone with the machine, which is in memory and
ends with this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim_pos.node import ENVIRONMENT, RemotePosNode, packed
from tailtrim_pos.programs import SHARED, SOCKET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.vm.guest import Guest

# Ports are named at last: those that the kernel has called eth0, eth1, … have other names by then.
_SET_UP = """
name=$1 mtu=$2; shift 2
tar --extract --no-same-owner --file=- --directory=/run/tailtrim || exit
ln -sf /run/tailtrim/bin/* /usr/local/bin/ && hostname "$name" || exit
for where in all default; do
    [ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$where/disable_ipv6
done
for port; do
    ethtool -K "${port%%=*}" tx off rx off sg off gso off gro off tso off >/dev/null 2>&1
    ip link set "${port%%=*}" down mtu "$mtu" name "${port#*=}" || exit
done
"""
_INSIDE = 'cd "$1" && shift && exec env -i "$@"'
# sshd starts each command in a session of its own: a signal to its process group ends all of it.
_SIGNAL = """
pid=$(cat "$1") || exit
group=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 3) && kill -s "$2" -- "-$group"
"""


class GuestNode(RemotePosNode):
    """A node in a guest that has booted for it."""

    signalling = _SIGNAL

    def __init__(
        self, name: str, guest: Guest, ports: Sequence[str], mtu: int, tools: Path
    ) -> None:
        """Give the guest its tools, and names to itself and its ports.

        Args:
            name: of the node.
            guest: it ends with the node.
            ports: those of the guest, with the names that they get, as ``old=new``.
            mtu: of the ports.
            tools: the folder here with the tools; the controller's socket is next to it.

        Raises:
            HostError: the guest cannot.
            RunError: the guest was lost.

        """
        self.name, self._guest = name, guest
        self._session = guest.session
        words = ("sh", "-c", _SET_UP, "sh", name, str(mtu), *ports)
        ended = self._session.connection.send(packed(tools), *words)
        if ended.returncode != 0:
            told = ended.stderr.decode("utf-8", "replace").strip()
            raise HostError(f"{name}: the virtual machine cannot be set up: {told}")
        self._session.connection.forward(f"{SHARED}/{SOCKET}", str(tools.with_name(SOCKET)))

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return not self._session.lost

    def end(self) -> None:
        """End the machine."""
        self._guest.__exit__()

    def _inside(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        every = ENVIRONMENT | dict(environment or {})
        values = (f"{name}={value}" for name, value in every.items())
        return ("sh", "-c", _INSIDE, "sh", folder, *values, *command)
