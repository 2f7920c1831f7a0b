"""The unit of a watch under a real systemd, which is the first process of namespaces of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNIT, SERVICE = "tailtrim-watch@.service", "tailtrim-watch@office"
PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
UNITS = Path("/lib/systemd/system")
#: All that the service depends on.
TARGETS = ("sysinit", "basic", "shutdown", "network-online", "sockets", "timers", "paths", "slices")
#: Makes a root from this machine's, without its units, and begins it: FOLDER CGROUP.
BOOT = """
set -e
echo $$ >"$2/cgroup.procs"
exec unshare --cgroup --mount --pid --fork --kill-child --net --uts --ipc sh -ec '
mount --make-rprivate /
mount -t tmpfs tmpfs "$1/area"
mkdir "$1/area/upper" "$1/area/work" "$1/area/root"
cd "$1/area/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=../upper,workdir=../work" .
cd "$1/area/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount --rbind /dev dev
for place in etc/systemd usr/lib/systemd/system var/lib; do
    mount -t tmpfs -o mode=755 tmpfs "$place"
done
mkdir etc/systemd/system etc/tailtrim
cp "$1"/units/* usr/lib/systemd/system/
cp "$1/office.yml" etc/tailtrim/
cp "$1/tailtrim-agent" usr/bin/
sysctl -qw "net.ipv4.ping_group_range=0 2147483647"
ip link set lo up
exec chroot . /lib/systemd/systemd --system --unit=basic.target --log-target=null
' sh "$1"
"""


class Booted:
    """A running systemd."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def run(self, *words: str) -> str:
        """Run a command beside the services, and return what it printed."""
        ended = self.try_to(*words)
        if ended.returncode:
            state = self.try_to("systemctl", "status", "--no-pager", SERVICE).stdout
            raise AssertionError(ended.stdout + ended.stderr + state)
        return ended.stdout.strip()

    def try_to(self, *words: str) -> subprocess.CompletedProcess[str]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        first = children.read_text().split()[:1]
        enter = ["nsenter", "--target", *first, "--all", "--root", "--wd"]
        return subprocess.run([*enter, *words], capture_output=True, text=True, check=False)

    def shown(self, name: str) -> str:
        return self.run("systemctl", "show", "--value", "--property", name, SERVICE)


@contextmanager
def booted(folder: Path) -> Iterator[Booted]:
    """Boot; at the end nothing is left, not even a control group."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    trees = [Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"]
    if os.geteuid() or not trees or not os.access(trees[0], os.W_OK):
        pytest.skip("systemd cannot be started here: no root, or no control groups to write to")
    group = trees[0] / f"tailtrim-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    with (folder / "log").open("wb") as log:
        command = ["sh", "-c", BOOT, "sh", str(folder), str(group)]
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | {"container": "test"}
        )
    system = Booted(process)
    try:
        until_s = time.monotonic() + 30
        while system.try_to("systemctl", "is-active", "basic.target").returncode:
            assert time.monotonic() < until_s, (folder / "log").read_text()
            time.sleep(0.1)
        yield system
    finally:
        process.kill()
        process.wait()
        places = [group, *group.rglob("*/")]
        until_s = time.monotonic() + 20
        for place in sorted(places, reverse=True):
            while place.exists():
                try:
                    place.rmdir()
                except OSError:
                    # Its processes are about to end.
                    assert time.monotonic() < until_s, place
                    time.sleep(0.05)


def until(fulfilled: Callable[[], bool]) -> None:
    """Wait for a condition."""
    until_s = time.monotonic() + 20
    while not fulfilled():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def answers(system: Booted) -> bool:
    """Return whether the target answers probes."""
    told = system.run("curl", "-s", "http://127.0.0.1:9464/metrics")
    return re.search(r'target="near",outcome="answered"\} [1-9]', told) is not None


def test_systemd_starts_reloads_revives_and_stops_a_watch(tmp_path: Path) -> None:
    tools.need(tools.SYSTEMD_ANALYZE)
    (tmp_path / "area").mkdir()
    units = tmp_path / "units"
    units.mkdir()
    for name in TARGETS:
        shutil.copy(UNITS / f"{name}.target", units)
    unit = (PACKAGING / UNIT).read_text()
    assert "WatchdogSec=1min" in unit
    (units / UNIT).write_text(unit.replace("WatchdogSec=1min", "WatchdogSec=2"))
    shutil.copy(Path(sys.executable).with_name("tailtrim-agent"), tmp_path)
    target = "targets: [{name: near, protocol: icmp, address: 127.0.0.1, rate: 50pps}]\n"
    (tmp_path / "office.yml").write_text(target)
    with booted(tmp_path) as system:
        system.run("systemctl", "start", SERVICE)
        assert system.shown("StatusText") == "Watching 1 targets"
        pid = system.shown("MainPID")
        status = system.run("cat", f"/proc/{pid}/status")
        assert "CapEff:\t0000000000000000" in status
        assert "Uid:\t0" not in status
        system.run(
            "sh", "-c", f"echo '{target[:-2]}, {{address: 127.0.0.2}}]' >/etc/tailtrim/office.yml"
        )
        system.run("systemctl", "reload", SERVICE)
        until(lambda: system.shown("StatusText") == "Watching 2 targets")
        # It lives longer than the watchdog waits, and is begun again when it does not.
        time.sleep(2.5)
        assert (system.shown("MainPID"), system.shown("NRestarts")) == (pid, "0")
        assert answers(system)
        system.run("kill", "-STOP", pid)
        until(lambda: system.shown("NRestarts") == "1" and system.shown("ActiveState") == "active")
        until(lambda: answers(system))
        system.run("systemctl", "stop", SERVICE)
        assert system.shown("Result") == "success"
        kept = system.run("find", "/var/lib/private/tailtrim-watch/office/near", "-name", "*.zst")
        assert kept
