"""A node: a network namespace, and what runs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Program, and the Debian package that it is in.
_NEEDED = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
}
_START_S = 5.0
# Even the kernel ends what runs on its own when this process is gone.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Node:
    """A network namespace, for as long as the context lasts."""

    def __init__(self, role: str) -> None:
        """Make the namespace of a role: loadgen, timestamper or dut."""
        self.role = role
        check(_NEEDED)
        # It ends with its standard input, and that with this process, however early it dies: before
        # setpriv has done its work, nothing else would tell.
        self._holder = subprocess.Popen(
            [*_WITH_US, "unshare", "--net", "--", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._holder.pid
        ours = Path("/proc/self/ns/net").readlink()
        until_s = time.monotonic() + _START_S
        while self._namespace() in {ours, None}:
            if self._holder.poll() is not None or time.monotonic() > until_s:
                self._holder.kill()
                problem = self._holder.communicate()[1].strip()
                raise HostError(f"no network namespace for the {role}: {problem}")
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
            [*self.prefix, *command], input=given, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            problem = (ended.stderr or ended.stdout).strip().splitlines()
            told = problem[0] if problem else f"ended with {ended.returncode}"
            raise HostError(f"{self.role}: {' '.join(command)}: {told}")
        return ended.stdout

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
    # Where administrators' programs are, which are not on every user's PATH.
    places = os.environ.get("PATH", "").split(os.pathsep)
    places += [place for place in ("/usr/sbin", "/sbin") if place not in places]
    os.environ["PATH"] = os.pathsep.join(places)
    for program, package in programs.items():
        if shutil.which(program) is None:
            raise HostError(f"{program} is not installed, expected Debian package {package}")


def link(one: Node, name: str, other: Node, peer: str, macs: Sequence[str]) -> None:
    """Lay a fibre between two nodes."""
    one.run(
        *("ip", "link", "add", name, "address", macs[0], "type", "veth"),
        *("peer", "name", peer, "address", macs[1], "netns", str(other.pid)),
    )
