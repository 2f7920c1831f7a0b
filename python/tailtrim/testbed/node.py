"""A node: a network namespace, and what runs in it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_NEWNET = 0x40000000  # CLONE_NEWNET of <sched.h>

#: Program, and what it is in.
_NEEDED = {
    "ip": "Debian package iproute2",
    "tc": "Debian package iproute2",
    "ethtool": "Debian package ethtool",
    "unshare": "Debian package util-linux",
    "nsenter": "Debian package util-linux",
    "setpriv": "Debian package util-linux",
    "taskset": "Debian package util-linux",
}
_START_S = 5.0
# The kernel ends what still runs when this process is gone.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def environment() -> dict[str, str]:
    """Return the environment for programs: users without root have no /usr/sbin on their PATH."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [folder for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin") if folder not in path]
    return os.environ | {"PATH": os.pathsep.join(path)}


class Node:
    """A network namespace, for as long as the context lasts.

    A process holds it, and ends when its standard input does: with this process, whatever ends it.
    The kernel does the same when the thread ends that made the node, so that thread has to stay.
    """

    def __init__(self, role: str) -> None:
        """Make the namespace of a role: loadgen, timestamper or dut.

        Raises:
            HostError: this host cannot.

        """
        self.role = role
        check(_NEEDED)
        self._holder = subprocess.Popen(
            [*_WITH_US, "unshare", "--net", "--", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            # Ctrl-C is for this process, which ends the node last.
            start_new_session=True,
        )
        self.pid = self._holder.pid
        ours = Path("/proc/self/ns/net").readlink()
        until_s = time.monotonic() + _START_S
        while self._namespace() in {ours, None}:
            if self._holder.poll() is not None or time.monotonic() > until_s:
                self._holder.kill()
                problem = self._holder.communicate()[1].strip()
                raise HostError(f"no network namespace for the {role}: {problem or 'no answer'}")
            time.sleep(0.001)

    def _namespace(self) -> Path | None:
        try:
            return Path(self.path).readlink()
        except OSError:
            return None

    @property
    def path(self) -> str:
        """The namespace as a file."""
        return f"/proc/{self.pid}/ns/net"

    def __enter__(self) -> Self:
        """Return the node itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the namespace up; the kernel removes it with everything in it."""
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stderr):
            if stream:
                stream.close()

    @property
    def prefix(self) -> list[str]:
        """What to start a command with so that it runs in here, and ends with this process."""
        return [*_WITH_US, "nsenter", f"--net={self.path}", "--"]

    def run(self, *command: str, given: str | None = None) -> str:
        """Run a command in here and return its output.

        Raises:
            HostError: it failed.

        """
        ended = subprocess.run(
            [*self.prefix, *command],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        if ended.returncode != 0:
            problem = (ended.stderr or ended.stdout).strip().splitlines()
            told = problem[0] if problem else f"ended with {ended.returncode}"
            raise HostError(f"{self.role}: {' '.join(command)}: {told}")
        return ended.stdout

    def inside(self, action: Callable[[], T]) -> T:
        """Call something in here: in a thread that goes there, and that ends afterwards.

        Raises:
            OSError: from the action, or when the namespace is gone.

        """
        results: list[T] = []
        problems: list[BaseException] = []

        def go() -> None:
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                with Path(self.path).open("rb") as namespace:
                    if libc.setns(namespace.fileno(), _NEWNET) != 0:
                        number = ctypes.get_errno()
                        raise OSError(number, os.strerror(number))  # noqa: TRY301 - told below
                results.append(action())
            except BaseException as problem:  # noqa: BLE001 - raised again where it belongs
                problems.append(problem)

        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        if problems:
            raise problems[0]
        return results[0]

    def set(self, name: str, value: str) -> None:
        """Set a sysctl of this namespace; one that this kernel lacks is left alone."""
        path = Path("/proc/sys") / name
        # /proc/sys/net shows the namespace of who opens it.
        self.run("sh", "-c", f"[ ! -e {path} ] || echo {value} > {path}")


def check(programs: dict[str, str]) -> None:
    """Make sure that programs are there.

    Raises:
        HostError: one is not; says which package has it.

    """
    for program, package in programs.items():
        if which(program) is None:
            raise HostError(f"{program} is not installed, expected {package}")


def allowed(cpus: Sequence[int]) -> tuple[str, ...]:
    """Return what to start a command with so that it runs on these CPUs only."""
    return "taskset", "--cpu-list", ",".join(map(str, cpus))


def which(program: str) -> str | None:
    """Return the path of a program, also where only root looks for it."""
    return shutil.which(program, path=environment()["PATH"])


def link(  # noqa: PLR0913 - two ends and what lies between
    one: Node, name: str, other: Node, peer: str, *, macs: Sequence[str], mtu: int
) -> None:
    """Lay a fibre between two nodes."""
    one.run(
        *("ip", "link", "add", name, "mtu", str(mtu), "address", macs[0], "type", "veth"),
        *("peer", "name", peer, "mtu", str(mtu), "address", macs[1], "netns", str(other.pid)),
    )
