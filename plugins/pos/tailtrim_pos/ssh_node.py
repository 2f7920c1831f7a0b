"""A node on a host that is reached by SSH: made there as one is made here.

The ports of the host come into its network, under the names that the folder has for them, and go
back. Its tools reach the controller by a socket that the connection forwards. All its processes
end with the connection, and so with this process, whatever ends that.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from tailtrim.errors import HostError, RunError
from tailtrim.nodes import wiring
from tailtrim.nodes.node import errors_file, first_line
from tailtrim.nodes.ssh.node import SshNode
from tailtrim_pos.node import (
    HOME,
    SCRIPT,
    TOOLS,
    UNSHARED,
    PosNode,
    inside,
    script,
)
from tailtrim_pos.node_command import NodeCommand, RemoteCommand, spawn
from tailtrim_pos.programs import SOCKET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.nodes.ssh.process import RemoteProcess
    from tailtrim.nodes.ssh.session import Session

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


class SshPosNode(PosNode):
    """A node on a host, in a session with that."""

    def __init__(
        self, name: str, session: Session, ports: Sequence[str], shared: Path, tools: Path
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
            self._holder, self._pid = self._held()
        except BaseException:
            self._network.__exit__()
            raise

    def _done(self, *command: str) -> str:
        ended = self._session.as_root(*command)
        if ended.returncode != 0:
            told = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            raise HostError(f"{self.name}: {self._session.name}: {told[-1]}")
        return ended.stdout.strip()

    def _copied(self, tools: Path) -> None:
        (tools / SCRIPT).write_text(script(), "utf-8")
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            files.add(tools, arcname=".")
        unpack = (
            *("tar", "--extract", "--no-same-owner", "--no-overwrite-dir", "--file=-"),
            f"--directory={self._there}",
        )
        sent = self._session.connection.send(archive.getvalue(), *self._session.held(unpack))
        if sent.returncode != 0:
            told = sent.stderr.decode("utf-8", "replace").strip()
            raise HostError(f"{self.name}: {self._session.name}: tar: {told}")

    def _held(self) -> tuple[RemoteProcess, int]:
        here = (f"{self._there}/{SCRIPT}", self.name, self._there, self._session.agent)
        with errors_file() as errors:
            words = (*UNSHARED, *here)
            holder = self._network.open(*words, output=subprocess.PIPE, errors=errors)
            if not first_line(holder):
                holder.kill()
                errors.seek(0)
                told = errors.read().strip().splitlines()
                raise HostError(f"{self.name}: no node: {told[0] if told else 'no answer'}")
        return holder, int(self._done("cat", f"/proc/{holder.pid}/task/{holder.pid}/children"))

    @property
    def alive(self) -> bool:
        """Whether it is there, as far as is known."""
        return self._holder.poll() is None and not self._session.lost

    def end(self) -> None:
        """Remove it with everything that runs on it; the ports go back."""
        if not self._there:
            return
        with suppress(OSError):
            if self._holder.stdin:
                self._holder.stdin.close()
        try:
            self._holder.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        if self._holder.stdout:
            self._holder.stdout.close()
        with suppress(RunError, HostError):
            self._session.connection.unforward(*self._link)
        self._network.__exit__()
        with suppress(RunError):
            self._session.as_root("rm", "-rf", self._there)
        self._there = ""

    def words(
        self,
        command: Sequence[str],
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return what to start here so that a command runs on the node."""
        return self._words(inside(self._known(), command, folder, environment), None)

    def _known(self) -> int:
        if not self.alive:
            raise RunError(f"{self.name}: the node has died")
        return self._pid

    def _words(self, command: tuple[str, ...], pid_file: str | None) -> list[str]:
        return self._session.connection.words(*self._session.held(command, pid_file))

    async def start(
        self,
        command: Sequence[str],
        output: BinaryIO,
        errors: BinaryIO,
        *,
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> NodeCommand:
        """Start a command on the node."""
        pid_file = self._session.new_pid_file()
        words = self._words(inside(self._known(), command, folder, environment), pid_file)
        process = await spawn(words, output, errors)
        return RemoteCommand(self._session, pid_file, process, _SIGNAL)
