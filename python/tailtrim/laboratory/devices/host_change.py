"""Changes that reach beyond a node: made for a run, and taken back whatever happens.

Settings that a plan leaves ``as-is`` are not looked at.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port

AS_IS = "as-is"
TUNED = Tool("tuned-adm", "tuned", service=True)
#: Where Linux shows, and takes, how it lets itself be preempted (PREEMPT_DYNAMIC).
PREEMPTION = "/sys/kernel/debug/sched/preempt"


class TakenBack:
    """A command that runs when the context is left, or when this process ends, whatever ends it.

    It waits for the end of its standard input, which this process holds.
    """

    def __init__(self, node: Node, *command: str) -> None:
        """Have a command wait."""
        self._process = node.open(
            *("sh", "-c", 'cat >/dev/null; exec "$@"', "sh", *command),
            output=subprocess.DEVNULL,
            errors=subprocess.DEVNULL,
            tidies_up=True,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Run the command and wait for it."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def coalescing(port: Port, gathered_us: int | str) -> None:
    """Set for how long a port gathers packets before it interrupts; it goes with the port.

    Raises:
        HostError: its driver does not gather any.

    """
    if gathered_us != AS_IS:
        port.node.run("ethtool", "--coalesce", port.name, "rx-usecs", str(gathered_us))


def tuned_profile(node: Node, profile: str, stack: ExitStack) -> None:
    """Have tuned use another profile on the node's host.

    Raises:
        HostError: tuned is not installed or does not run, or does not know the profile.

    """
    if profile == AS_IS:
        return
    node.require(TUNED)
    told = _tuned(node, "active")
    found = re.search(r"Current active profile: (\S+)", told)
    before = ("profile", found.group(1)) if found else ("off",)
    stack.enter_context(TakenBack(node, "tuned-adm", *before))
    _tuned(node, "profile", profile)


def _tuned(node: Node, *words: str) -> str:
    ended = node.call("tuned-adm", *words)
    told = (ended.stdout + ended.stderr).strip()
    # Without its daemon it says so and ends as if all was well.
    if ended.returncode != 0 or "Is TuneD daemon running" in told:
        last = told.splitlines()[-1] if told else "failed"
        raise HostError(f"tuned-adm {' '.join(words)}: {last}")
    return told


def preemption(node: Node, wanted: str, stack: ExitStack) -> None:
    """Have the kernel of the node's host be preempted otherwise.

    Raises:
        HostError: it cannot change that while it runs, or does not let this user.

    """
    if wanted == AS_IS:
        return
    # The one in use is in brackets: none voluntary (full) lazy.
    found = re.search(r"\((\w+)\)", _sh(node, 'cat "$1"'))
    if found is None:
        raise HostError(f"{PREEMPTION}: does not say which preemption is in use")
    write = 'echo "$2" > "$1"'
    stack.enter_context(TakenBack(node, "sh", "-c", write, "sh", PREEMPTION, found.group(1)))
    _sh(node, write, wanted)


def _sh(node: Node, script: str, *words: str) -> str:
    """Run a script on the file, and tell of it as of a file."""
    ended = node.call("sh", "-c", script, "sh", PREEMPTION, *words)
    if ended.returncode != 0:
        raise HostError(f"{PREEMPTION}: {ended.stderr.strip().rpartition(': ')[2]}")
    return ended.stdout
