"""Spans of a watch as ping results of HiPerConTracer, version 2, for its importer.

A minute does not say why each probe was not answered, from which port it left, or with how many
bytes: all of these have the status of a timeout, and what is unknown is 0.
"""

from __future__ import annotations

import ipaddress
import zlib
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from tailtrim import units
from tailtrim.analysis.roundtrip.hpct import ANSWERED, TIMEOUT, HpctPing, hpct_name, write_hpct
from tailtrim.analysis.watched import NONE, TAP
from tailtrim.errors import RoundTripError
from tailtrim.publishing.export import Conversion
from tailtrim.results.summary import Notice
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Account, Minute, Target

#: By the stamps of a target: column of the round trip, and HiPerConTracer's code of their source.
_LEVELS = {
    "application": ("application_ns", 0x11000000),
    "software": ("software_ns", 0x00006600),
    "hardware": ("hardware_ns", 0x000000AA),
}


_DAY_NS = 86_400 * 10**9


class _Destination(NamedTuple):
    """Address of a target from a time on."""

    from_ns: int
    address: str
    port: int


def write(accounts: Sequence[Account], _name: str, out: Path) -> Conversion:
    """Write ``Ping-….hpct.xz`` of each day of each target, named as the importer expects it.

    Raises:
        RoundTripError: a file cannot be read, an address is unknown, or no target is probed.
        OutputError: a file cannot be written.

    """
    files, probed = [], [one for one in accounts if one.target.kind != TAP]
    if not probed:
        told = "a device that is tapped has no pings, expected a target that is probed"
        raise RoundTripError(f"{accounts[0].target.folder}: {told}")
    for account in probed:
        pings = chain.from_iterable(map(_Pings(account.target).of, account.minutes()))
        for _, of_day in groupby(pings, lambda ping: ping.sent_ns // _DAY_NS):
            of_file = iter(of_day)
            first = next(of_file)
            files.append(out / hpct_name([first]))
            write_hpct(files[-1], chain([first], of_file))
    unknown = Notice(
        "unknown",
        len(files),
        "source addresses and packet sizes are unknown to a watch: they are 0, and the number of"
        " each target tells the measurements apart",
    )
    taps = len(accounts) - len(probed)
    left_out = Notice("taps", taps, f"{units.counted(taps, 'tap')} left out: these have no pings")
    notices = ([unknown] if files else []) + ([left_out] if taps else [])
    return Conversion(tuple(files), tuple(notices))


class _Pings:
    """Probes of a target as HiPerConTracer tells them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._destinations = list(_destinations(target))
        self._column, self._source = _LEVELS.get(
            str(target.told.get("stamps")), _LEVELS["application"]
        )
        self._is_icmp = target.told.get("protocol") == "icmp"
        # The same in each conversion, so that days that are imported one by one belong together.
        name = f"{target.host}/{target.name}".encode(errors="backslashreplace")
        self._number = zlib.crc32(name) & 0x7FFFFFFF
        self._sent_ns = -1

    def of(self, minute: Minute) -> list[HpctPing]:
        """Return the probes of a minute."""
        to = self._destination(minute.begin_ns)
        local = "::" if ":" in to.address else "0.0.0.0"  # noqa: S104 - unknown
        found = []
        for sent_ns, took_ns in zip(minute.sent_ns.tolist(), minute.took_ns.tolist(), strict=True):
            # The importer takes a time for one probe.
            self._sent_ns = max(sent_ns, self._sent_ns + 1)
            answered = took_ns != NONE
            times = {"application_ns": -1, "software_ns": -1, "hardware_ns": -1}
            times[self._column if answered else "application_ns"] = (
                took_ns if answered else self._target.timeout_ns
            )
            found.append(
                HpctPing(
                    module="ICMP" if self._is_icmp else "UDP",
                    measurement=self._number,
                    source=local,
                    destination=to.address,
                    sent_ns=self._sent_ns,
                    burst_position=0,
                    traffic_class=0,
                    packet_bytes=0,
                    response_bytes=0,
                    checksum=0xFFFF if self._is_icmp else 0,
                    source_port=0,
                    destination_port=0 if self._is_icmp else to.port,
                    status=ANSWERED if answered else TIMEOUT,
                    time_source=self._source,
                    app_send_ns=-1,
                    queueing_ns=-1,
                    app_receive_ns=-1,
                    **times,
                )
            )
        return found

    def _destination(self, ns: int) -> _Destination:
        before = [one for one in self._destinations if one.from_ns <= ns]
        if not self._destinations:
            raise RoundTripError(
                f"{self._target.folder}: its IP address is unknown, expected one in target.json or"
                " in the watch's events.jsonl: pull that, too"
            )
        return before[-1] if before else self._destinations[0]


def _destinations(target: Target) -> Iterator[_Destination]:
    """Yield the addresses of a target, by the time from which on they were used."""
    if found := _endpoint(0, str(target.told.get("address", ""))):
        yield found
        return
    try:
        lines = (target.folder.parent / "events.jsonl").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = parsed(line.decode())
            if event["event"] == "address" and event["target"] == target.name:
                found = _endpoint(int(event["at_ns"]), str(event["told"]))
                if found:
                    yield found
        except (ValueError, KeyError, TypeError):
            # The last line may be cut; what is missing is an address, which is told.
            continue


def _endpoint(from_ns: int, text: str) -> _Destination | None:
    """Read an address with a port or without one; ``None`` of a name."""
    for host, port in ((text, "0"), (text.rpartition(":")[0], text.rpartition(":")[2])):
        try:
            address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
            return _Destination(from_ns, str(address), int(port))
        except ValueError:
            continue
    return None
