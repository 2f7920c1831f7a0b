"""Results of HiPerConTracer: lines of columns, as its manual page describes them.

Version 1 (before 2.0.0) has microseconds and only ICMP, version 2 nanoseconds and the parts of each
round trip. -1 stands for what is not known. A result that is not a reply has the time after which
that was known in its round-trip times, not a sample.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.analysis.roundtrip.compression import reading, writing
from tailtrim.errors import RoundTripError
from tailtrim.tool import Tool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    _Parser = Callable[[str], Any]

#: Program that writes these files.
HIPERCONTRACER = Tool("hipercontracer", "hipercontracer", service=True)
#: The status of an answered probe.
ANSWERED = 255

_UNKNOWN_CHECKSUM = 0xFFFF
_HEADER = re.compile(r"#\? HPCT (\S+) (\d+) (\S+)")
_MODULES = {"i": "ICMP", "u": "UDP", "t": "TCP"}


@dataclass(frozen=True, slots=True)
class HpctPing:
    """A probe and its outcome, with the columns of version 2."""

    module: str
    measurement: int
    source: str
    destination: str
    sent_ns: int
    burst_position: int
    traffic_class: int
    packet_bytes: int
    response_bytes: int
    checksum: int
    source_port: int
    destination_port: int
    status: int
    time_source: int
    app_send_ns: int
    queueing_ns: int
    app_receive_ns: int
    application_ns: int
    software_ns: int
    hardware_ns: int

    @property
    def answered(self) -> bool:
        """Whether the destination has replied."""
        return self.status == ANSWERED


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop of a traceroute."""

    sent_ns: int
    number: int
    response_bytes: int
    status: int
    time_source: int
    app_send_ns: int
    queueing_ns: int
    app_receive_ns: int
    application_ns: int
    software_ns: int
    hardware_ns: int
    address: str


@dataclass(frozen=True, slots=True)
class Traceroute:
    """A round of a traceroute."""

    module: str
    measurement: int
    source: str
    destination: str
    run_ns: int
    round: int
    total_hops: int
    traffic_class: int
    packet_bytes: int
    checksum: int
    source_port: int
    destination_port: int
    status_flags: int
    path_hash: int
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class Jitter:
    """Packets, mean latency and jitter (RFC 3550) of each part of a round of pings, in ns."""

    module: str
    measurement: int
    source: str
    destination: str
    run_ns: int
    round: int
    traffic_class: int
    packet_bytes: int
    checksum: int
    source_port: int
    destination_port: int
    status: int
    time_source: int
    jitter_type: int
    app_send: tuple[int, int, int]
    queueing: tuple[int, int, int]
    app_receive: tuple[int, int, int]
    application: tuple[int, int, int]
    software: tuple[int, int, int]
    hardware: tuple[int, int, int]


@dataclass(slots=True)
class Results:
    """Content of a file. Early files of version 2 and all of version 1 have no header."""

    program: str | None = None
    pings: list[HpctPing] = field(default_factory=list)
    traceroutes: list[Traceroute] = field(default_factory=list)
    jitters: list[Jitter] = field(default_factory=list)


