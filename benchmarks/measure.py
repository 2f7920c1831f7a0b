"""Times one whole process and watches its memory.

Wall time ends when the kernel says that the process has ended (a pidfd), not at the next sample.
The runner stays small on purpose: Linux lets ``ru_maxrss`` of a child begin at what its parent had
resident when it was started.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from captures import Pair

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")

# About 20 samples a second; more of them at the beginning, or short processes would have none.
EARLY_S, EARLY_INTERVAL_S, INTERVAL_S = 0.2, 0.002, 0.05


class ProgramError(Exception):
    """The measured program failed; the text is the last it wrote to standard error."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Resources that a process used. With a server, CPU time and memory are those of both."""

    wall_s: float
    user_s: float
    sys_s: float
    #: VmHWM of the process itself, as the kernel keeps it (last sample).
    high_water_kib: int
    #: Largest sums over the process, its descendants and the server, each at one sample.
    anonymous_kib: int
    file_mapped_kib: int
    shared_kib: int
    ru_maxrss_kib: int
    #: Blocks of 512 bytes that came from the disk: not 0 means that the page cache was not warm.
    read_blocks: int
    #: Number of times that another thread took the core (involuntary context switches).
    involuntary_switches: int
    #: CPU time that the hypervisor took from the whole machine meanwhile.
    steal_s: float


def measure(
    command: Sequence[str], output: Path, *, folder: Path, server: int | None = None
) -> Measurement:
    """Run a command in a folder, its standard output to a file.

    Args:
        command: program and arguments.
        output: where standard output goes; standard error goes to the same folder.
        folder: working directory.
        server: process that works for the command; its tree counts as well.

    Raises:
        ProgramError: the command did not succeed.

    """
    server_before = _tree_cpu_s(server)
    steal_before = _steal_s()
    high_water = anonymous = file_mapped = shared = 0
    errors = output.with_suffix(".stderr")
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, cwd=folder)
        try:
            for _ in _until_exit(process.pid, start):
                high_water = max(high_water, _status(process.pid).get("VmHWM", 0))
                tree = [_status(pid) for pid in _tree(process.pid) + _tree(server)]
                anonymous = max(anonymous, sum(status.get("RssAnon", 0) for status in tree))
                file_mapped = max(file_mapped, sum(status.get("RssFile", 0) for status in tree))
                # All of a server's processes map the same shared memory.
                shared = max([shared, *(status.get("RssShmem", 0) for status in tree)])
            wall_s = time.perf_counter() - start
            _, wait_status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(wait_status)
        finally:
            if process.returncode is None:
                _end(process)
    if process.returncode != 0:
        text = errors.read_text(errors="replace").strip().splitlines()
        raise ProgramError(text[-1] if text else f"exit status {process.returncode}")
    server_after = _tree_cpu_s(server)
    return Measurement(
        wall_s=wall_s,
        user_s=usage.ru_utime + server_after[0] - server_before[0],
        sys_s=usage.ru_stime + server_after[1] - server_before[1],
        high_water_kib=high_water,
        anonymous_kib=anonymous,
        file_mapped_kib=file_mapped,
        shared_kib=shared,
        ru_maxrss_kib=usage.ru_maxrss,
        read_blocks=usage.ru_inblock,
        involuntary_switches=usage.ru_nivcsw,
        steal_s=_steal_s() - steal_before,
    )


def available_bytes() -> int:
    """Memory that programs and the page cache can have (MemAvailable)."""
    return _kib(PROC / "meminfo")["MemAvailable"] * 1024


def fits(pair: Pair) -> str | None:
    """Return None if the page cache can hold both files, else say what is missing."""
    size, available = sum(path.stat().st_size for path in pair), available_bytes()
    if size < available:
        return None
    return f"{size / 1e9:.1f} GB do not fit in {available / 1e9:.1f} GB of memory: read from disk"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants."""
    for pid in _tree(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _until_exit(pid: int, start: float) -> Iterator[None]:
    """Yield at the sampling rate until the process has ended (it is not reaped)."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        while True:
            early = time.perf_counter() - start < EARLY_S
            if poll.poll(1000 * (EARLY_INTERVAL_S if early else INTERVAL_S)):
                return
            yield
    finally:
        os.close(pidfd)


def _status(pid: int) -> dict[str, int]:
    return _kib(PROC / str(pid) / "status")


def _kib(path: Path) -> dict[str, int]:
    """Read the lines ``name: number kB`` of a file below /proc; nothing if the process is gone."""
    try:
        lines = path.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {line.partition(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}


def _tree(pid: int | None) -> list[int]:
    """Return the process and its descendants."""
    if pid is None:
        return []
    try:
        children = (PROC / f"{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return [pid]
    return [pid, *(descendant for child in children for descendant in _tree(int(child)))]


def _tree_cpu_s(pid: int | None) -> tuple[float, float]:
    """User and system time of a process, its living descendants and those it has waited for."""
    user = system = 0
    for member in _tree(pid):
        try:
            stat = (PROC / str(member) / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = stat.rpartition(")")[2].split()
        user += int(fields[11]) + int(fields[13])
        system += int(fields[12]) + int(fields[14])
    return user / TICKS_PER_SECOND, system / TICKS_PER_SECOND


def _steal_s() -> float:
    return int((PROC / "stat").read_text().split(maxsplit=9)[8]) / TICKS_PER_SECOND
