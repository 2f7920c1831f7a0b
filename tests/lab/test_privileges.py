"""Privileges of a reflector once it answers: none, in any of its threads."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from peers import EVERYWHERE, FAR, Cable, Reflector

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.reflectors
AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
MODES = {
    "socket": EVERYWHERE,
    "busy": ("--busy-poll", *EVERYWHERE),
    "busy at an address": ("--busy-poll", "--address", FAR),
    "xdp": ("--mode", "xdp", "--interface", "far"),
    "af-xdp": ("--mode", "af-xdp", "--interface", "far"),
    "nat": ("--mode", "nat", "--interface", "far"),
}
#: Modes, and the capabilities that they need where their user is not root.
GRANTED = {
    "socket": "cap_net_bind_service,cap_net_raw",
    "xdp": "cap_net_bind_service,cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon",
    "af-xdp": "cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_ipc_lock",
}
NOBODY = 65_534
#: Masks of capabilities in /proc/PID/status that say what a thread or what it executes may do.
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")
#: Of capabilities(7).
CAP_NET_ADMIN = 1 << 12
#: Seccomp in /proc/PID/status: a filter.
FILTERED = "2"
#: Groups that a user may have who starts an agent as root.
GROUPS = "4,27,100"
#: Starts the agent with its own standard input, says which process it is, and stays.
PARENT = """
import subprocess, sys
agent = subprocess.Popen(sys.argv[1:])
print(agent.pid, flush=True)
agent.wait()
"""


def children(pid: int) -> list[int]:
    """Return the processes that the first thread of a process started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def statuses(pid: int) -> list[dict[str, str]]:
    """Return the status of every thread."""
    threads = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        pairs = (line.split(":", 1) for line in (task / "status").read_text().splitlines())
        threads.append({name: value.strip() for name, value in pairs})
    return threads


@contextmanager
def reflector(cable: Cable, *command: str) -> Iterator[Reflector]:
    """Run a command that becomes a reflector, with a pipe whose end ends it."""
    words = [*command, "--until-eof", "--fifo", "--echo", "7"]
    with subprocess.Popen(
        cable.far.command(*words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        reflector = Reflector(process)
        reflector.wait_until_ready()
        yield reflector
        # A reflector has ended its threads by the end of its standard input as well.
        reflector.end()
        assert process.returncode == 0


def has_nothing(threads: list[dict[str, str]], result: dict[str, Any]) -> None:
    """Check that no thread can do more than answer, and that the result says the same."""
    assert len(threads) > 1
    for thread in threads:
        ids = [str(NOBODY)] * 4
        assert (thread["Uid"].split(), thread["Gid"].split()) == (ids, ids), thread["Name"]
        assert thread["Groups"] == "", thread["Name"]
        left = {name: thread[name] for name in CAPABILITIES if int(thread[name], 16)}
        confined = (thread["NoNewPrivs"], thread["Seccomp"])
        assert (left, confined) == ({}, ("1", FILTERED)), thread["Name"]
    told = result["privileges"]
    none = "0" * 16
    sets = told["capabilities"]
    bounding = sets.pop("bounding")
    assert sets == dict.fromkeys(("effective", "permitted", "inheritable", "ambient"), none)
    assert {thread["CapBnd"] for thread in threads} == {bounding}
    # Where the bounding set cannot be emptied, that is told.
    assert [kept.split(":")[0] for kept in told["kept"]] == ["the bounding set"] * (
        bounding != none
    )
    assert (told["threads"], told["users"]) == (len(threads), [NOBODY])
    assert (told["no_new_privileges"], told["system_calls_filtered"]) == (True, True)


@pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=pytest.mark.fast) if mode == "xdp" else mode for mode in MODES],
)
def test_nothing_of_root_is_left_in_any_thread(cable: Cable, mode: str) -> None:
    # With a thread that reads standard input, and what scheduling and memory it can get.
    if mode == "nat" and shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    command = ("setpriv", "--groups", GROUPS, AGENT, "reflect", *MODES[mode])
    with reflector(cable, *command) as started:
        asker = cable.asker(FAR, 7)
        # So many that a regular client has a socket of its own; payloads of 8 bytes and more are
        # told apart by nftables, too.
        for number in range(100):
            assert asker.ask(b"%08d" % number) == b"%08d" % number
        threads = statuses(started.process.pid)
    has_nothing(threads, started.result)
    assert {thread["CapBnd"] for thread in threads} == {"0" * 16}
    assert started.result["root_given_up"]


