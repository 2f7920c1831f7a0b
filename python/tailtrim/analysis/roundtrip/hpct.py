"""Results of HiPerConTracer: lines of columns, as its manual page describes them.

Version 1 (before 2.0.0) has microseconds and only ICMP, version 2 nanoseconds and the parts of each
round trip. -1 stands for what is not known. A result that is not a reply has the time after which
that was known in its round-trip times, not a sample.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
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
#: The status of an answered probe, and of one without an answer in time.
ANSWERED, TIMEOUT = 255, 200

#: Headers, and hops of traceroutes.
_NO_RESULTS = ("#?", "\t")
#: Starts of results that are no pings, and their names; of Jitter only means and jitter are kept.
_OTHERS = {"#J": "Jitter", "#T": "Traceroute"}
_HEADER = "#? HPCT "
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


def read_hpct(path: str | os.PathLike[str]) -> list[HpctPing]:
    """Read the ping results of a file of HiPerConTracer; Traceroute and Jitter are passed over.

    Raises:
        RoundTripError: when it cannot be read; says which line is wrong, and what was expected.

    """
    return read_results(Path(path))[0]


def read_results(path: Path) -> tuple[list[HpctPing], Counter[str]]:
    """Read the ping results of a file of HiPerConTracer, and count the others by their names.

    A name with 0 results is only in the header.

    Raises:
        RoundTripError: as of :func:`read_hpct`.

    """
    pings: list[HpctPing] = []
    others: Counter[str] = Counter()
    with reading(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith(_HEADER):
                others.update({name: 0 for name in _OTHERS.values() if name in line.split()})
            if not line.strip() or line.startswith(_NO_RESULTS):
                continue
            if line[:2] in _OTHERS:
                others[_OTHERS[line[:2]]] += 1
                continue
            try:
                pings.append(_ping(line.split()))
            except (ValueError, KeyError) as error:
                message = f"{path}, line {number}: {error}, expected a line of HiPerConTracer"
                raise RoundTripError(message) from error
    return pings, others


def _ping(columns: list[str]) -> HpctPing:
    """Read a line; before 2.0.0~beta6 there were no ports."""
    kind = columns[0]
    if kind == "#P":
        return _ping_1(columns[1:])
    if kind[:2] != "#P" or kind[2:] not in _MODULES:
        raise ValueError(f"{kind[:20]!r} is not the start of a known result")
    if len(columns) == len(_BEFORE_PORTS) + len(_BEHIND_PORTS) + 1:
        at = 1 + len(_BEFORE_PORTS)
        columns = [*columns[:at], "0", "0", *columns[at:]]
    parsed = _parsed(columns[1:], (*_BEFORE_PORTS, int, int, *_BEHIND_PORTS))
    return HpctPing(_MODULES[kind[2:]], *parsed)


def _ping_1(columns: list[str]) -> HpctPing:
    kinds = (_address, _address, _hex_microseconds, _hex, int, _microseconds)
    source, destination, sent_ns, checksum, status, took_ns, traffic_class, size, by = _parsed(
        columns, (*kinds, _hex, int, _application_source), optional=3
    )
    return HpctPing(
        "ICMP", 0, source, destination, sent_ns, 0, traffic_class, size, 0, checksum, 0, 0,
        status, by, -1, -1, -1, took_ns, -1, -1,
    )  # fmt: skip


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


#: Columns of version 2 in front of the ports, and behind them.
_BEFORE_PORTS = (int, _address, _address, _hex, int, _hex, int, int, _hex)
_BEHIND_PORTS = (int, _hex, *(int,) * 6)
_columns = attrgetter(*HpctPing.__slots__)


def hpct_name(pings: Sequence[HpctPing]) -> str:
    """Return the name that HiPerConTracer gives a file: its importer looks for such names."""
    first = pings[0]
    moment = dt.datetime.fromtimestamp(first.sent_ns // 10**9, tz=dt.UTC)
    stamp = f"{moment:%Y%m%dT%H%M%S}.{first.sent_ns % 10**9 // 1_000:06d}"
    return f"Ping-{first.module}-#{first.measurement}-{first.source}-{stamp}-000000001.hpct.xz"


def write_hpct(path: str | os.PathLike[str], pings: Iterable[HpctPing]) -> None:
    """Write ping results, version 2, compressed where the name ends with ``.xz``.

    Raises:
        OutputError: when the file cannot be written.

    """
    letters = {module: letter for letter, module in _MODULES.items()}
    with writing(Path(path)) as file:
        file.write(f"#? HPCT Ping 2 tailtrim/{VERSION}\n")
        for ping in pings:
            module, measurement, source, destination, sent_ns, position, *rest = _columns(ping)
            traffic_class, size, response, checksum, *ports, status, time_source = rest[:8]
            times = " ".join(map(str, rest[8:]))
            file.write(
                f"#P{letters[module]} {measurement} {source} {destination} {sent_ns:x} {position} "
                f"{traffic_class:x} {size} {response} {checksum:x} {ports[0]} {ports[1]} {status} "
                f"{time_source:08x} {times}\n"
            )
