"""A node that is reserved for an experiment, with the agent on it.

What is started there ends with the connection, whatever ends that: the agent (``node hold``) runs
each command as long as the process of sshd lives that serves the connection. That process is ended
(``node watch``) when nothing has been heard from here for :data:`SILENCE_S` seconds, as when a
cable was pulled. What has to take back what it did is not ended: it finds its standard input ended.

The reservation is a folder, since making one is atomic. It is there as long as the connection is;
where the node itself dies, it ends by its age.
"""

from __future__ import annotations

import getpass
import os
import platform
import select
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.host import ReservedHost
from tailtrim.laboratory.nodes.ssh import agent_copy
from tailtrim.laboratory.nodes.ssh.connection import CALL_S, SERVER, Connection
from tailtrim.laboratory.nodes.ssh.fetching import KEPT_S, MARK
from tailtrim.laboratory.nodes.ssh.node import SshNode
from tailtrim.laboratory.nodes.ssh.shell import facts, rights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.ssh.address import Ssh

#: So often the node hears from here; after so long without, it ends what runs for this session.
BEAT_S, SILENCE_S = 2, 10
#: A reservation whose owner was not heard for so long is stale.
STALE_S = 60
#: Where the reservation is, of which the kernel keeps nothing over a boot.
LOCK = "/run/tailtrim-reservation"
_READY_S = 15.0

# Taking a reservation is done by one at a time, so that a stale one is taken once. It ends when all
# have ended that share it: they still take back what they did.
_RESERVE = """
agent=$1 server=$2 owner=$3 lock=$4 stale=$5 silence=$6
exec 9>"$lock.taking" || exit 1
flock 9
if ! mkdir "$lock" 2>/dev/null; then
    [ -d "$lock" ] || { echo "problem $lock cannot be made"; exit 1; }
    age=$(($(date +%s) - $(stat -c %Y "$lock/alive" 2>/dev/null || echo 0)))
    told=$(cat "$lock/owner" 2>/dev/null)
    [ "$age" -ge "$stale" ] || { echo "reserved $told"; exit 1; }
    echo "stale $told"
    rm -rf "$lock"
    mkdir "$lock" || exit 1
fi
printf '%s\\n' "$owner" >"$lock/owner"
: >"$lock/alive"
exec 9>&-
folder=$(mktemp -d /var/tmp/tailtrim-XXXXXXXX) || exit 1
echo "folder $folder"
while read -r beat && [ -d "$lock" ]; do : >"$lock/alive"; echo; done |
    "$agent" node watch --with "$server" --silence "$silence"
# A message to a connection that is gone would end this shell (SIGPIPE) before it has tidied up.
exec >/dev/null 2>&1
# It has ended the connection, unless it was killed itself.
case $(cat "/proc/$server/comm" 2>/dev/null) in sshd*) kill -s TERM "$server" ;; esac
# Without the folder, a redirection that fails would end this shell.
[ ! -d "$lock" ] || { exec 8<"$lock" && flock 8; }
[ "$(cat "$lock/owner" 2>/dev/null)" != "$owner" ] || rm -rf "$lock"
# Files that were being fetched are kept for a while, and as long as they are read: see fetching.
for mark in "$folder"/*/$7; do
    while [ -e "$mark" ]; do
        age=$(($(date +%s) - $(stat -c %Y "$mark")))
        [ "$age" -lt "$8" ] || ! flock -n "$mark" true || break
        sleep 1
    done
done
rm -rf "$folder"
"""
_RELEASE = """
lock=$1 owner=$2 folder=$3
[ ! -d "$lock" ] || { exec 8<"$lock" && flock 8; }
rm -rf "$folder"
[ "$(cat "$lock/owner" 2>/dev/null)" != "$owner" ] || rm -rf "$lock"
"""
_FREE = """
lock=$1 stale=$2
[ -d "$lock" ] || exit 0
# As who takes it over: otherwise a reservation of this moment could be removed.
exec 9>"$lock.taking" && flock 9
age=$(($(date +%s) - $(stat -c %Y "$lock/alive" 2>/dev/null || echo 0)))
[ "$age" -ge "$stale" ] || { cat "$lock/owner"; exit 1; }
rm -rf "$lock"
"""
# It ends with its reader, and removes what is left here of the connection.
_BEAT = f"""
trap '' PIPE
while echo 2>/dev/null; do sleep {BEAT_S}; done
rm -rf "$1"
"""