def test_what_removes_the_table_keeps_one_capability(cable: Cable) -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    with reflector(cable, AGENT, "reflect", *MODES["nat"]) as started:
        (keeper,) = children(started.process.pid)
        (thread,) = statuses(keeper)
    sets = [int(thread[name], 16) for name in (*CAPABILITIES, "CapBnd")]
    assert sets == [0, CAP_NET_ADMIN, CAP_NET_ADMIN, 0, CAP_NET_ADMIN]
    assert thread["NoNewPrivs"] == "1"


def test_root_is_kept_where_that_is_asked_for_but_no_capability(cable: Cable) -> None:
    # The counterpart: the tests above would see whose threads they are.
    with cable.reflector(AGENT, "--echo", "7", "--user", "0") as started:
        threads = statuses(started.process.pid)
        result = started.stop()
    assert not result["root_given_up"]
    assert result["privileges"]["users"] == [0]
    for thread in threads:
        assert thread["Uid"].split() == ["0"] * 4
        assert not int(thread["CapEff"], 16)
        assert (thread["NoNewPrivs"], thread["Seccomp"]) == ("1", FILTERED)


@pytest.fixture
def everybodys() -> Iterator[str]:
    """Return a copy of the agent that any user may execute."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"{folder}: files have no capabilities there (mounted nosuid)")
        folder.chmod(0o755)
        yield shutil.copy(AGENT, str(folder))


def as_nobody(*command: str, ambient: str = "") -> list[str]:
    names = ",".join("+" + name.removeprefix("cap_") for name in ambient.split(",") if name)
    sets = ("--inh-caps", names, "--ambient-caps", names) if names else ()
    ids = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    return ["setpriv", *ids, *sets, *command]


@pytest.mark.parametrize("mode", GRANTED)
def test_capabilities_of_the_file_are_given_up(cable: Cable, everybodys: str, mode: str) -> None:
    set_ = subprocess.run(
        ["/usr/bin/env", "setcap", GRANTED[mode] + "+ep", everybodys],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if set_.returncode != 0:
        pytest.skip(f"files have no capabilities here: {set_.stderr.strip()}")
    with reflector(cable, *as_nobody(everybodys, "reflect", *MODES[mode])) as started:
        assert cable.asker(FAR, 7).ask(b"x") == b"x"
        threads = statuses(started.process.pid)
    has_nothing(threads, started.result)
    # Without CAP_SETPCAP the bounding set is as it was, and the result says so.
    assert int(threads[0]["CapBnd"], 16)
    assert not started.result["root_given_up"]


@pytest.mark.parametrize("mode", GRANTED)
def test_ambient_capabilities_are_given_up(cable: Cable, everybodys: str, mode: str) -> None:
    # CAP_SETPCAP is of those here: with it an ordinary user empties the bounding set, too.
    command = as_nobody(everybodys, "reflect", *MODES[mode], ambient=GRANTED[mode] + ",cap_setpcap")
    with reflector(cable, *command) as started:
        assert cable.asker(FAR, 7).ask(b"x") == b"x"
        threads = statuses(started.process.pid)
    has_nothing(threads, started.result)
    assert not int(threads[0]["CapBnd"], 16)


OTHERS = {
    "capture": ("--tap", "one=far", "--out", "captures"),
    "generate": ("--interface", "far", "--rate", "100pps", "--dst-mac", "02:00:00:00:00:01"),
    "forward": ("--ingress", "far", "--egress", "far", "--mode", "wait"),
    "trace": ("--events", "--cpus", "0", "--source", "counters", "--out", "events.jsonl.zst"),
    "noise": ("--cpus", "0", "--no-trace", "--json"),
}


@pytest.mark.parametrize("verb", OTHERS)
def test_other_commands_gain_nothing_by_what_they_execute(
    cable: Cable, tmp_path: Path, verb: str
) -> None:
    with subprocess.Popen(
        cable.far.command(AGENT, verb, "--until-eof", *OTHERS[verb]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        Reflector(process).wait_until_ready()
        threads = statuses(process.pid)
        process.communicate(timeout=20)
    assert process.returncode == 0
    for thread in threads:
        gains = (thread["NoNewPrivs"], int(thread["CapBnd"], 16), int(thread["CapAmb"], 16))
        assert gains == ("1", 0, 0), thread["Name"]


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
