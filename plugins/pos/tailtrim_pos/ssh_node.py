"""A node on a host that is reached by SSH: made there as one is made here.

The ports of the host come into its network, under the names that the folder has for them, and go
back. Its tools reach the controller by a socket that the connection forwards. All its processes
end with the connection, and so with this process, whatever ends that.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import wiring
from tailtrim.laboratory.nodes.holder import Holder
from tailtrim.laboratory.nodes.ssh.node import SshNode
from tailtrim_pos.node import SCRIPT, TOOLS, UNSHARED, RemotePosNode, inside, packed, script
from tailtrim_pos.programs import SOCKET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.ssh.session import SshSession

_END_S = 5.0
# The socket is made by the login user's sshd; the folder goes with the session.
_SHARE = """
place=$(mktemp -d "$1/node-XXXXXXXX") && chown "${SUDO_UID:-0}" "$place" && chmod 711 "$1" &&
    echo "$place"
"""
_SIGNAL = """
pid=$(cat "$1") || exit
for leader in $(cat "/proc/$pid/task/$pid/children"); do kill -s "$2" -- "-$leader"; done
"""


class SshPosNode(RemotePosNode):
    """A node on a host, in a session with that."""

    signalling = _SIGNAL

    def __init__(
        self, name: str, session: SshSession, ports: Sequence[str], shared: Path, tools: Path
    ) -> None:
        """Boot it.

        Args:
            name: its name.
            session: with the host.
            ports: interfaces of the host; one that has another name on the node as ``old=new``.
            shared: the folder here with the controller's socket.
            tools: the folder here with what it has for tools.

        Raises:
            HostError: the host cannot.
            RunError: the connection is lost.

        """
        self.name, self._session = name, session
        session.require(*TOOLS)
        self._network = SshNode(name, session, ports, shared)
        self._there = ""
        try:
            wiring.without_ipv6(self._network)
            self._there = self._done("sh", "-c", _SHARE, "sh", session.folder)
            self._copied(tools)
            self._link = f"{self._there}/{SOCKET}", str(shared / SOCKET)
            session.connection.forward(*self._link)
            here = (f"{self._there}/{SCRIPT}", name, self._there, session.agent)
            start = partial(self._network.open, *UNSHARED, *here)
            self._holder = Holder(start, f"{name}: no node", grace_s=_END_S)
            pid = self._holder.process.pid
            self._pid = int(self._done("cat", f"/proc/{pid}/task/{pid}/children"))
        except BaseException:
            self._network.__exit__()
            raise

    def _done(self, *command: str) -> str:
        ended = self._session.call(*command)
        if ended.returncode != 0:
            told = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            raise HostError(f"{self.name}: {self._session.role}: {told[-1]}")
        return ended.stdout.strip()

    def _copied(self, tools: Path) -> None:
        (tools / SCRIPT).write_text(script(), "utf-8")
        unpack = (
            *("tar", "--extract", "--no-same-owner", "--no-overwrite-dir", "--file=-"),
            f"--directory={self._there}",
        )
        sent = self._session.connection.send(packed(tools), *self._session.held(unpack))
        if sent.returncode != 0:
            told = sent.stderr.decode("utf-8", "replace").strip()
            raise HostError(f"{self.name}: {self._session.role}: tar: {told}")

    @property
    def alive(self) -> bool:
        """Whether it is there, as far as is known."""
        return self._holder.process.poll() is None and not self._session.lost

    def end(self) -> None:
        """Remove it with everything that runs on it; the ports go back."""
        if not self._there:
            return
        self._holder.end()
        with suppress(RunError, HostError):
            self._session.connection.unforward(*self._link)
        self._network.__exit__()
        with suppress(RunError):
            self._session.call("rm", "-rf", self._there)
        self._there = ""

    def _inside(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        if not self.alive:
            raise RunError(f"{self.name}: the node has died")
        return inside(self._pid, command, folder, environment)
