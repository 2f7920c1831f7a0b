"""A node of an experiment: commands that run there, and files that go there and come from there.

All kinds have a network, files and processes of their own: the files are those of a host, with
changes kept apart. A node is gone with all its changes when it ends, or this process does.
"""

from __future__ import annotations

import io
import os
import posixpath
import shutil
import subprocess
import tarfile
from abc import ABC, abstractmethod
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes import local_host
from tailtrim.results.drafts import settle
from tailtrim.tool import Tool
from tailtrim_pos.node_command import NodeCommand, RemoteCommand, spawn
from tailtrim_pos.programs import SHARED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.ssh.session import SshSession

#: Programs that make nodes, in addition to those that make namespaces.
TOOLS = (
    Tool("mount", "mount"),
    Tool("umount", "mount"),
    Tool("pivot_root", "util-linux"),
    Tool("awk", "mawk"),
    Tool("tar", "tar"),
    Tool("setsid", "util-linux"),
)
#: Folder in which commands begin.
HOME = "/root"
#: Name of the shell script that makes the files of a node.
SCRIPT = "node.sh"
_PATH = f"{SHARED}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: A fresh login of root.
ENVIRONMENT = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "root",
    "PATH": _PATH,
    "SHELL": "/bin/bash",
    "TERM": "dumb",
    "USER": "root",
}
# Root of a node may not change what its host has once: its modules, its clock, its devices.
_WITHOUT = "--bounding-set=-sys_module,-sys_time,-sys_rawio,-mknod"
#: Starts process 1 of a node, behind what brings it into the node's network.
UNSHARED = (
    *("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--"),
    "sh",
)
#: A node that does not do what takes milliseconds within this time hangs.
_ANSWER_S = 30.0


def script() -> str:
    """Return the script of process 1 of a node."""
    return resources.files(__package__).joinpath(SCRIPT).read_text("utf-8")


def inside(
    pid: int, command: Sequence[str], folder: str, environment: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return what starts a command on the node whose process 1 this is, on its host.

    The command has the environment of a fresh login of root, and the given variables.
    """
    every = ENVIRONMENT | dict(environment or {})
    return (
        *("nsenter", "--target", str(pid), "--mount", "--pid", "--uts", "--ipc", "--net", "--root"),
        *(f"--wd=/proc/{pid}/root{folder}", "--"),
        # Its own session: a signal that ends a command ends all that it started.
        *("setsid", "setpriv", _WITHOUT, "--", "env", "-i"),
        *(f"{name}={value}" for name, value in every.items()),
        *command,
    )


class PosNode(ABC):
    """A node, from one reset to the next."""

    name: str

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it is there."""

    @abstractmethod
    def end(self) -> None:
        """Remove it with everything that runs on it."""

    @abstractmethod
    def words(
        self,
        command: Sequence[str],
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return what to start here so that a command runs on the node.

        Raises:
            RunError: the node has died.

        """

    async def start(
        self,
        command: Sequence[str],
        output: BinaryIO,
        errors: BinaryIO,
        *,
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> NodeCommand:
        """Start a command on the node, with the environment of a fresh login of root.

        Raises:
            RunError: the node has died.

        """
        return NodeCommand(await spawn(self.words(command, folder, environment), output, errors))

    def call(
        self,
        *command: str,
        given: bytes = b"",
        folder: str = HOME,
        limit_s: float | None = _ANSWER_S,
    ) -> bytes:
        """Run a short command on the node to its end and return its output.

        Raises:
            RunError: it failed, or did not end within the limit.

        """
        try:
            ended = subprocess.run(
                self.words(command, folder),
                input=given,
                capture_output=True,
                check=False,
                env=local_host.environment(),
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired as error:
            why = f"{command[0]} did not end within {limit_s:g} s: the node hangs"
            raise RunError(f"{self.name}: {why}") from error
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
        # As long as the files take.
        self.call("sh", "-c", unpack, "sh", folder or HOME, given=archive.getvalue(), limit_s=None)

    def get(self, path: str, target: Path, *, folder: str = HOME) -> None:
        """Copy a file, or a folder with all that it holds, from the node to a new place here.

        Raises:
            RunError: there is none, or it cannot be written here.

        """
        way, name = posixpath.split(posixpath.normpath(posixpath.join(folder, path)))
        draft = target.with_name(f".{target.name}.draft")
        pack = ("tar", "--create", "--file=-", "--", name)
        try:
            draft.mkdir(parents=True)
            with (
                subprocess.Popen(
                    self.words(pack, way or "/"),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    env=local_host.environment(),
                ) as packing,
                tarfile.open(fileobj=packing.stdout, mode="r|") as files,
            ):
                unpack(files, draft)
            settle(draft / name, target)
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


class RemotePosNode(PosNode):
    """A node on another host or in a guest, by a session with it; its commands end with that."""

    #: Script of a shell that sends a signal to a command; it is given the file and the name.
    signalling: str
    _session: SshSession

    @abstractmethod
    def _inside(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        """Return what starts a command on the node, on its host."""

    def _words(self, command: tuple[str, ...], pid_file: str | None = None) -> list[str]:
        return self._session.connection.words(*self._session.held(command, pid_file))

    def words(
        self,
        command: Sequence[str],
        folder: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return what to start here so that a command runs on the node."""
        return self._words(self._inside(command, folder, environment))

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
        words = self._words(self._inside(command, folder, environment), pid_file)
        process = await spawn(words, output, errors)
        return RemoteCommand(self._session, pid_file, process, self.signalling)


def packed(folder: Path) -> bytes:
    """Return the files of a folder as an archive."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        files.add(folder, arcname=".")
    return archive.getvalue()


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files, folders and links of an archive to a folder, readable by their owner.

    ``extractall(filter="data")`` would do that, but Python 3.11 has it since 3.11.4 only, and
    Debian 12 has 3.11.2.

    Raises:
        OSError: a file cannot be written.
        tarfile.TarError: the archive is damaged, or a member leads out of the folder, or is
            neither a file, a folder nor a link.

    """
    root = folder.resolve()
    for member in archive:
        place = _inside(root, PurePosixPath(member.name), member)
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            place.mkdir(exist_ok=True)
        elif member.issym():
            _inside(root, PurePosixPath(member.name).parent / member.linkname, member)
            place.symlink_to(member.linkname)
        elif member.islnk():
            shutil.copyfile(_inside(root, PurePosixPath(member.linkname), member), place)
        elif (content := archive.extractfile(member)) is not None:
            with place.open("xb") as written:
                shutil.copyfileobj(content, written)
            place.chmod(0o600 | member.mode & 0o755)
        else:
            raise tarfile.TarError(f"{member.name}: not a file, a folder or a link")


def _inside(root: Path, name: PurePosixPath, member: tarfile.TarInfo) -> Path:
    """Return where a name is, links in its path followed."""
    try:
        place = (root / name).parent.resolve() / name.name
    except RuntimeError as error:
        raise tarfile.TarError(f"{member.name}: a link leads to itself") from error
    if name.is_absolute() or name.name == ".." or not place.resolve().is_relative_to(root):
        raise tarfile.TarError(f"{member.name}: leads out of the folder")
    return place
