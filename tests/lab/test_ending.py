"""However an experiment ends, nothing is left of it but its results."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laboratory import Lab


pytestmark = pytest.mark.faults


@contextmanager
def started(lab: Lab, *words: str, ignoring: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a command with signals at their default, whatever pytest has, or with one ignored."""
    signals = f"--ignore-signal={ignoring}" if ignoring else "--default-signal=INT,TERM,HUP"
    with subprocess.Popen(
        ["/usr/bin/env", signals, *lab.command(*words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=lab.environment,
        cwd=lab.folder,
    ) as process:
        try:
            yield process
        except BaseException:
            # A test that has failed must not wait for what may never end.
            process.kill()
            raise


def wait_until(
    true: Callable[[], object],
    process: subprocess.Popen[str] | None = None,
    *,
    within_s: float = 60,
) -> None:
    until_s = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until_s
        assert process is None or process.poll() is None
        time.sleep(0.005)


def sent(pid: int | None) -> int:
    """Return how many packets have left the generator's port."""
    if pid is None:
        return 0
    for line in Path(f"/proc/{pid}/net/dev").read_text("ascii").splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "l0":
            return int(counters.split()[9])
    return 0


# A program of the device that is on its own, apart from session and parent.
STRAY = "sh -c 'setsid sleep 1000 & exec {agent} forward --ingress {{in}} --egress {{out}}'"


@pytest.mark.parametrize("moment", ["unshare", "sleep", "capture", "generate"])
def test_killed_at_any_moment(lab: Lab, moment: str) -> None:
    dut = {"preset": "command", "command": STRAY.format(agent=lab.agent)}
    plan = lab.plan(dut=dut, repeat=2, order="random", seed=3)
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until(lambda: any(moment in line for line in lab.left()), process)
        process.kill()
    wait_until(lambda: not lab.left())
    ended = lab.run("run", str(plan), "--out", "out", "--resume", "--json")
    assert ended.returncode == 0, ended.stderr
    assert [run["run"] for run in json.loads(ended.stdout)["runs"]] == ["run-000", "run-001"]
    assert [path.name for path in (lab.folder / "out").glob(".*")] == []


@pytest.mark.fast
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_end(lab: Lab, number: signal.Signals) -> None:
    plan = lab.plan(repeat=3)
    out = lab.folder / "out"
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until((out / "run-000").exists, process)
        wait_until(lambda: any("generate" in line for line in lab.left()), process)
        process.send_signal(number)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "Traceback" not in told
    # Where others have the CPUs, the run of half a second may have ended meanwhile.
    assert re.search("interrupted: [12] of 3", told)
    # A program that was just being started ends by the death of its parent, a moment later.
    wait_until(lambda: not lab.left())
    assert list(out.glob(".run-*")) == []


def test_a_background_job_of_a_script_ends_by_sigint(lab: Lab) -> None:
    # A shell starts what is before & with SIGINT ignored.
    out, plan = lab.folder / "out", lab.plan(repeat=3)
    with started(lab, "run", str(plan), "--out", "out", ignoring="INT") as process:
        wait_until((out / "run-000").exists, process)
        wait_until(lambda: any("generate" in line for line in lab.left()), process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    # Where others have the CPUs, the run of half a second may have ended meanwhile.
    assert re.search("interrupted: [12] of 3", told)
    wait_until(lambda: not lab.left())
    assert list(out.glob(".run-*")) == []


def test_what_nohup_starts_outlives_the_terminal(lab: Lab) -> None:
    plan = lab.plan(repeat=2)
    with started(lab, "run", str(plan), "--out", "out", ignoring="HUP") as process:
        wait_until((lab.folder / "out" / "run-000").exists, process)
        process.send_signal(signal.SIGHUP)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert lab.left() == []


def test_a_selftest_that_is_told_to_end(lab: Lab) -> None:
    scratch = lab.folder / "scratch"
    scratch.mkdir()
    lab.environment["TMPDIR"] = str(scratch)
    with started(lab, "selftest", ignoring="INT") as process:
        wait_until(lambda: any("generate" in line for line in lab.left()), process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told
    wait_until(lambda: not lab.left())
    assert list(scratch.iterdir()) == []


def test_two_at_once_in_one_place(lab: Lab) -> None:
    plan = lab.plan(repeat=2)
    out = lab.folder / "out"
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until(lambda: list(out.glob(".run-*")), process)
        other = lab.run("run", str(plan), "--out", "out", "--resume")
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert other.returncode == 2
    assert other.stderr.startswith("error: out: another process")
    assert other.stderr.count("\n") == 1


def test_an_interface_that_goes_in_mid_run(lab: Lab) -> None:
    plan = lab.plan(repeat=2, traffic={"rate_pps": 5_000, "duration_s": 3})
    out = lab.folder / "out"
    with started(lab, "run", str(plan), "--out", "out") as process:
        wait_until((out / "run-000").exists, process)
        wait_until(lambda: sent(lab.find("generate")) > 1_000, process)
        enter = ["nsenter", "--target", str(lab.find("generate")), "--net", "--"]
        subprocess.run([*enter, "ip", "link", "del", "l0"], check=True)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 4, told
    assert told.count("error:") == 1, told
    assert "Traceback" not in told
    assert lab.result("run-000", "outcome")["invalid"] == []
    assert not (out / "run-001").exists()
    assert lab.left() == []


def test_no_permission(lab: Lab) -> None:
    forbidden = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    unshare = ["unshare", "--user", "--map-root-user", "--", "sh", "-c", forbidden, "sh"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this host allows no user namespaces")
    ended = subprocess.run(
        [*unshare, *lab.command("run", str(lab.plan()), "--out", "out")],
        capture_output=True,
        text=True,
        check=False,
        env=lab.environment,
        cwd=lab.folder,
        timeout=60,
    )
    assert ended.returncode == 3
    assert ended.stderr.count("error:") == 1
    assert "namespace for the loadgen" in ended.stderr


def test_a_record_that_is_none(lab: Lab) -> None:
    out = lab.folder / "out"
    out.mkdir()
    (out / "experiment.json").write_text("[]")
    ended = lab.run("run", str(lab.plan()), "--out", "out", "--resume")
    assert ended.returncode == 2
    assert "error: out/experiment.json" in ended.stderr
    (out / "experiment.json").unlink()
    (out / "mine.txt").write_text("something else")
    ended = lab.run("run", str(lab.plan()), "--out", "out")
    assert ended.returncode == 2
    assert "not an experiment" in ended.stderr
