"""One connection to a host, which all commands share, by the OpenSSH client.

The client is used, and not a library such as asyncssh, because it already is what laboratories set
up and trust: keys, agents, hardware keys, jump hosts, ``~/.ssh/config`` and known hosts work as
they do on the command line, and with ``ControlMaster`` each command is a plain process here, with
its own standard streams and exit code. There is no event loop and no dependency; asyncssh has a
licence (EPL or GPL) that programs built on this one might not want.

* Host keys are checked (``StrictHostKeyChecking=yes``): an unknown one is an error.
* A connection that is lost is found after :data:`ALIVE_S` times :data:`ALIVE_COUNT` seconds. All
  its commands end then, here with exit code 255; those there are ended by :mod:`.session`.
* It ends with this process, whatever ends that, as the kernel ends the client then.
"""

from __future__ import annotations

import select
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.laboratory.nodes.ssh.address import Ssh

SSH = Tool("ssh", "openssh-client")
SETPRIV = Tool("setpriv", "util-linux")

#: So often the other side is asked whether it is there, and so many answers may be missing.
ALIVE_S, ALIVE_COUNT = 2, 3
_CONNECT_S = 10
#: Authentication and jump hosts included.
_READY_S = 30.0
_END_S = 5.0
_LOST_S = 2.0
#: A command that runs to its end may take so long; the slowest is an audit on an emulated CPU, with
#: tens of seconds.
CALL_S = 120.0
#: The exit code of ssh for its own errors.
OF_SSH = 255

#: Stands in a command for the number of the process there that serves this connection.
SERVER = "@server@"
# Programs of administrators are not on everybody's PATH. The loop puts the number in its place.
_SCRIPT = f"""
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; export PATH
for word; do shift; [ "$word" != {SERVER} ] || word=$PPID; set -- "$@" "$word"; done
exec "$@"
"""

#: Remedies for errors of ssh: a part of its message, and the remedy.
_REMEDIES = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host has another key than the known one: find out why, then ssh-keygen -R HOST",
    ),
    (
        "Host key verification failed",
        "its host key is not known: connect once with ssh, compare the fingerprint and accept it",
    ),
    ("Permission denied", "load its key into the SSH agent (ssh-add), or name it with key:"),
    ("Could not resolve", "correct the host name"),
    ("refused", "start sshd there, or correct the port"),
    ("timed out", "check that it runs, its address, and firewalls on the way"),
    ("No route", "check that it runs, its address, and the network"),
)


