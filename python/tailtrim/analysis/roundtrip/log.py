"""Log of ``tailtrim-agent ping --log``: a record of eighteen integers for each round trip.

The fields and their order are those of ``Field`` in ``crates/probes/src/ping/log.rs``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.roundtrip.hpct import ANSWERED, TIMEOUT, HpctPing
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import RoundTripError
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

FIELDS = (
    "number", "intended_ns", "app_send_ns", "queued_ns", "sent_ns", "nic_sent_ns",
    "far_received_ns", "far_sent_ns", "nic_received_ns", "received_ns", "app_receive_ns",
    "round_trip_ns", "status", "bytes", "reply_bytes", "reply_hops", "far_left_ns", "far_number",
)  # fmt: skip

#: Columns that are always present.
_ALWAYS = {"number", "intended_ns", "app_send_ns", "status", "bytes"}

_MISSING = -(2**63)
_ETHERNET = 14
#: Nibbles of HiPerConTracer's time source: its own clock, and the kernel's and the NIC's stamps.
_CLOCK, _KERNEL, _NIC = 0x1, 0x6, 0xA


def results(folder: Path) -> dict[str, Any]:
    """Read the result of the measurement.

    Raises:
        RoundTripError: there is none.

    """
    path = folder / "ping.json"
    try:
        told: dict[str, Any] = parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RoundTripError(f"{path}: cannot be read: {error}") from error
    return told


def table(folder: Path, index: int) -> pa.Table:
    """Read the round trips of a stream: the columns are :data:`FIELDS`, null where missing.

    Raises:
        RoundTripError: they cannot be read.

    """
    import numpy as np  # noqa: PLC0415 - these take longer to import than most commands run
    import pyarrow as pa  # noqa: PLC0415

    path = folder / f"{index}.roundtrips"
    try:
        values = np.fromfile(path, "<i8")
        records = values.reshape(-1, len(FIELDS))
    except (OSError, ValueError) as error:
        raise RoundTripError(f"{path}: cannot be read: {error}") from error
    arrays = [
        pa.array(np.ascontiguousarray(column), mask=column == _MISSING) for column in records.T
    ]
    fields = [pa.field(name, pa.int64(), nullable=name not in _ALWAYS) for name in FIELDS]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def leave_runs(folder: Path, out: Path) -> list[Path]:
    """Leave a run directory for each stream: ``out`` itself for one, numbered ones in it for more.

    Raises:
        RoundTripError: the log cannot be read.
        OutputError: a directory cannot be written.

    """
    result = results(folder)
    streams = result["streams"]
    places = [out] if len(streams) == 1 else [out / str(at) for at in range(len(streams))]
    for at, (stream, place) in enumerate(zip(streams, places, strict=True)):
        trips = table(folder, at)
        write_run(
            place,
            _series(trips, result["level"], stream),
            timeout_ns=result["timeout_ns"],
            summary=json.dumps(stream["summary"], indent=2),
            tables={"roundtrip": _described(trips, result, stream)},
        )
    return places


def _described(trips: pa.Table, result: dict[str, Any], stream: dict[str, Any]) -> pa.Table:
    """Keep with the round trips what belongs to all of them, and the statistics of their parts."""
    known = {key: value for key, value in stream.items() if key != "summary"}
    known |= {"level": result["level"], "timeout_ns": result["timeout_ns"]}
    return trips.replace_schema_metadata({"tailtrim.ping": json.dumps(known)})


def _series(trips: pa.Table, level: str, stream: dict[str, Any]) -> Series:
    """Return the round trips at the level that was asked for; unstamped ones take no part."""
    import numpy as np  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    answered = pc.equal(trips["status"], ANSWERED)
    trips = trips.filter(pc.or_(pc.invert(answered), pc.is_valid(trips["round_trip_ns"])))
    begin = trips["app_send_ns"]
    if level != "application":
        begin = pc.coalesce(trips["sent_ns"], begin)
    return Series(
        name=stream["name"],
        sent_ns=np.asarray(begin),
        answered=np.asarray(trips["status"]) == ANSWERED,
        round_trip_ns=np.asarray(pc.fill_null(trips["round_trip_ns"], -1)),
        length=stream["packet_bytes"] + _ETHERNET,
    )


def pings(trips: pa.Table) -> Iterator[HpctPing]:
    """Yield the round trips as HiPerConTracer tells them.

    Raises:
        RoundTripError: the table was not left by ``tailtrim ping``.

    """
    try:
        stream = json.loads((trips.schema.metadata or {})[b"tailtrim.ping"])
    except (KeyError, ValueError) as error:
        raise RoundTripError("the round trips name no target") from error
    (target, port), (local, local_port) = map(_endpoint, (stream["target"], stream["local"]))
    is_icmp = stream["protocol"] == "icmp"
    intended_before, position, sent_ns = None, 0, -1
    for trip in trips.to_pylist():
        position = position + 1 if trip["intended_ns"] == intended_before else 0
        intended_before = trip["intended_ns"]
        # HiPerConTracer's tools take a time for one probe, "Duplicate entry" otherwise: those that
        # were sent by one call are a nanosecond apart.
        sent_ns = max(trip["app_send_ns"], sent_ns + 1)
        yield HpctPing(
            module="ICMP" if is_icmp else "UDP",
            measurement=0,
            source=local,
            destination=target,
            sent_ns=sent_ns,
            burst_position=position,
            traffic_class=stream["traffic_class"] or 0,
            packet_bytes=trip["bytes"],
            response_bytes=trip["reply_bytes"] or 0,
            checksum=0xFFFF if is_icmp else 0,
            source_port=0 if is_icmp else local_port,
            destination_port=0 if is_icmp else port,
            status=trip["status"],
            time_source=_time_source(trip),
            app_send_ns=_between(trip, "app_send_ns", "queued_ns"),
            queueing_ns=_between(trip, "queued_ns", "sent_ns"),
            app_receive_ns=_between(trip, "received_ns", "app_receive_ns"),
            application_ns=_application_ns(trip, stream["timeout_ns"]),
            software_ns=_between(trip, "sent_ns", "received_ns"),
            hardware_ns=_between(trip, "nic_sent_ns", "nic_received_ns"),
        )


def _application_ns(trip: dict[str, Any], timeout_ns: int) -> int:
    """Return the round-trip time, or what HiPerConTracer has in its place."""
    return (
        timeout_ns if trip["status"] == TIMEOUT else _between(trip, "app_send_ns", "app_receive_ns")
    )


def _between(trip: dict[str, Any], start: str, end: str) -> int:
    if trip[start] is None or trip[end] is None:
        return -1
    return int(trip[end] - trip[start])


def _time_source(trip: dict[str, Any]) -> int:
    """Return eight nibbles: for each part, the sources of its end and start stamps, 0 for none."""
    parts = (
        ("app_receive_ns", "app_send_ns", _CLOCK),
        ("sent_ns", "queued_ns", _KERNEL),
        ("received_ns", "sent_ns", _KERNEL),
        ("nic_received_ns", "nic_sent_ns", _NIC),
    )
    code = 0
    for end, start, source in parts:
        for point in (end, start):
            code = code << 4 | (0 if trip[point] is None else source)
    return code


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]").partition("%")[0], int(port)
