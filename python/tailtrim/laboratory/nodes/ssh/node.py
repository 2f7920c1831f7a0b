"""A node of a run that is reached by SSH: a network namespace there, with the node's ports in it.

Like the nodes of one machine, it is gone with all that was set up in it: bridges, addresses, rules,
settings of its network. Its ports go back to where they came from, and are as they were; also when
the connection is lost, or this process is killed. If even what holds them there is killed, the
kernel brings ports of hardware back.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes.holder import Holder, end, errors_file
from tailtrim.laboratory.nodes.namespace import making
from tailtrim.laboratory.nodes.node import Clocks, Node
from tailtrim.laboratory.nodes.ssh.fetching import MARK, fetched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.ssh.session import SshSession

_READY_S, _END_S = 15.0, 15.0
_START_S, _LOOK_S, _KILLED_S = 10.0, 0.02, 2.0
#: For work on captures. A host that is lost is noticed before.
_DAY_S = 86_400.0


class SshNode(Node):
    """A network namespace on a host that is reached by SSH, for as long as the context lasts.

    All that it does raises RunError where the connection is lost.

    Args:
        role: what it is for, such as loadgen, timestamper or dut.
        session: with the host.
        ports: names of the interfaces that come into it; as ``old=new`` where one has another
            name there.
        folder: where files of the run go here.
        cpus: those that an experiment may use for it.
        spared: those for what only waits.

    Raises:
        HostError: the host cannot.
        RunError: the connection is lost.

    """

    def __init__(  # noqa: PLR0913 - each is named
        self,
        role: str,
        session: SshSession,
        ports: Sequence[str],
        folder: Path,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> None:
        """Make the namespace, and bring the ports into it."""
        super().__init__(role, session.facts, cpus=cpus, spared=spared, folder=folder)
        self._session = session
        self.host_name = session.role
        session.check()
        made = session.call("mktemp", "-d", f"{session.folder}/{role}-XXXXXX")
        if made.returncode != 0:
            raise HostError(f"{role}: {session.role}: {made.stderr.strip()}")
        self._there = made.stdout.strip()
        words = session.kept(self._making(ports), session.new_pid_file())
        what = f"{role}: no network namespace on {session.role}"
        start = partial(session.connection.open, *words)
        try:
            # A shell there may greet first.
            self._holder = Holder(start, what, grace_s=_END_S, ready=str.isdecimal)
        except HostError:
            session.check()
            raise
        self._pid = int(self._holder.line)

    def _making(self, ports: Sequence[str]) -> tuple[str, ...]:
        """Return a command that holds the namespace, as :func:`making` does."""
        return making(ports)

    def __exit__(self, *_: object) -> None:
        """Give the namespace up; its ports go back to where they were."""
        self._holder.end()
        with suppress(RunError):
            self._session.call("rm", "-rf", self._there)

    @property
    def lost(self) -> bool:
        """Whether the connection is lost, as far as is known."""
        return self._session.lost

    def check(self) -> None:
        """Make sure that the node can be reached."""
        self._session.check()

    @property
    def agent(self) -> str:
        """The path of the agent on the node."""
        return self._session.agent

    def _within(self, command: Sequence[str]) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._pid}/ns/net", "--", *command)

    def call(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in here to its end."""
        return self._session.call(*self._within(command), given=given)

    def work(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in here that takes as long as its files are."""
        return self._session.call(*self._within(command), within_s=_DAY_S)

    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> RemoteProcess:
        """Start a command in here."""
        session, pid_file = self._session, self._session.new_pid_file()
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        words = self._within((*("env", *variables), *command) if variables else command)
        there = session.kept(words, pid_file) if tidies_up else session.held(words, pid_file)
        client = session.connection.open(*there, output=output, errors=errors)
        return RemoteProcess(session, client, pid_file)

    def path(self, name: str = "") -> str:
        """Return where a file of the run is on the node."""
        return f"{self._there}/{name}"

    def put(self, name: str, text: str) -> str:
        """Write a file of the run on the node.

        Raises:
            RunError: it cannot be written, or the connection is lost.

        """
        place = self.path(name)
        ended = self._session.call("tee", place, given=text)
        if ended.returncode != 0:
            raise RunError(f"{self.role}: {ended.stderr.strip()}")
        return place

    def get(self, name: str) -> Path | None:
        """Fetch a file of the run, compressed on the way.

        Raises:
            RunError: it does not arrive whole, or the node cannot be reached any more.

        """
        target = self._folder / name
        if fetched(self._session, self.path(name), self.path(MARK), target):
            return target
        # The output of programs is here already.
        return target if target.exists() else None

    def clocks(self) -> Clocks:
        """Read the clocks."""
        ended = self._session.call(self.agent, "node", "clocks", given="\n")
        try:
            read = json.loads(ended.stdout)
            return read["realtime_ns"] / 1e9, read["monotonic_ns"] / 1e9
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{self.role}: does not tell its clocks: {ended.stderr}") from error

    def frames(self, port: str) -> RemoteFrames:
        """Open a port for whole frames."""
        return RemoteFrames(self, port)

    @contextmanager
    def attach_xdp(self, port: str, program: bytes) -> Iterator[None]:
        """Refuse: programs are loaded by this process, which is elsewhere."""
        del program
        raise HostError(f"{self.role}: {port}: XDP programs cannot be attached on a node by SSH")
        yield


class RemoteFrames:
    """A port of a node by SSH, of which the agent passes whole frames."""

    def __init__(self, node: SshNode, port: str) -> None:
        """Have the agent open it."""
        self._told, self._port = f"{node.role}: {port}", port
        self._errors = errors_file()
        self._process = node.open(
            *(node.agent, "node", "frames", port), output=subprocess.PIPE, errors=self._errors
        )
        self._frames: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            opened = self.receive(_READY_S)
        except RunError:
            self.__exit__()
            raise
        if opened is None:
            self.__exit__()
            raise RunError(f"{self._told}: not opened within {_READY_S:g} s")

    def _read(self) -> None:
        # Closed when the port is.
        with suppress(ValueError):
            for line in self._process.stdout or ():
                with suppress(ValueError):
                    self._frames.put(bytes.fromhex(line))
        self._frames.put(None)

    def __enter__(self) -> Self:
        """Return the frames themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the port."""
        end(self._process, _END_S)
        self._reader.join()
        self._errors.close()

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        try:
            if self._process.stdin:
                self._process.stdin.write(frame.hex() + "\n")
                self._process.stdin.flush()
        except OSError:
            raise self._gone() from None

    def receive(self, within_s: float) -> bytes | None:
        """Return the next frame, if one comes in time."""
        try:
            frame = self._frames.get(timeout=max(within_s, 0))
        except queue.Empty:
            return None
        if frame is None:
            raise self._gone()
        return frame

    def _gone(self) -> RunError:
        self._process.wait(_END_S)
        self._errors.seek(0)
        told = self._errors.read().strip().removeprefix("error: ").splitlines()
        problem = told[0].removeprefix(f"{self._port}: ") if told else "it is gone"
        return RunError(f"{self._told}: {problem}")


class RemoteProcess:
    """A process on a node: the client of SSH stands for it here.

    Args:
        session: with the node.
        client: the client.
        pid_file: where the node has its number.

    """

    def __init__(self, session: SshSession, client: subprocess.Popen[str], pid_file: str) -> None:
        """Take the client that was started."""
        self._session, self._client, self._pid_file = session, client, pid_file
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Its number on the node.

        Raises:
            RunError: it was not started.

        """
        until_s = time.monotonic() + _START_S
        while self._pid is None:
            ended = self._session.call("cat", self._pid_file)
            if ended.stdout.strip().isdecimal():
                self._pid = int(ended.stdout)
            elif self._client.poll() is not None or time.monotonic() > until_s:
                raise RunError(f"{self._session.role}: a program was not started")
            else:
                time.sleep(_LOOK_S)
        return self._pid

    @property
    def stdin(self) -> IO[str] | None:
        """Its standard input."""
        return self._client.stdin

    @property
    def stdout(self) -> IO[str] | None:
        """Its standard output, if it was asked for."""
        return self._client.stdout

    def poll(self) -> int | None:
        """Return its exit code; ``None`` while it runs."""
        return self._client.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code."""
        return self._client.wait(timeout)

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            name = signal.Signals(sig).name.removeprefix("SIG")
            self._session.call("kill", "-s", name, str(self.pid))

    def kill(self) -> None:
        """End it at once; where the connection is lost, the node does."""
        with suppress(RunError):
            self.send_signal(signal.SIGKILL)
            with suppress(TimeoutError):
                self._until_end()
        self._client.kill()

    def _until_end(self) -> None:
        until_s = time.monotonic() + _KILLED_S
        while self._client.poll() is None and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