def read_hpct(path: str | os.PathLike[str]) -> Results:
    """Read a results file of HiPerConTracer.

    Raises:
        RoundTripError: when it cannot be read; says which line is wrong, and what was expected.

    """
    path = Path(path)
    results = Results()
    hops: list[Hop] = []
    with reading(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                _read_line(results, hops, line.rstrip("\n"))
            except (ValueError, IndexError) as error:
                message = f"{path}, line {number}: {error}, expected a line of HiPerConTracer"
                raise RoundTripError(message) from error
    _close_hops(results, hops)
    return results


def _read_line(results: Results, hops: list[Hop], line: str) -> None:
    if line.startswith("\t"):
        if not results.traceroutes:
            raise ValueError("a hop before any traceroute")
        hops.append(_hop(results.traceroutes[-1], line.split()))
        return
    _close_hops(results, hops)
    header = _HEADER.match(line)
    if header:
        results.program = header[3]
        return
    columns = line.split()
    kind = columns[0] if columns else ""
    if kind in _READERS:
        _READERS[kind](results, columns)
    elif line:
        raise ValueError(f"{line[:20]!r} is not the start of a known result")


def _close_hops(results: Results, hops: list[Hop]) -> None:
    if hops:
        last = results.traceroutes[-1]
        results.traceroutes[-1] = Traceroute(*(*_fields(last)[:-1], tuple(hops)))
        hops.clear()


def _fields(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _hex(text: str) -> int:
    return int(text, 16)


def _microseconds(text: str) -> int:
    return int(text) * 1_000


def _hex_microseconds(text: str) -> int:
    return int(text, 16) * 1_000


def _application_source(text: str) -> int:
    """One byte in version 1, of what version 2 calls the application."""
    return int(text, 16) << 24


def _parsed(columns: Sequence[str], parsers: Sequence[_Parser], optional: int = 0) -> list[Any]:
    """Parse columns; the last ones may be missing: 0 then."""
    missing = len(parsers) - len(columns)
    if not 0 <= missing <= optional:
        wanted = " or ".join(str(len(parsers) - count) for count in range(optional, -1, -1))
        raise ValueError(f"{len(columns)} columns instead of {wanted}")
    filled = (*columns, *("0" for _ in range(missing)))
    return [parse(text) for parse, text in zip(parsers, filled, strict=True)]


#: Measurement, source, destination, and when.
_WHAT = (int, _address, _address, _hex)
#: Those of version 2 in front of the ports, and behind them.
_PING = ((int, _hex, int, int, _hex), (int, _hex, *(int,) * 6))
_TRACEROUTE = ((int, int, _hex, int, _hex), (_hex, _hex))
_JITTER = ((int, _hex, int, _hex), (int, _hex, int, *(int,) * 18))
_HOP = (_hex, int, int, int, _hex, *(int,) * 6, _address)


def _version_2(columns: list[str], kind: tuple[Sequence[_Parser], Sequence[_Parser]]) -> list[Any]:
    """Parse a line; before 2.0.0~beta6 there were no ports."""
    before, behind = kind
    at = 1 + len(_WHAT) + len(before)
    if len(columns) == at + len(behind):
        columns = [*columns[:at], "0", "0", *columns[at:]]
    parsed = _parsed(columns[1:], (*_WHAT, *before, int, int, *behind))
    return [_MODULES[columns[0][2]], *parsed]


def _ping_2(results: Results, columns: list[str]) -> None:
    results.pings.append(HpctPing(*_version_2(columns, _PING)))


def _traceroute_2(results: Results, columns: list[str]) -> None:
    results.traceroutes.append(Traceroute(*(*_version_2(columns, _TRACEROUTE), ())))


def _jitter_2(results: Results, columns: list[str]) -> None:
    parsed = _version_2(columns, _JITTER)
    triplets = (tuple(parsed[at : at + 3]) for at in range(len(parsed) - 18, len(parsed), 3))
    results.jitters.append(Jitter(*parsed[:-18], *triplets))


def _ping_1(results: Results, columns: list[str]) -> None:
    kinds = (_address, _address, _hex_microseconds, _hex, int, _microseconds)
    source, destination, sent_ns, checksum, status, took_ns, traffic_class, size, by = _parsed(
        columns[1:], (*kinds, _hex, int, _application_source), optional=3
    )
    results.pings.append(
        HpctPing(
            "ICMP", 0, source, destination, sent_ns, 0, traffic_class, size, 0, checksum, 0, 0,
            status, by, -1, -1, -1, took_ns, -1, -1,
        )
    )  # fmt: skip


def _traceroute_1(results: Results, columns: list[str]) -> None:
    kinds = (_address, _address, _hex_microseconds, int, _hex, int, _hex, _hex)
    source, destination, run_ns, number, checksum, hops, flags, path, traffic_class, size = _parsed(
        columns[1:], (*kinds, _hex, int), optional=2
    )
    results.traceroutes.append(
        Traceroute(
            "ICMP", 0, source, destination, run_ns, number, hops, traffic_class, size, checksum,
            0, 0, flags, path, (),
        )
    )  # fmt: skip


def _hop(traceroute: Traceroute, columns: list[str]) -> Hop:
    if len(columns) == len(_HOP):
        return Hop(*_parsed(columns, _HOP))
    number, status, took_ns, address, by = _parsed(
        columns, (int, _hex, _microseconds, _address, _application_source), optional=1
    )
    return Hop(traceroute.run_ns, number, 0, status, by, -1, -1, -1, took_ns, -1, -1, address)


_READERS: dict[str, Callable[[Results, list[str]], None]] = {"#P": _ping_1, "#T": _traceroute_1}
for _letter in _MODULES:
    _READERS[f"#P{_letter}"] = _ping_2
    _READERS[f"#T{_letter}"] = _traceroute_2
    _READERS[f"#J{_letter}"] = _jitter_2


def hpct_name(pings: Sequence[HpctPing], compression: str | None = "xz") -> str:
    """Return the name that HiPerConTracer gives a file: its importer looks for such names."""
    first = pings[0]
    moment = dt.datetime.fromtimestamp(first.sent_ns // 10**9, tz=dt.UTC)
    stamp = f"{moment:%Y%m%dT%H%M%S}.{first.sent_ns % 10**9 // 1_000:06d}"
    extension = f".{compression}" if compression else ""
    return (
        f"Ping-{first.module}-#{first.measurement}-{first.source}-{stamp}-000000001.hpct{extension}"
    )


def write_hpct(path: str | os.PathLike[str], pings: Iterable[HpctPing]) -> None:
    """Write ping results, version 2; the end of the name says how to compress: xz, bz2, gz, zst.

    Raises:
        OutputError: when the file cannot be written.

    """
    letters = {module: letter for letter, module in _MODULES.items()}
    with writing(Path(path)) as file:
        file.write(f"#? HPCT Ping 2 tailtrim/{VERSION}\n")
        for ping in pings:
            module, measurement, source, destination, sent_ns, position, *rest = astuple(ping)
            traffic_class, size, response, checksum, *ports, status, time_source = rest[:8]
            times = " ".join(map(str, rest[8:]))
            file.write(
                f"#P{letters[module]} {measurement} {source} {destination} {sent_ns:x} {position} "
                f"{traffic_class:x} {size} {response} {checksum:x} {ports[0]} {ports[1]} {status} "
                f"{time_source:08x} {times}\n"
            )