class SshSession(ReservedHost):
    """A node that is reserved, with the agent on it, until it is closed.

    Args:
        name: the node's.
        ssh: where it is.
        experiment: what it is reserved for.

    Raises:
        HostError: it cannot be reached, has not what is needed, or others have reserved it.

    """

    _again: Connection | None = None

    def __init__(self, name: str, ssh: Ssh, experiment: str) -> None:
        """Connect, copy the agent if it is not there, and reserve the node."""
        self.role = name
        #: Where files of the session are on the node; empty until it is reserved.
        self.folder = ""
        self._owner = _owner(experiment)
        self._processes: list[subprocess.Popen[Any]] = []
        self._number = 0
        self.connection = Connection(name, ssh)
        try:
            self._sudo = rights(self.connection)
            self.agent, self._copied = agent_copy.copied(self.connection)
            self.facts = facts(self.connection)
            self.folder = self._reserved()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return the session itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _reserved(self) -> str:
        kept = (MARK, str(KEPT_S))
        words = (self._owner, LOCK, str(STALE_S), f"{SILENCE_S}s", *kept)
        script = ("sh", "-c", _RESERVE, "sh", self.agent, SERVER, *words)
        beat = subprocess.Popen(
            ["sh", "-c", _BEAT, "sh", str(self.connection.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        keeper = subprocess.Popen(
            self.connection.words(*self._sudo, *script),
            stdin=beat.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Two lines may come at once: select would not see the second one in a buffer.
            bufsize=0,
            env=local_host.environment(),
            start_new_session=True,
        )
        if beat.stdout:
            beat.stdout.close()
        self._processes = [beat, keeper]
        lines, kind, told = keeper.stdout, "", ""
        while lines is not None and select.select([lines], [], [], _READY_S)[0]:
            line = lines.readline().decode(errors="replace")
            kind, _, told = line.strip().partition(" ")
            if kind == "folder":
                return told
            if kind == "stale":
                self.stale = told
            elif kind == "reserved":
                raise HostError(f"{self.role}: reserved: {told}")
            else:
                break
        keeper.kill()
        errors = keeper.communicate()[1].decode(errors="replace")
        problem = f"{kind} {told} {errors}".strip()
        raise HostError(f"{self.role}: cannot be reserved: {problem or 'no answer'}")

    @property
    def lost(self) -> bool:
        """Whether the node cannot be reached any more, or has ended the session."""
        return not self.connection.alive or any(p.poll() is not None for p in self._processes)

    def check(self) -> None:
        """Make sure that the node can be reached.

        Raises:
            RunError: the connection is lost.

        """
        self.connection.check()
        if self.lost:
            raise RunError(f"{self.role}: the host ended the connection")

    @property
    def reading(self) -> Connection:
        """The connection for files: a new one where they go on after a loss."""
        return self._again or self.connection

    def go_on(self) -> None:
        """Connect again for files, which the node keeps for a while.

        Raises:
            RunError: the node cannot be reached in that time.

        """
        until_s = time.monotonic() + KEPT_S
        if self._again is not None:
            self._again.close()
        while True:
            try:
                self._again = Connection(self.role, self.connection.ssh)
            except HostError as error:
                if time.monotonic() > until_s:
                    raise RunError(str(error)) from error
                time.sleep(1)
            else:
                return

    @property
    def control_address(self) -> str:
        """The address of the node at which the connection ends."""
        # Client, its port, server, its port: sshd(8) says so.
        told = self.connection.call("printenv", "SSH_CONNECTION").stdout.split()
        return told[2] if len(told) > 2 else ""  # noqa: PLR2004

    @property
    def login(self) -> str:
        """The login user, in words."""
        return "a user with sudo" if self._sudo else "root"

    def call(
        self, *command: str, given: str | None = None, within_s: float = CALL_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the node to its end, as root.

        Raises:
            RunError: the connection is lost, or the command takes longer than ``within_s``.

        """
        return self.connection.call(*self.held(command), given=given, within_s=within_s)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command whose standard input and output this process holds."""
        words = self.held(command)
        return self.connection.open(*words, output=subprocess.PIPE, errors=subprocess.DEVNULL)

    def node(
        self,
        role: str,
        ports: Sequence[str],
        folder: Path,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> SshNode:
        """Make a network namespace there, with the ports in it."""
        return SshNode(role, self, ports, folder, cpus=cpus, spared=spared)

    def held(self, command: tuple[str, ...], pid_file: str | None = None) -> list[str]:
        """Return what root has to start on the node so that a command ends with the connection."""
        told = ("--pid-file", pid_file) if pid_file is not None else ()
        return [
            *(*self._sudo, self.agent, "node", "hold", "--with", SERVER, *told, "--"),
            # In a session of its own the agent can be preferred.
            *("setsid", "setpriv", "--pdeathsig", "KILL", *command),
        ]

    def kept(self, command: tuple[str, ...], pid_file: str) -> list[str]:
        """Return the same for a command that ends by itself when its standard input does.

        The node stays reserved until then.
        """
        script = 'echo $$ >"$1"; shift; exec "$@"'
        share = ("flock", "--shared", "--no-fork", LOCK)
        return [*self._sudo, "sh", "-c", script, "sh", pid_file, *share, *command]

    def new_pid_file(self) -> str:
        """Return the name of a file on the node for a number of a process."""
        self._number += 1
        return f"{self.folder}/.pid-{self._number}"

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield what is known of copies of the agent and an old reservation there."""
        if self._copied:
            yield "the agent was missing or of another version, and was copied there", ""
        if others := agent_copy.others(self.connection):
            yield f"has agents of other versions: {', '.join(others)}", "tailtrim testbed clean"
        if self.stale is not None:
            yield f"had a stale reservation, which was taken: {self.stale}", ""

    def close(self) -> None:
        """Give the node up, with everything that runs there for this session."""
        if self.folder and not self.lost:
            words = (LOCK, self._owner, self.folder)
            # Where that fails, it ends by itself there.
            with suppress(RunError):
                self.connection.call(*self._sudo, "sh", "-c", _RELEASE, "sh", *words, within_s=10)
        if self._again is not None:
            with suppress(RunError):
                self._again.call(*self._sudo, "rm", "-rf", self.folder, within_s=10)
            self._again.close()
        for process in self._processes:
            # With what it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.connection.close()
        for process in self._processes:
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        self._processes = []


def _owner(experiment: str) -> str:
    """Return who reserves a node for what, told apart from all others."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    who = f"{getpass.getuser()}@{platform.node()}"
    return f"{experiment} of {who} since {since} ({uuid.uuid4().hex[:8]})"


def remove_reservation(connection: Connection) -> None:
    """Remove a reservation that is stale, if there is one.

    Raises:
        HostError: a reservation of another owner is not stale, or it cannot be removed.
        RunError: the connection is lost.

    """
    words = (*rights(connection), "sh", "-c", _FREE, "sh", LOCK, str(STALE_S))
    ended = connection.call(*words)
    if ended.returncode != 0:
        told = ended.stdout.strip() or ended.stderr.strip()
        raise HostError(f"{connection.name}: reserved: {told}")
