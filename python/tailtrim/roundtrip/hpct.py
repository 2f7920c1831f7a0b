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
from tailtrim.roundtrip.compression import reading, writing
from tailtrim.roundtrip.errors import RoundTripError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

#: The status of an answered probe.
ANSWERED = 255

_UNKNOWN_CHECKSUM = 0xFFFF
_HEADER = re.compile(r"#\? HPCT (\S+) (\d+) (\S+)")
_MODULES = {"i": "ICMP", "u": "UDP", "t": "TCP"}


@dataclass(frozen=True, slots=True)
class HpctPing:
    """A probe and what became of it, with the columns of version 2."""

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
    """What a file holds. Early files of version 2 and all of version 1 have no header."""

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
        raise ValueError(f"{line[:20]!r} starts no known result")


def _close_hops(results: Results, hops: list[Hop]) -> None:
    if hops:
        last = results.traceroutes[-1]
        results.traceroutes[-1] = Traceroute(*(*_fields(last)[:-1], tuple(hops)))
        hops.clear()


def _fields(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)


def _expect(columns: Sequence[str], *counts: int) -> None:
    if len(columns) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ValueError(f"{len(columns)} columns instead of {wanted}")


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _ping_1(results: Results, columns: list[str]) -> None:
    _expect(columns, 7, 8, 9, 10)
    traffic_class, size, source = (*columns[7:], *("0", "0", "0")[len(columns) - 7 :])
    status = int(columns[5])
    rtt_ns = int(columns[6]) * 1_000
    results.pings.append(
        HpctPing(
            module="ICMP",
            measurement=0,
            source=_address(columns[1]),
            destination=_address(columns[2]),
            sent_ns=int(columns[3], 16) * 1_000,
            burst_position=0,
            traffic_class=int(traffic_class, 16),
            packet_bytes=int(size),
            response_bytes=0,
            checksum=int(columns[4], 16),
            source_port=0,
            destination_port=0,
            status=status,
            # One byte, of what version 2 calls the application.
            time_source=int(source, 16) << 24,
            app_send_ns=-1,
            queueing_ns=-1,
            app_receive_ns=-1,
            application_ns=rtt_ns,
            software_ns=-1,
            hardware_ns=-1,
        )
    )


def _ping_2(results: Results, columns: list[str]) -> None:
    # Before 2.0.0~beta6 without ports.
    _expect(columns, 18, 20)
    ports = (0, 0) if len(columns) == 18 else (int(columns[10]), int(columns[11]))  # noqa: PLR2004
    rest = columns[-8:]
    results.pings.append(
        HpctPing(
            _MODULES[columns[0][2]],
            int(columns[1]),
            _address(columns[2]),
            _address(columns[3]),
            int(columns[4], 16),
            int(columns[5]),
            int(columns[6], 16),
            int(columns[7]),
            int(columns[8]),
            int(columns[9], 16),
            *ports,
            int(rest[0]),
            int(rest[1], 16),
            *map(int, rest[2:]),
        )
    )


def _traceroute_1(results: Results, columns: list[str]) -> None:
    _expect(columns, 9, 10, 11)
    traffic_class, size = (*columns[9:], *("0", "0")[len(columns) - 9 :])
    results.traceroutes.append(
        Traceroute(
            "ICMP",
            0,
            _address(columns[1]),
            _address(columns[2]),
            int(columns[3], 16) * 1_000,
            int(columns[4]),
            int(columns[6]),
            int(traffic_class, 16),
            int(size),
            int(columns[5], 16),
            0,
            0,
            int(columns[7], 16),
            int(columns[8], 16),
            (),
        )
    )


def _traceroute_2(results: Results, columns: list[str]) -> None:
    _expect(columns, 12, 14)
    ports = (0, 0) if len(columns) == 12 else (int(columns[10]), int(columns[11]))  # noqa: PLR2004
    results.traceroutes.append(
        Traceroute(
            _MODULES[columns[0][2]],
            int(columns[1]),
            _address(columns[2]),
            _address(columns[3]),
            int(columns[4], 16),
            int(columns[5]),
            int(columns[6]),
            int(columns[7], 16),
            int(columns[8]),
            int(columns[9], 16),
            *ports,
            int(columns[-2], 16),
            int(columns[-1], 16),
            (),
        )
    )


def _hop(traceroute: Traceroute, columns: list[str]) -> Hop:
    _expect(columns, 4, 5, 12)
    if len(columns) == 12:  # noqa: PLR2004 - version 2
        return Hop(
            int(columns[0], 16),
            int(columns[1]),
            int(columns[2]),
            int(columns[3]),
            int(columns[4], 16),
            int(columns[5]),
            int(columns[6]),
            int(columns[7]),
            int(columns[8]),
            int(columns[9]),
            int(columns[10]),
            _address(columns[11]),
        )
    number, status, rtt_us, address = columns[:4]
    source = int(columns[4], 16) << 24 if len(columns) > 4 else 0  # noqa: PLR2004
    application_ns = int(rtt_us) * 1_000
    return Hop(
        traceroute.run_ns, int(number), 0, int(status, 16), source,
        -1, -1, -1, application_ns, -1, -1, _address(address),
    )  # fmt: skip


def _jitter_2(results: Results, columns: list[str]) -> None:
    _expect(columns, 32)
    triplets = [tuple(map(int, columns[at : at + 3])) for at in range(14, 32, 3)]
    results.jitters.append(
        Jitter(
            _MODULES[columns[0][2]],
            int(columns[1]),
            _address(columns[2]),
            _address(columns[3]),
            int(columns[4], 16),
            int(columns[5]),
            int(columns[6], 16),
            int(columns[7]),
            int(columns[8], 16),
            int(columns[9]),
            int(columns[10]),
            int(columns[11]),
            int(columns[12], 16),
            int(columns[13]),
            *triplets,  # type: ignore[arg-type] # three numbers each
        )
    )


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
