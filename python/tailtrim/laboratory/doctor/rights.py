"""Checks of the rights that the kernel gives this user on the host itself, outside a testbed."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.doctor.check import Check, attempt
from tailtrim.laboratory.nodes import agent, xdp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TIMEOUT_S = 20
_AF_XDP = 44
#: adjtimex(2): bytes of its structure, where the status is, its bit for an unsynchronised clock.
_TIMEX_BYTES, _STATUS, _UNSYNC = 208, 40, 0x40
#: A setting that ``tune`` may change.
_SETTING = "/proc/sys/vm/stat_interval"


def checks() -> Iterator[Check]:
    """Check what commands need of the host."""
    with tempfile.TemporaryDirectory(prefix="tailtrim-doctor-") as place:
        folder = Path(place)
        for command in ("generate", "capture", "forward"):
            yield Check(command, "AF_PACKET ports", attempt(_packet_socket))
            yield Check(command, "AF_XDP ports (xdp:INTERFACE)", attempt(_xdp_socket))
        cpus = ("--cpus", str(min(os.sched_getaffinity(0))))
        for source in ("tracefs", "perf"):
            asked = ("--out", str(folder / source), "--source", source, "--buffer", "1")
            run = _agent("trace", *cpus, *asked, "--duration", "0.01")
            yield Check("trace", source, attempt(run))
        yield Check("noise", "polling a CPU", attempt(_agent("noise", *cpus, "--duration", "1")))
        yield Check("selftest", "cgroups (CPU quota)", attempt(lambda: _quota(folder)))
        echo = ("--protocol", "icmp", "--count", "1", "--timeout", "1")
        yield Check("ping", "ICMP echo", attempt(_agent("ping", "127.0.0.1", *echo)))
        yield Check("ping", "time sync (one-way delays)", attempt(_synchronized))
        yield Check("tune", "settings of the host", attempt(_writable))


def _packet_socket() -> None:
    try:
        # Without a protocol it receives nothing.
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except PermissionError as error:
        raise HostError("root (CAP_NET_RAW)") from error


def _xdp_socket() -> None:
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
        os.close(xdp.load(xdp.passing()))
    except PermissionError as error:
        raise HostError("root (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF)") from error


def _agent(*words: str) -> Callable[[], None]:
    """Return what runs the agent and raises what it complains about."""

    def run() -> None:
        try:
            ended = subprocess.run(
                [agent.program(), *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            told = f"tailtrim-agent {words[0]} did not end within {_TIMEOUT_S} s"
            raise HostError(told) from error
        if ended.returncode != 0:
            lines = [line.partition(": ") for line in ended.stderr.splitlines()]
            found = [text for kind, _, text in lines if kind in {"error", "hint"}]
            raise HostError("; ".join(found) or f"it ended with {ended.returncode}")

    return run


def _quota(folder: Path) -> None:
    """Have the agent move a process into a group; it moves it back at the end of input."""
    cpu = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen(["sleep", str(_TIMEOUT_S)]) as process:
        try:
            place = ("--cpu", cpu, "--pid", str(process.pid), "--log", str(folder / "quota.csv"))
            _agent("disturb", "quota:1ms,1s", *place, "--until-eof")()
        finally:
            process.kill()


def _synchronized() -> None:
    state = ctypes.create_string_buffer(_TIMEX_BYTES)
    ctypes.CDLL(None).adjtimex(state)
    if int.from_bytes(state.raw[_STATUS : _STATUS + 4], "little") & _UNSYNC:
        raise HostError("a clock that chrony, ntpd or ptp4l synchronises (Debian package chrony)")


def _writable() -> None:
    if not os.access(_SETTING, os.W_OK):
        raise HostError("root, and a writable /proc/sys")
