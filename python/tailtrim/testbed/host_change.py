"""Changes that reach beyond a namespace: made for a run, and taken back whatever happens.

What a plan leaves ``as-is`` is not looked at.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.testbed.node import check, environment

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.plan import Dut
    from tailtrim.testbed.node import Node

#: Where Linux shows, and takes, how it lets itself be preempted (PREEMPT_DYNAMIC).
PREEMPTION = Path("/sys/kernel/debug/sched/preempt")
_AS_IS = "as-is"


class TakenBack:
    """A command that runs when the context is left, or when this process ends, whatever ends it.

    It waits for the end of its standard input, which this process holds.
    """

    def __init__(self, *command: str) -> None:
        """Have a command wait."""
        self._process = subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; exec "$@"', "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            # Ctrl-C is for this process, which ends it last.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Run the command and wait for it."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def coalescing(node: Node, port: str, dut: Dut, _: ExitStack) -> None:
    """Set for how long a port gathers packets before it interrupts; it goes with the port.

    Raises:
        HostError: its driver does not gather any.

    """
    if dut.coalesce_us != _AS_IS:
        node.run("ethtool", "--coalesce", port, "rx-usecs", str(dut.coalesce_us))


def tuned_profile(_: Node, __: str, dut: Dut, stack: ExitStack) -> None:
    """Have tuned use another profile on this host.

    Raises:
        HostError: tuned is not installed or does not run, or does not know the profile.

    """
    if dut.tuned == _AS_IS:
        return
    check({"tuned-adm": "Debian package tuned"})
    told = _tuned("active")
    found = re.search(r"Current active profile: (\S+)", told)
    before = ("profile", found.group(1)) if found else ("off",)
    stack.enter_context(TakenBack("tuned-adm", *before))
    _tuned("profile", dut.tuned)


def _tuned(*words: str) -> str:
    ended = subprocess.run(
        ["tuned-adm", *words], capture_output=True, text=True, check=False, env=environment()
    )
    told = (ended.stdout + ended.stderr).strip()
    # Without its daemon it says so and ends as if all was well.
    if ended.returncode != 0 or "Is TuneD daemon running" in told:
        last = told.splitlines()[-1] if told else "failed"
        raise HostError(f"tuned-adm {' '.join(words)}: {last}")
    return told


def preemption(_: Node, __: str, dut: Dut, stack: ExitStack) -> None:
    """Have this host's kernel be preempted otherwise.

    Raises:
        HostError: it cannot change that while it runs, or does not let this process.

    """
    if dut.preemption == _AS_IS:
        return
    try:
        # The one in use is in brackets: none voluntary (full) lazy.
        found = re.search(r"\((\w+)\)", PREEMPTION.read_text(encoding="ascii"))
        if found is None:
            raise HostError(f"{PREEMPTION}: does not say which preemption is in use")
        stack.enter_context(
            TakenBack("sh", "-c", 'echo "$1" > "$2"', "sh", found.group(1), str(PREEMPTION))
        )
        PREEMPTION.write_text(dut.preemption, encoding="ascii")
    except OSError as error:
        raise HostError(f"{PREEMPTION}: {error.strerror}") from error
