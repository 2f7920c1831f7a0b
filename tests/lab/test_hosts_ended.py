"""Programs that die while a plan runs on hosts leave nothing there, and the plan can be resumed."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hosts import described
from laboratory import passed

if TYPE_CHECKING:
    from collections.abc import Callable

    from hosts import Hosts
    from laboratory import Lab

pytestmark = pytest.mark.faults

#: Longer than it takes to reach all hosts, or until one that hears nothing has ended all.
_GONE_S = 60.0
#: Other laboratories use the CPUs meanwhile: a run may take so long to reach a phase.
_REACHED_S = 180.0
#: Duration of a run whose device falls silent: longer than silence is borne.
_SILENT_S = 40
#: Agent that runs in each phase: its host, and the begin of its arguments.
_PHASES = {
    # Not the shell that started it, whose script has the other words as well.
    "reserved": ("dut", "--silence 10s"),
    "ready": ("dut", "forward --ingress"),
    "measuring": ("gen", "generate --interface"),
}


_FAST = ("agent", "measuring")


@pytest.mark.parametrize(
    ("victim", "phase"),
    [
        pytest.param(*case, marks=[pytest.mark.fast] if case == _FAST else [])
        for case in itertools.product(("controller", "sshd", "agent"), _PHASES)
    ],
)
def test_what_is_killed_leaves_nothing(
    lab: Lab, three_hosts: Hosts, victim: str, phase: str
) -> None:
    plan = lab.plan(
        testbed=described(three_hosts),
        dut={"preset": "forward"},
        traffic={"rate_pps": 2_000, "flows": 4, "duration_s": 5},
    )
    words = lab.command("run", str(plan), "--out", "out", "--json")
    with subprocess.Popen(
        words,
        cwd=lab.folder,
        env=lab.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        name, part = _PHASES[phase]
        host = three_hosts.hosts[name]
        found = _until(lambda: running.poll() is not None or host.find(part), _REACHED_S)
        assert running.poll() is None, running.communicate()[1]
        if victim == "controller":
            running.kill()
        elif victim == "sshd":
            for pid in host.serving():
                os.kill(pid, signal.SIGKILL)
        else:
            os.kill(found, signal.SIGKILL)
        _, told = running.communicate(timeout=60)
    if victim != "controller":
        # The run failed, which is told; before it began, the host was connected to again.
        assert running.returncode in ({0, 3, 4} if phase == "reserved" else {4}), told
        assert "Traceback" not in told
    _until(lambda: not any(one.left() for one in three_hosts.hosts.values()))
    for one in three_hosts.hosts.values():
        assert "ingress" not in one.run("tc", "qdisc", "show")
    _until(lambda: not lab.left())
    again = lab.run("run", str(plan), "--out", "out", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert passed(lab.result("run-000", "summary")) == 10_000


def test_a_host_that_is_reserved_is_told_with_its_owner(lab: Lab, three_hosts: Hosts) -> None:
    three_hosts.hosts["dut"].run(
        "sh",
        "-c",
        "cd /run; mkdir tailtrim-reservation; echo other of them >tailtrim-reservation/owner;"
        " touch tailtrim-reservation/alive",
    )
    plan = lab.plan(testbed=described(three_hosts))
    refused = lab.run("run", str(plan), "--out", "out")
    assert refused.returncode == 3
    assert "error: dut: reserved: other of them" in refused.stderr
    three_hosts.hosts["dut"].run("touch", "-d", "2 minutes ago", "/run/tailtrim-reservation/alive")
    taken = lab.run("run", str(plan), "--out", "out", "--resume")
    assert taken.returncode == 0, taken.stderr
    assert "warning: dut: a stale reservation was taken: other of them" in taken.stderr


# Generator and forwarder poll until the loss is noticed: on two CPUs they leave others none.
@pytest.mark.alone
def test_a_host_that_falls_silent_ends_what_runs_there(lab: Lab, three_hosts: Hosts) -> None:
    """Pull the cable of the controller: neither side hears that the other has gone."""
    plan = lab.plan(
        testbed=described(three_hosts),
        traffic={"rate_pps": 2_000, "flows": 4, "duration_s": _SILENT_S},
    )
    words = lab.command("run", str(plan), "--out", "out", "--json")
    generator, dut = three_hosts.hosts["gen"], three_hosts.hosts["dut"]
    with subprocess.Popen(
        words, cwd=lab.folder, env=lab.environment, stderr=subprocess.PIPE, text=True
    ) as running:
        _until(lambda: generator.find("generate --interface"))
        dut.run("ip", "link", "set", "control", "down")
        silent = time.monotonic()
        # 8 s of silence tell that it is lost; without that, the generator would go on to its end.
        _until(lambda: not generator.find("generate --interface"))
        assert time.monotonic() - silent < _SILENT_S - 10
        # Then it is asked once more whether it is there.
        _, told = running.communicate(timeout=60)
    assert running.returncode == 4, told
    assert "the connection" in told
    _until(lambda: not dut.left())
    dut.run("ip", "link", "set", "control", "up")
    again = lab.run("run", str(plan), "--out", "out", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert not (lab.folder / "out" / "failed").exists()


def _until(reached: Callable[[], int | bool | None], within_s: float = _GONE_S) -> int:
    end = time.monotonic() + within_s
    while not (found := reached()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
    return int(found)
