"""A node of this host, with its own network, files and processes, as one of a testbed has them.

Its network is a namespace, its files are this host's with changes beside them, in memory. A
process holds both, and ends with this process, whatever ends that: the kernel then removes all of
the node.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tailtrim.errors import HostError, RunError
from tailtrim.nodes import agent, wiring
from tailtrim.nodes.namespace import Namespace
from tailtrim.nodes.node import errors_file
from tailtrim.nodes.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What makes nodes beside what makes namespaces.
TOOLS = (
    Tool("mount", "mount"),
    Tool("umount", "mount"),
    Tool("pivot_root", "util-linux"),
    Tool("awk", "mawk"),
    Tool("tar", "tar"),
    Tool("setsid", "util-linux"),
)
#: Where a node has its tools and the socket of the controller.
SHARED = "/run/tailtrim"
#: Where commands begin.
HOME = "/root"
_PATH = f"{SHARED}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Root of a node may not change what this host has once: its modules, its clock, its devices.
_WITHOUT = "--bounding-set=-sys_module,-sys_time,-sys_rawio,-mknod"
_END_S = 5.0


class PosNode:
    """A node, from one reset to the next.

    The thread that makes it has to stay: the kernel ends it with that thread.
    """

    def __init__(self, name: str, shared: Path) -> None:
        """Boot it.

        Args:
            name: its name.
            shared: the folder here with its tools and the controller's socket.

        Raises:
            HostError: this host cannot.

        """
        self.name = name
        self.network = Namespace(name)
        try:
            self.network.require(*TOOLS)
            wiring.without_ipv6(self.network)
            self._holder, self._pid = self._held(shared)
        except BaseException:
            self.network.__exit__()
            raise

    def _held(self, shared: Path) -> tuple[subprocess.Popen[str], int]:
        # As a file: among the processes of the node, its text would match what scripts look for.
        script = shared / "node.sh"
        script.write_text(resources.files(__package__).joinpath("node.sh").read_text("utf-8"))
        wanted = (sys.base_prefix, str(Path(agent.program()).resolve()))
        with errors_file() as errors:
            process = self.network.open(
                *("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--"),
                *("sh", str(script), self.name, str(shared), *wanted),
                output=subprocess.PIPE,
                errors=errors,
            )
            if not (process.stdout and process.stdout.readline()):
                process.kill()
                process.wait()
                errors.seek(0)
                told = errors.read().strip().splitlines()
                raise HostError(f"{self.name}: no node: {told[0] if told else 'no answer'}")
        return process, _child(process.pid)

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._holder.poll() is None

    def end(self) -> None:
        """Remove it with everything that runs on it."""
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream:
                with suppress(OSError):
                    stream.close()
        self.network.__exit__()

    def entering(self, folder: str = HOME) -> list[str]:
        """Return what to start a command with so that it runs on the node.

        Raises:
            RunError: the node has died.

        """
        if not self.alive:
            raise RunError(f"{self.name}: the node has died")
        spaces = ("--mount", "--pid", "--uts", "--ipc", "--net", "--root")
        pid = str(self._pid)
        within = ["nsenter", "--target", pid, *spaces, f"--wd=/proc/{pid}/root{folder}", "--"]
        # Its own session: what ends a command ends what it started.
        return [*self.network.prefix, *within, "setsid", "setpriv", _WITHOUT, "--"]

    async def start(
        self,
        command: Sequence[str],
        output: BinaryIO,
        errors: BinaryIO,
        *,
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> OnNode:
        """Start a command on the node, with the environment of a fresh login of root.

        Raises:
            RunError: the node has died.

        """
        process = await asyncio.create_subprocess_exec(
            *self.entering(folder),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=surroundings() | dict(environment or {}),
            start_new_session=True,
        )
        return OnNode(self, process)

    def call(self, *command: str, given: bytes = b"", folder: str = HOME) -> bytes:
        """Run a command on the node to its end and return its output.

        Raises:
            RunError: it failed.

        """
        ended = subprocess.run(
            [*self.entering(folder), *command],
            input=given,
            capture_output=True,
            check=False,
            env=surroundings(),
        )
        if ended.returncode != 0:
            told = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            raise RunError(told[0] if told else f"{command[0]}: ended with {ended.returncode}")
        return ended.stdout

    def put(self, source: Path, target: str) -> None:
        """Copy a file, or a folder with all that it holds, to the node.

        ``target`` is a folder of the node if it ends with a slash or is one, otherwise the new
        name.

        Raises:
            RunError: it cannot be read or written.

        """
        into = target.endswith("/") or self._is("-d", target)
        folder, name = (target, source.name) if into else os.path.split(target)
        archive = io.BytesIO()
        try:
            with tarfile.open(fileobj=archive, mode="w") as files:
                files.add(source, arcname=name)
        except OSError as error:
            raise RunError(f"{source}: {error.strerror}") from error
        unpack = 'mkdir -p "$1" && tar --extract --no-same-owner --file=- --directory="$1"'
        self.call("sh", "-c", unpack, "sh", folder or HOME, given=archive.getvalue())

    def get(self, path: str, target: Path, *, folder: str = HOME) -> None:
        """Copy a file, or a folder with all that it holds, from the node to a new place here.

        Raises:
            RunError: there is none, or it cannot be written here.

        """
        way, name = os.path.split(str(Path(folder) / path).rstrip("/"))
        draft = target.with_name(f".{target.name}.draft")
        pack = ("tar", "--create", "--file=-", "--", name)
        try:
            draft.mkdir(parents=True)
            with (
                subprocess.Popen(
                    [*self.entering(way or "/"), *pack],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    env=surroundings(),
                ) as packing,
                tarfile.open(fileobj=packing.stdout, mode="r|") as files,
            ):
                files.extractall(draft, filter="data")
            (draft / name).rename(target)
            draft.rmdir()
        except (OSError, tarfile.TarError) as error:
            raise RunError(f"{target}: cannot be written: {error}") from error

    def is_folder(self, path: str, *, folder: str = HOME) -> bool:
        """Whether the node has a folder of this name."""
        return self._is("-d", path, folder=folder)

    def has(self, path: str, *, folder: str = HOME) -> bool:
        """Whether the node has a file of this name."""
        return self._is("-e", path, folder=folder)

    def _is(self, what: str, path: str, *, folder: str = HOME) -> bool:
        try:
            self.call("test", what, path, folder=folder)
        except RunError:
            return False
        return True


class OnNode:
    """A command that runs on a node."""

    def __init__(self, node: PosNode, process: asyncio.subprocess.Process) -> None:
        """Take the process that waits for it here."""
        self._node, self._process = node, process

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """End it and what it started: by SIGTERM, and after 5 s by SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.running:
                return
            with suppress(ProcessLookupError, RunError):
                # Its session began with it: the leader is what nsenter started.
                os.killpg(_child(self._process.pid), number)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _END_S)
        with suppress(ProcessLookupError):
            self._process.kill()


def _child(pid: int) -> int:
    """Return the process that a process has started."""
    until_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        except OSError:
            break
        if children:
            return int(children[0])
        time.sleep(0.001)
    raise RunError(f"process {pid} ended before it began")


def surroundings() -> dict[str, str]:
    """Return the environment of commands on a node: nothing of this process."""
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LOGNAME": "root",
        "PATH": _PATH,
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "USER": "root",
    }
