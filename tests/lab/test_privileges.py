"""What a reflector keeps of root once it answers: nothing, in any of its threads."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from peers import EVERYWHERE

if TYPE_CHECKING:
    from peers import Cable

AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
MODES = {
    "socket": EVERYWHERE,
    "busy": ("--busy-poll", *EVERYWHERE),
    "xdp": ("--mode", "xdp", "--interface", "far"),
    "af-xdp": ("--mode", "af-xdp", "--interface", "far"),
}
NOBODY = 65_534
#: Masks of capabilities in /proc/PID/status. CapBnd is left: it only bounds what a program that is
#: executed might gain, and NoNewPrivs says that none gains anything.
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")
#: Groups that a user may have who starts an agent as root.
GROUPS = "4,27,100"
#: Starts the agent with its own standard input, says which process it is, and stays.
PARENT = """
import subprocess, sys
agent = subprocess.Popen(sys.argv[1:])
print(agent.pid, flush=True)
agent.wait()
"""


def statuses(pid: int) -> list[dict[str, str]]:
    """Return the status of every thread."""
    threads = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        pairs = (line.split(":", 1) for line in (task / "status").read_text().splitlines())
        threads.append({name: value.strip() for name, value in pairs})
    return threads


def as_root_with_groups(*command: str) -> list[str]:
    return ["setpriv", "--groups", GROUPS, *command]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_of_root_is_left_in_any_thread(cable: Cable, mode: str) -> None:
    # With a thread that reads standard input, and what scheduling and memory it can get.
    words = ["reflect", "--until-eof", "--fifo", "--echo", "7", *MODES[mode]]
    with subprocess.Popen(
        cable.far.command(*as_root_with_groups(AGENT, *words)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        asker = cable.asker("10.77.0.2", 7)
        assert asker.ask(b"x") == b"x"
        threads = statuses(process.pid)
        # The end of its standard input.
        process.communicate(timeout=20)
    assert len(threads) > 1
    for thread in threads:
        ids = [str(NOBODY)] * 4
        assert (thread["Uid"].split(), thread["Gid"].split()) == (ids, ids), thread["Name"]
        assert thread["Groups"] == "", thread["Name"]
        left = {name: thread[name] for name in CAPABILITIES if int(thread[name], 16)}
        assert (left, thread["NoNewPrivs"]) == ({}, "1"), thread["Name"]
    assert process.returncode == 0


def test_root_is_kept_where_that_is_asked_for(cable: Cable) -> None:
    # The counterpart: the test above would see what is left.
    with cable.reflector(AGENT, "--echo", "7", "--user", "0") as reflector:
        threads = statuses(reflector.process.pid)
        result = reflector.stop()
    assert not result["root_given_up"]
    for thread in threads:
        assert thread["Uid"].split() == ["0"] * 4
        assert int(thread["CapEff"], 16)
        assert thread["NoNewPrivs"] == "1"


def test_a_reflector_without_root_ends_with_its_parent(cable: Cable) -> None:
    # The kernel forgets that the parent's death is to end a process when that becomes another user.
    words = ["reflect", "--until-eof", "--echo", "7"]
    with subprocess.Popen(
        cable.far.command(sys.executable, "-c", PARENT, AGENT, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        said = [parent.stdout.readline(), parent.stdout.readline()]
        pid = next(int(line) for line in said if line.strip().isdigit())
        assert any("ready" in line for line in said)
        assert statuses(pid)[0]["Uid"].split()[0] == str(NOBODY)
        parent.kill()
        # Its standard input is open still, and its end is that of its standard output.
        os.set_blocking(parent.stdout.fileno(), False)
        with select.epoll() as ends:
            ends.register(parent.stdout, select.EPOLLHUP)
            ended = ends.poll(20)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        assert ended, "it goes on"
        assert any(json.loads(line)["event"] == "result" for line in parent.stdout)