class Connection:
    """A connection to a host, for as long as the context lasts.

    Args:
        name: the node, for errors.
        ssh: where it is.
        options: of the client, instead of those here.
        ready_s: how long it may take until commands can be started.
        folder: for its socket, which goes with it; by default a new one.

    Raises:
        HostError: it cannot be reached, its key is not known, or does not take the user.

    """

    def __init__(
        self,
        name: str,
        ssh: Ssh,
        *,
        options: Mapping[str, str] | None = None,
        ready_s: float = _READY_S,
        folder: Path | None = None,
    ) -> None:
        """Connect."""
        local_host.require(SSH, SETPRIV)
        self.name, self.ssh = name, ssh
        self._more, self._ready_s = dict(options or {}), ready_s
        #: Sockets have short paths.
        self.folder = folder or Path(tempfile.mkdtemp(prefix="tailtrim-"))
        self._socket = str(self.folder / "ssh")
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
            # SIGTERM has it remove its socket.
            self._master = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "ssh", *self._options()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=told,
                env=local_host.environment(),
                start_new_session=True,
            )
            if not self._answers():
                self.close()
                told.seek(0)
                raise self._refused(told.read())

    def _options(self) -> list[str]:
        ssh = self.ssh
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(_CONNECT_S),
            "ServerAliveInterval": str(ALIVE_S),
            "ServerAliveCountMax": str(ALIVE_COUNT),
            "ControlPersist": "no",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "LogLevel": "ERROR",
            # When commands can be started.
            "PermitLocalCommand": "yes",
            "LocalCommand": "echo ready",
        }
        if ssh.known_hosts is not None:
            options["UserKnownHostsFile"] = ssh.known_hosts
        if ssh.key is not None:
            options |= {"IdentityFile": ssh.key, "IdentitiesOnly": "yes"}
        options |= self._more
        words = ["-M", "-N", "-T", "-S", self._socket]
        words += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        words += ["-p", str(ssh.port)] if ssh.port is not None else []
        words += ["-l", ssh.user] if ssh.user is not None else []
        words += ["-J", ssh.jump] if ssh.jump is not None else []
        return [*words, ssh.host]

    def _answers(self) -> bool:
        output = self._master.stdout
        if output is None:
            return False
        readable, _, _ = select.select([output], [], [], self._ready_s)
        return bool(readable) and output.readline().strip() == b"ready"

    def _refused(self, told: str) -> HostError:
        lines = [line.strip() for line in told.splitlines() if line.strip("@ \r\n")]
        found = next((fix for part, fix in _REMEDIES if part.lower() in told.lower()), None)
        where = self.ssh.host
        last = lines[-1].removeprefix("ssh: ") if lines else f"no answer within {self._ready_s:g} s"
        error = HostError(f"{self.name}: {where} cannot be reached by SSH: {last}")
        if found is not None:
            error.add_note(found)
        return error

    def __enter__(self) -> Self:
        """Return the connection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close it; commands that still run end here, and what is held there ends."""
        if self._master.poll() is None:
            self._master.terminate()
            try:
                self._master.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._master.kill()
                self._master.wait()
        if self._master.stdout:
            self._master.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def alive(self) -> bool:
        """Whether it is there, as far as is known."""
        return self._master.poll() is None

    def check(self) -> None:
        """Make sure that it is there.

        Raises:
            RunError: it is lost.

        """
        # The clients of one that is lost may have ended a moment before it.
        with suppress(subprocess.TimeoutExpired):
            self._master.wait(_LOST_S)
        if not self.alive:
            raise RunError(f"{self.name}: the connection to {self.ssh.host} was lost")

    def words(self, *command: str) -> list[str]:
        """Return what to start here for a command there.

        It is one of the login user. The word :data:`SERVER` becomes the number of the process that
        serves this connection.
        """
        remote = shlex.join(["exec", "sh", "-c", _SCRIPT, "sh", *command])
        return [
            *("setpriv", "--pdeathsig", "KILL", "ssh", "-T", "-S", self._socket),
            # Without its socket it would make another connection.
            *("-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes"),
            *("-o", "LogLevel=ERROR", self.ssh.host, remote),
        ]

    def call(
        self, *command: str, given: str | None = None, within_s: float = CALL_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there to its end.

        Raises:
            RunError: the connection is lost, or the command takes longer than ``within_s``.

        """
        try:
            words = self.words(*command)
            ended = local_host.run(words, given=given or "", within_s=within_s, apart=True)
        except subprocess.TimeoutExpired as error:
            message = f"{self.name}: {shlex.join(command)}: no end within {within_s:g} s"
            raise RunError(message) from error
        if ended.returncode == OF_SSH:
            self.check()
        return ended

    def open(
        self, *command: str, output: int | IO[str], errors: int | IO[str]
    ) -> subprocess.Popen[str]:
        """Start a command there."""
        return local_host.start(self.words(*command), output=output, errors=errors)

    def forward(self, there: str, here: str) -> None:
        """Have a unix socket there lead to one here, until :meth:`unforward`.

        Raises:
            HostError: sshd there refuses.

        """
        self._forwarding("forward", there, here)

    def unforward(self, there: str, here: str) -> None:
        """End a :meth:`forward`.

        Raises:
            HostError: the socket is not forwarded.

        """
        self._forwarding("cancel", there, here)

    def _forwarding(self, what: str, there: str, here: str) -> None:
        # Without the user's configuration, whose forwards would be asked for as well.
        words = ("-F", "none", "-S", self._socket, "-O", what, "-R", f"{there}:{here}")
        ended = local_host.run(["ssh", *words, self.ssh.host], within_s=CALL_S)
        if ended.returncode != 0:
            told = (ended.stderr.strip().splitlines() or ["no answer"])[-1]
            error = HostError(f"{self.name}: no socket can be forwarded: {told}")
            error.add_note("allow it there: AllowStreamLocalForwarding in sshd_config")
            raise error

    def send(self, data: bytes, *command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command there that reads these bytes.

        Raises:
            RunError: the connection is lost.

        """
        return self._ran(command, input=data, stdout=subprocess.PIPE)

    def fetch(self, file: IO[bytes], *command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command there, and write what it prints to a file here.

        Raises:
            RunError: the connection is lost; the file has what came before.

        """
        return self._ran(command, stdin=subprocess.DEVNULL, stdout=file)

    def _ran(self, command: tuple[str, ...], **streams: Any) -> subprocess.CompletedProcess[bytes]:
        ended: subprocess.CompletedProcess[bytes] = subprocess.run(
            self.words(*command),
            **streams,
            stderr=subprocess.PIPE,
            check=False,
            env=local_host.environment(),
            start_new_session=True,
        )
        if ended.returncode == OF_SSH:
            self.check()
        return ended
