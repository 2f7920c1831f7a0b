"""A node whose programs are in a container."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from importlib import resources
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.container.group import ControlGroup
from tailtrim.laboratory.nodes.holder import Holder
from tailtrim.laboratory.nodes.node import Node
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from subprocess import CompletedProcess

    from tailtrim.laboratory.nodes.container.root import RootFiles
    from tailtrim.laboratory.nodes.container.settings import ContainerSettings
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.node import Clocks, Frames, Process, Program

#: Tools that make containers, beside those that make nodes.
MOUNT = Tool("mount", "mount")
TOOLS = (MOUNT, Tool("realpath", "coreutils"))

_FIND = 'for path; do [ ! -e "$path" ] && [ ! -L "$path" ] || { echo "$path"; exit; }; done; exit 1'


class Container(Node):
    """A node's network, with files of another system and a control group, while a context lasts.

    Commands run with the files of the container; ports, files of the run and clocks are the node's.
    The mounts are in a mount namespace that a process holds, so that they end with this process.
    Nothing keeps a program in: it is root, sees all processes and may leave.
    """

    def __init__(self, outside: Node, root: RootFiles, settings: ContainerSettings) -> None:
        """Make it.

        Args:
            outside: the node that it is on.
            root: its files.
            settings: what the plan says of it.

        Raises:
            HostError: the node cannot have it.

        """
        super().__init__(outside.role, outside.facts, cpus=outside.cpus, spared=outside.spared)
        self._outside, self.host_name = outside, outside.host_name
        self.logs = outside.logs
        require(outside)
        with ExitStack() as stack:
            self._group = stack.enter_context(ControlGroup(outside, settings.limits))
            self._there = outside.run("pwd").strip()
            # One of the others may be below the first.
            shared = [("rw", outside.path())]
            shared += [("ro", path) for path in (outside.agent, *settings.mounts)]
            self._holder = self._held(root.path, shared)
            stack.callback(self._holder.end)
            self._stack = stack.pop_all()
        #: Its record: files, limits, and the version of cgroups of each controller.
        self.record: dict[str, Any] = {
            "root": root.record,
            "limits": settings.limits,
            "mounts": settings.mounts,
            "cgroup_versions": self._group.versions,
        }

    def _held(self, root: str, shared: Sequence[tuple[str, str]]) -> Holder:
        """Start a process that holds the mounts, and wait until they are there."""
        script = resources.files(__package__).joinpath("mounts.sh").read_text("utf-8")
        words = ("sh", "-c", script, "sh", root, *(word for pair in shared for word in pair))
        return Holder(
            partial(self._outside.open, "unshare", "--mount", "--", *words),
            f"{self.role}: container",
            grace_s=0,
        )

    def __exit__(self, *_: object) -> None:
        """End it, and remove its control group."""
        self._stack.close()

    @property
    def outside(self) -> Node:
        """The node that it is on."""
        return self._outside

    @property
    def _root(self) -> str:
        return f"/proc/{self._holder.process.pid}/cwd"

    @property
    def _entering(self) -> tuple[str, ...]:
        """Words before a command that is to have the container's files."""
        mounts = f"--mount=/proc/{self._holder.process.pid}/ns/mnt"
        place = (f"--root={self._root}", f"--wd={self._root}{self._there}")
        return ("nsenter", mounts, *place, "--")

    @property
    def agent(self) -> str:
        """The path of the agent, which is the node's."""
        return self._outside.agent

    def check(self) -> None:
        """Make sure that the node is there."""
        self._outside.check()

    def exists(self, path: str) -> bool:
        """Return whether it has a file."""
        return self._first(path) is not None

    def find(self, tool: Tool) -> str | None:
        """Return the path of a tool; ``None`` where the container has none."""
        folders = local_host.environment()["PATH"].split(":")
        places = [str(PurePosixPath(folder) / tool.program) for folder in folders]
        return self._first(*places, *tool.places)

    def _first(self, *paths: str) -> str | None:
        """Return the first of some files that is there; the container needs no shell for that."""
        whole = [str(PurePosixPath(self._there) / path) for path in paths]
        known = [f"{self._root}{path}" for path in whole]
        found = self._outside.call("sh", "-c", _FIND, "sh", *known).stdout.strip()
        return found.removeprefix(self._root) or None

    def require(self, *tools: Tool) -> None:
        """Make sure that tools are there."""
        try:
            super().require(*tools)
        except HostError as error:
            error.add_note("dut.container.packages of the plan names packages of the container")
            raise

    def set(self, name: str, value: str) -> None:
        """Set a sysctl of the node's network."""
        self._outside.set(name, value)

    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Run a command in here to its end."""
        return self._outside.call(*self._group.joining, *self._entering, *command, given=given)

    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> Process:
        """Start a command in here."""
        return self._outside.open(
            *(*self._group.joining, *self._entering, *command),
            output=output,
            errors=errors,
            environment=environment,
            tidies_up=tidies_up,
        )

    def start(
        self,
        *command: str,
        log: str,
        environment: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> Program:
        """Start a program in here."""
        return self._outside.start(
            *(*self._entering, *command),
            log=log,
            environment=environment,
            around=(*self._group.joining, *around),
        )

    def path(self, name: str = "") -> str:
        """Return where a file of the run is, in here and on the node."""
        return self._outside.path(name)

    def put(self, name: str, text: str) -> str:
        """Write a file of the run."""
        return self._outside.put(name, text)

    def get(self, name: str) -> Path | None:
        """Return a file of the run."""
        return self._outside.get(name)

    def clocks(self) -> Clocks:
        """Read the clocks, which are the node's."""
        return self._outside.clocks()

    def frames(self, port: str) -> Frames:
        """Open a port of the node for whole frames."""
        return self._outside.frames(port)

    def attach_xdp(self, port: str, program: bytes) -> AbstractContextManager[None]:
        """Attach an XDP program to a port of the node."""
        return self._outside.attach_xdp(port, program)

    def counted(self) -> dict[str, int]:
        """Return what its control group has counted since it was made."""
        return self._group.counted()


def require(on: Host) -> None:
    """Make sure that a host can have containers, as far as that shows beforehand.

    Raises:
        HostError: it lacks something.

    """
    if not on.facts.root:
        raise HostError("a container needs root, not only a user namespace")
    on.require(*TOOLS)
