"""A stand-in for MoonGen on nodes, ``build/MoonGen SCRIPT OPTIONS``.

It calls tailtrim-agent for the scripts that it knows by their names, and prints the lines of
MoonGen's counters. It reads no Lua, and is not MoonGen.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The folder of a node with its tools; its ``ports.json`` has the devices by number.
SHARED = Path("/run/tailtrim")
#: The interfaces of a node, and the counters of all at one moment.
INTERFACES, COUNTERS = Path("/sys/class/net"), Path("/proc/net/dev")
NOTE = (
    "[INFO]  This is tailtrim's stand-in, not MoonGen: the kernel sends and receives, software"
    " keeps the rate (no hardware rate control, no DPDK)."
)
_FCS, _LEAST, _MOST = 4, 64, 9018
#: Of Linux: hold an interface in promiscuous mode as long as a socket is open (packet(7)).
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1
#: Of a frame on the wire: preamble, start of frame and the gap behind it.
_FRAMING = 20
#: Packets of soft-gen's warm-up.
_WARM_UP = 945
#: Seconds for which MoonGen counts after its last packet, and waits for links.
_AFTERWARDS, _LINK_S = 2, 9.0
_ENDING = (signal.SIGINT, signal.SIGTERM)


class RefusedError(Exception):
    """A script or an option is unknown here, or not supported."""


@dataclass(frozen=True)
class Work:
    """Calls of tailtrim-agent, one after the other, and the devices whose packets are counted."""

    calls: tuple[tuple[str, ...], ...]
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    pause_s: float = 0.0
    #: Captures that are written, in the place of earlier ones.
    written: tuple[Path, ...] = ()


class _Options(argparse.ArgumentParser):
    """Options of a script; what is wrong with a command is told in one line."""

    def error(self, message: str) -> NoReturn:
        known = (action.option_strings[-1] for action in self._actions if action.option_strings)
        raise RefusedError(f"{self.prog}: {message}; it knows {', '.join(known)}")


def _port(ports: Sequence[str], device: int) -> str:
    """Return the interface that is the device of a number."""
    if not 0 <= device < len(ports):
        known = ", ".join(f"{number} ({name})" for number, name in enumerate(ports))
        raise RefusedError(f"device {device}: this node has {known or 'no ports'}")
    return ports[device]


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _generate(interface: str, pps: float, size: int, **more: object) -> tuple[str, ...]:
    """Return the call that sends; MoonGen's sizes are without FCS."""
    words = ["generate", "--interface", interface, "--rate", str(max(1, round(pps)))]
    words += ["--frame-bytes", str(max(_LEAST, size + _FCS))]
    for name, value in more.items():
        if value not in (None, ""):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return tuple(words)


