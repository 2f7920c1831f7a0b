"""Plans on this very host: applied and taken back, all bytes compared (the fixture does)."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changed_host import files, snapshot, tree, write

if TYPE_CHECKING:
    from changed_host import Tune

pytestmark = pytest.mark.alone
CPUS = os.cpu_count() or 1
PLAN = ("--profile", "latency-poll", "--isolate", str(CPUS - 1), "--smt", "keep")

needs_two_cpus = pytest.mark.skipif(CPUS < 2, reason="isolating a CPU needs two")


def test_a_dry_run_changes_nothing(host: Tune) -> None:
    before = snapshot()
    ended = host.run("apply", "--profile", "measure-only", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "Nothing was changed." in ended.stdout
    assert not host.state.exists()
    after = snapshot()
    assert {path: after[path] for path in before if path.startswith("/")} == {
        path: before[path] for path in before if path.startswith("/")
    }


@pytest.mark.fast
@needs_two_cpus
def test_applied_verified_and_taken_back(host: Tune) -> None:
    before = snapshot()
    applied = host.json("apply", *PLAN)
    assert applied["took"] > 10
    assert Path("/proc/sys/vm/stat_interval").read_text() == "3600\n"
    assert "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    again = host.run("apply", *PLAN)
    assert again.returncode == 2
    assert "already applied" in again.stderr
    status = host.json("status")
    assert status["complete"]
    standing = [value["standing"] for value in status["values"]]
    # Kernel threads end when they like.
    assert standing.count("in-place") + standing.count("gone") == applied["took"]
    assert host.run("verify").returncode == 0
    Path("/proc/sys/vm/stat_interval").write_text("7\n")
    verified = host.run("verify")
    assert verified.returncode == 1
    told = [line for line in verified.stdout.splitlines() if "vm.stat_interval" in line]
    assert ["3600", "7"] in [re.findall(r"\d+", line) for line in told]
    reverted = host.json("revert")
    assert len(reverted["drifted"]) == 1
    assert reverted["left"] == []
    after = snapshot()
    assert {path: after[path] for path in before.keys() & after.keys()} == {
        path: before[path] for path in before.keys() & after.keys()
    }
    assert host.run("revert").stdout == "nothing is applied\n"


def test_the_exit_latency_is_held_as_long_as_it_is_applied(host: Tune) -> None:
    device = Path("/dev/cpu_dma_latency")
    if not device.exists():
        pytest.skip("this kernel has no /dev/cpu_dma_latency")

    def asked() -> int:
        with device.open("rb") as file:
            value: int = struct.unpack("i", file.read(4))[0]
        return value

    before = asked()
    only = ("--profile", "latency-kernel", "--only", "cpu.dma-latency")
    assert host.json("apply", *only)["took"] == 1
    assert asked() == 1
    pid = int((host.state / "latency").read_text().split()[0])
    assert b"hold-latency" in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert host.run("verify").returncode == 0
    os.kill(pid, signal.SIGKILL)
    until_ended(pid)
    assert host.run("verify").returncode == 1
    assert host.run("revert").returncode == 0
    assert host.json("apply", *only)["took"] == 1
    assert host.run("revert").returncode == 0
    assert asked() == before


def until_ended(pid: int) -> None:
    """Wait until a process is dead, even if not reaped: it has no command line then."""
    until_s = time.monotonic() + 20
    try:
        while Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < until_s
            time.sleep(0.01)
    except (FileNotFoundError, ProcessLookupError):
        pass


def test_another_one_at_work_is_waited_for(host: Tune) -> None:
    host.state.mkdir()
    lock = host.state / "lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = host.run("apply", "--profile", "measure-only")
    assert ended.returncode == 2
    assert str(host.state) in ended.stderr


def test_a_session_on_an_isolated_cpu_is_not_cut(host: Tune, tmp_path: Path) -> None:
    """On a tree with cgroup2, as this process hangs on the CPU that would be isolated."""
    root = tree(tmp_path)
    pid = os.getpid()
    status = "Name:\tsshd\nPPid:\t0\nCpus_allowed_list:\t1\n"
    write(root, f"proc/{pid}/status", status)
    plan = ("--isolate", "1", "--smt", "keep", "--root", str(root))
    # The agent is this process's child: its own entry leads there.
    script = (
        f'mkdir -p "{root}/proc/$$"; printf "Name:\\tsh\\nPPid:\\t{pid}\\n'
        f'Cpus_allowed_list:\\t0-1\\n" > "{root}/proc/$$/status"; exec "$@"'
    )
    command = host.command("apply", *plan)
    ended = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *command], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert "isolation.cpuset" in ended.stderr
    assert "CPU 1" in ended.stderr


def test_drop_ins_are_written_and_removed_with_their_folders(tune: Tune, tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = files(root)
    plan = ("--isolate", "1", "--smt", "keep", "--boot", "grub", "--without", "isolation.cpuset")
    ended = tune.run("apply", *plan, "--root", str(root))
    assert ended.returncode == 0, ended.stderr
    grub = (root / "etc/default/grub.d/99-tailtrim.cfg").read_text()
    assert "isolcpus=managed_irq,domain,1" in grub
    assert (root / "etc/systemd/system.conf.d/50-tailtrim.conf").is_file()
    assert (root / "proc/sys/vm/stat_interval").read_text() == "3600\n"
    assert tune.run("verify", "--root", str(root)).returncode == 0
    assert tune.run("revert", "--root", str(root)).returncode == 0
    assert files(root) == before


def test_a_network_interface_in_a_namespace(tune: Tune) -> None:
    if os.geteuid() != 0 or shutil.which("ethtool") is None:
        pytest.skip("needs root and ethtool")
    plan = "--profile latency-kernel --only nic.offload --interface tune0"
    script = f"""
        set -e
        mount -t sysfs sysfs /sys
        ip link add tune0 type veth peer name tune1
        ethtool -K tune0 gro on
        before=$(ethtool -k tune0)
        {tune.program} tune apply {plan} --state {tune.state} --json
        ethtool -k tune0 | grep -q '^generic-receive-offload: off'
        {tune.program} tune verify --state {tune.state} >&2
        {tune.program} tune revert --state {tune.state} >&2
        test "$(ethtool -k tune0)" = "$before"
    """
    command = ["/usr/bin/unshare", "--net", "--mount", "sh", "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare:" in ended.stderr:
        pytest.skip(f"no namespaces here: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["took"] >= 1


def test_without_root_it_says_what_to_do(tune: Tune) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, in order to give it up, and setpriv")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        program = shutil.copy(tune.program, name)
        command = [
            "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program,
            "tune", "apply", "--profile", "measure-only", "--state", "/nowhere/state",
        ]  # fmt: skip
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert ended.stderr.count("error:") == 1
    assert "run it as root" in ended.stderr


SYSTEMCTL = """#!/bin/sh
case $1 in
is-active) cat "$0.$2" 2>/dev/null || echo inactive ;;
start) echo active > "$0.$2" ;;
stop) echo inactive > "$0.$2" ;;
esac
"""


def with_systemd(tune: Tune, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script where systemd seems to run, with a manager of services that remembers."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    program = folder / "bin" / "systemctl"
    write(folder, "bin/systemctl", SYSTEMCTL)
    program.chmod(0o755)
    begin = 'set -e; mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; PATH="$1:$PATH"; '
    command = ["/usr/bin/unshare", "--mount", "sh", "-c", begin + script, "sh"]
    command += [str(folder / "bin"), tune.program, str(tune.state)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare:" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip(f"no mount namespaces here: {ended.stderr.strip()}")
    return ended


def test_services_are_stopped_and_started_again(host: Tune, tmp_path: Path) -> None:
    script = """
        systemctl start cron.service; systemctl start fstrim.timer
        "$2" tune apply --profile measure-only --only services.periodic --state "$3" --json
        systemctl is-active cron.service; systemctl is-active fstrim.timer
        "$2" tune revert --state "$3" >&2
        systemctl is-active cron.service; systemctl is-active fstrim.timer
        systemctl is-active logrotate.timer
    """
    ended = with_systemd(host, tmp_path, script)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[-5:] == ["inactive", "inactive", "active", "active", "inactive"]


@needs_two_cpus
def test_another_manager_is_not_fought(host: Tune, tmp_path: Path) -> None:
    daemon = tmp_path / "irqbalance"
    shutil.copy("/bin/sleep", daemon)
    process = subprocess.Popen([str(daemon), "60"])
    try:
        plan = (*PLAN, "--only", "irq.default")
        refused = host.run("apply", *plan)
        assert refused.returncode == 3
        assert all(
            told in refused.stderr for told in ("irqbalance", f" {process.pid}", "irq.default")
        )
        assert not host.state.exists()
        options = " ".join((*plan, "--take-over", "irqbalance"))
        script = f"""
            systemctl start irqbalance
            "$2" tune apply {options} --state "$3" >&2
            systemctl is-active irqbalance; cat /proc/irq/default_smp_affinity
            "$2" tune revert --state "$3" >&2
            systemctl is-active irqbalance
        """
        before = Path("/proc/irq/default_smp_affinity").read_text()
        taken = with_systemd(host, tmp_path, script)
    finally:
        process.kill()
        process.wait()
    assert taken.returncode == 0, taken.stderr
    stopped, mask, started = taken.stdout.splitlines()
    assert (stopped, started) == ("inactive", "active")
    assert mask != before.strip()