def _soft_gen(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """soft-gen.lua of the pos paper: a rate in packets per second, a number of packets."""
    own = {"rate": 1e5, "packets": 1_000_000, "size": 48, "src": "10.0.0.1", "dst": "10.0.1.1"}
    return _paced(options, words, ports, own)


def _traffic_gen(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """moonsniff/traffic-gen.lua: upstream has a rate in Mbit/s and a time, forks are soft-gen."""
    spellings = {word.partition("=")[0] for word in words if word.startswith("-")}
    if spellings and not spellings & {"-t", "--time", "-r", "--rate"}:
        return _timer_loadgen(options, words, ports)
    options.add_argument("dev", nargs=2, type=int)
    options.add_argument("-t", "--time", type=float, default=10)
    options.add_argument("-r", "--rate", type=float, default=1000)
    given = options.parse_args(words)
    size, (out, back) = 100, given.dev
    pps = given.rate * 1e6 / 8 / (size + _FCS)
    sent = _generate(_port(ports, out), pps, size, duration=f"{given.time:g}s")
    return Work((sent,), (out,), (back,))


def _timer_loadgen(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """timer-loadgen.lua of TUM's papers, and moonsniff/traffic-gen.lua of forks."""
    return _paced(options, words, ports, {"rate": 1e4, "packets": 100_000, "size": 100})


def _paced(
    options: _Options, words: list[str], ports: Sequence[str], own: dict[str, object]
) -> Work:
    option = options.add_argument
    option("dev", nargs=2, type=int)
    option("-v", "--fix-packetrate", type=float, default=own["rate"])
    option("-p", "--packets", type=int, default=own["packets"])
    option("-x", "--size", type=int, default=own["size"])
    option("-b", "--burst", type=int, default=1)
    option("-w", "--warm-up", type=float, default=0)
    option("-f", "--flows", type=int, default=1)
    option("-s", "--src-mac", default="")
    option("-d", "--dst-mac", default="")
    option("-i", "--src-ip", default=own.get("src"))
    option("-j", "--dst-ip", default=own.get("dst"))
    option("-l", "--l4-dst", type=int, default=None if "src" in own else 23432)
    # Checksums are right in each packet.
    option("-o", "--ip-chksum")
    option("-c", "--chksum-offload")
    given = options.parse_args(words)
    out, back = given.dev
    more = {
        "schedule": f"burst:{given.burst}" if given.burst > 1 else None,
        "flows": given.flows if given.flows > 1 else None,
        "src_mac": given.src_mac,
        "dst_mac": given.dst_mac,
        "src_ip": given.src_ip,
        "dst_ip": given.dst_ip,
        "dst_port": given.l4_dst,
    }
    numbers = (_WARM_UP, given.packets) if given.warm_up > 0 else (given.packets,)
    calls = (
        _generate(_port(ports, out), given.fix_packetrate, given.size, count=number, **more)
        for number in numbers
    )
    return Work(tuple(calls), (out,), (back,), given.warm_up)


def _rate_control(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """rate-control-methods.lua: a rate in Mpps, or with custom a gap in microseconds."""
    options.add_argument("port", type=int)
    options.add_argument("rate", type=float)
    options.add_argument("method", choices=("hw", "sw", "moongen"))
    options.add_argument("pattern", nargs="?", choices=("cbr", "poisson", "custom"), default="cbr")
    options.add_argument("threads", nargs="?", type=int, default=1)
    given = options.parse_args(words)
    pps = 1e6 / given.rate if given.pattern == "custom" else given.rate * 1e6 * given.threads
    schedule = "poisson" if given.pattern == "poisson" else None
    more = {"schedule": schedule, "dst_mac": "11:12:13:14:15:16"}
    return Work((_generate(_port(ports, given.port), pps, 60, **more),), (given.port,))


def _sniffer(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """moonsniff/sniffer.lua with --capture: two captures."""
    options.add_argument("dev", nargs=2, type=int)
    options.add_argument("-o", "--output", default="latencies")
    options.add_argument("-t", "--time", "-r", "--runtime", dest="time", type=float, default=10)
    options.add_argument("-c", "--capture", action="store_true")
    given = options.parse_args(words)
    if not given.capture:
        raise RefusedError(f"{options.prog}: not supported without --capture: it writes no .mscap")
    place = Path(given.output)
    taps = dict(zip((f"{place.name}-pre", f"{place.name}-post"), given.dev, strict=True))
    return _capture(taps, place.parent, ports, given.time)


def _rx_to_pcap(options: _Options, words: list[str], ports: Sequence[str]) -> Work:
    """pcap/rx-to-pcap.lua: a capture of each device, until Ctrl-C."""
    options.add_argument("dev", nargs="+", type=int)
    options.add_argument("-s", "--sink", required=True)
    given = options.parse_args(words)
    place = Path(f"{given.sink}x")
    taps = {f"{place.name[:-1]}{dev}-0": dev for dev in given.dev}
    return _capture(taps, place.parent, ports, None)


def _capture(
    taps: dict[str, int], folder: Path, ports: Sequence[str], seconds: float | None
) -> Work:
    """Return the work of capturing devices, by the names of their captures."""
    words = ["capture", "--out", str(folder), "--snap", str(_MOST)]
    words += [f"--tap={name}={_port(ports, dev)}" for name, dev in taps.items()]
    words += [f"--duration={seconds:g}s"] if seconds else []
    files = tuple(folder / f"{name}.pcap" for name in taps)
    return Work((tuple(words),), received=tuple(taps.values()), written=files)


#: Scripts by the names of their files.
SCRIPTS: dict[str, Callable[[_Options, list[str], Sequence[str]], Work]] = {
    "soft-gen.lua": _soft_gen,
    "timer-loadgen.lua": _timer_loadgen,
    "traffic-gen.lua": _traffic_gen,
    "rate-control-methods.lua": _rate_control,
    "sniffer.lua": _sniffer,
    "rx-to-pcap.lua": _rx_to_pcap,
}


def work_of(script: str, words: Sequence[str], ports: Sequence[str]) -> Work:
    """Return what a command becomes on a node with these ports.

    Raises:
        RefusedError: the script, an option or a device is unknown.

    """
    name = Path(script).name
    if name not in SCRIPTS:
        known = ", ".join(SCRIPTS)
        raise RefusedError(f"{name}: not known here, expected one of {known} (docs/moongen.md)")
    work = SCRIPTS[name](_Options(prog=name, allow_abbrev=False), list(words), ports)
    for device in (*work.sent, *work.received):
        _port(ports, device)
    return work


class Counters:
    """The counters of all interfaces at one moment, so that those of two fit together."""

    def __init__(self) -> None:
        """Read them."""
        lines = COUNTERS.read_text("ascii").splitlines()[2:]
        self.at_s = time.monotonic()
        split = (line.partition(":") for line in lines)
        self._numbers = {name.strip(): [*map(int, rest.split())] for name, _, rest in split}

    def of(self, interface: str, way: str) -> tuple[int, int]:
        """Return packets, and bytes with FCS."""
        first = 0 if way == "RX" else 8
        octets, packets = self._numbers[interface][first : first + 2]
        return packets, octets + _FCS * packets


class Counter:
    """Packets of an interface in one direction, with MoonGen's lines about them."""

    def __init__(self, device: int, interface: str, way: str, now: Counters) -> None:
        """Begin to count."""
        self._name, self._of = f"[Device: id={device}] {way}:", (interface, way)
        self._began = self._before = now.of(*self._of)
        self._at_s = now.at_s
        self._rates: list[tuple[float, float, float]] = []

    def update(self, now: Counters) -> str:
        """Return the line about the time since the one before."""
        counts = now.of(*self._of)
        packets, octets = (new - old for new, old in zip(counts, self._before, strict=True))
        took_us = (now.at_s - self._at_s) * 1e6
        self._before, self._at_s = counts, now.at_s
        mpps, mbit = packets / took_us, 8 * octets / took_us
        self._rates.append((mpps, mbit, mbit + 8 * _FRAMING * mpps))
        return "{} {:.4f} Mpps, {:.2f} Mbit/s ({:.2f} Mbit/s with framing)".format(
            self._name, *self._rates[-1]
        )

    def final(self, now: Counters) -> str:
        """Return the last line: means without the first and the last second, and totals."""
        # Of two seconds, both count.
        rates = self._rates[1:-1] or self._rates or [(0.0, 0.0, 0.0)]
        mpps, mbit, framed = (fmean(column) for column in zip(*rates, strict=True))
        spread = [stdev(column) if len(rates) > 1 else 0.0 for column in zip(*rates, strict=True)]
        total = [new - old for new, old in zip(now.of(*self._of), self._began, strict=True)]
        return (
            f"{self._name} {mpps:.4f} (StdDev {spread[0]:.4f}) Mpps,"
            f" {mbit:.2f} (StdDev {spread[1]:.0f}) Mbit/s ({framed:.2f} Mbit/s with framing),"
            f" total {total[0]} packets with {total[1]} bytes (incl. CRC)"
        )


class Calls(threading.Thread):
    """The calls of tailtrim-agent, one after the other; their events go to standard error."""

    def __init__(self, work: Work) -> None:
        """Take them; nothing runs yet."""
        super().__init__()
        self._work, self._lock = work, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self.code, self.interrupted = 0, False

    def run(self) -> None:
        """Do them."""
        for number, words in enumerate(self._work.calls):
            if number and self._stopped.wait(self._work.pause_s):
                return
            with self._lock:
                if self._stopped.is_set():
                    return
                # It ends with this process, whatever ends that.
                self._process = subprocess.Popen(
                    [SHARED / "bin" / "tailtrim-agent", *words, "--until-eof"],
                    stdin=subprocess.PIPE,
                    stdout=sys.stderr,
                )
            self.code = self._process.wait()
            if self.code:
                return

    def stop(self) -> None:
        """End them, and wait for their end."""
        self._stopped.set()
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
        if self.is_alive():
            self.join()


def run(work: Work, ports: Sequence[str]) -> int:
    """Do the work, and print what MoonGen would; return the exit code."""
    calls = Calls(work)
    counters: list[Counter] = []
    held: list[socket.socket] = []  # until this process ends
    for number in _ENDING:
        signal.signal(number, signal.default_int_handler)
    try:
        _print(NOTE)
        for file in work.written:
            file.unlink(missing_ok=True)
        devices = sorted({*work.sent, *work.received})
        held += [_up(device, ports[device]) for device in devices]
        now = Counters()
        counters += [Counter(device, ports[device], "TX", now) for device in work.sent]
        counters += [Counter(device, ports[device], "RX", now) for device in work.received]
        calls.start()
        count(counters, calls)
    except KeyboardInterrupt:
        calls.interrupted = True
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    calls.stop()
    now = Counters()
    for counter in counters:
        _print(counter.final(now))
    return 0 if calls.interrupted else calls.code


def count(counters: Sequence[Counter], calls: Calls) -> None:
    """Print the lines of each second, until some seconds behind the last packet.

    As with MoonGen, a second begins when the one before was printed: one that was printed late does
    not make the next one short.
    """
    left = _AFTERWARDS
    while left > 0 and not calls.code:
        time.sleep(1)
        now = Counters()
        for counter in counters:
            _print(counter.update(now))
        left -= not calls.is_alive()


def _up(device: int, interface: str) -> socket.socket:
    """Bring an interface up, and wait for its link; it takes all frames while the socket lives."""
    subprocess.run(["ip", "link", "set", "dev", interface, "up"], check=True)
    held = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    member = struct.pack("iHH8s", socket.if_nametoindex(interface), _PROMISCUOUS, 0, b"")
    held.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, member)
    folder = INTERFACES / interface
    until_s = time.monotonic() + _LINK_S
    while (folder / "carrier").read_text("ascii") != "1\n" and time.monotonic() < until_s:
        time.sleep(0.1)
    mac = (folder / "address").read_text("ascii").strip()
    link = "is up" if (folder / "carrier").read_text("ascii") == "1\n" else "has no link"
    _print(f"[INFO]  Device {device} ({interface}, {mac}) {link}")
    return held


def main() -> int:
    """Do what the arguments say."""
    try:
        script, *words = sys.argv[1:] or [""]
        names = json.loads((SHARED / "ports.json").read_text("utf-8"))
        work = work_of(script, words, names)
    except RefusedError as error:
        sys.stderr.write(f"MoonGen (tailtrim's stand-in): {error}\n")
        return 2
    return run(work, names)


if __name__ == "__main__":
    sys.exit(main())
