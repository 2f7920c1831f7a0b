"""The JSON that irtt writes (``irtt client -o FILE``): all round trips of a session.

Times are integers in ns. Values that irtt did not measure have no key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.errors import RoundTripError
from tailtrim.tool import Tool

if TYPE_CHECKING:
    import os

#: Program that writes these files.
IRTT = Tool("irtt", "irtt", service=True)
#: The version of the format that is understood.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class IrttSession:
    """Round trips of a file: when each packet was sent, and its round-trip time, -1 if unknown.

    Both are UNIX ns and ns; the time that the server had a packet is left out where it says that.
    """

    remote: str
    packet_bytes: int
    sent_ns: tuple[int, ...]
    round_trip_ns: tuple[int, ...]


def read_irtt(path: str | os.PathLike[str]) -> IrttSession:
    """Read a session of irtt.

    Raises:
        RoundTripError: when it cannot be read or is none.

    """
    path = Path(path)
    with reading(path) as file:
        try:
            data = json.load(file)
        except ValueError as error:
            raise RoundTripError(f"{path}: not a JSON file of irtt: {error}") from error
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, dict):
        raise RoundTripError(f"{path}: not a JSON file of irtt: it has no version")
    if version.get("json_format") != FORMAT:
        found = version.get("json_format")
        raise RoundTripError(f"{path}: format {found!r} of irtt, expected {FORMAT}")
    try:
        config, trips = data["config"], data["round_trips"]
        return IrttSession(
            remote=config["remote_address"],
            packet_bytes=int(config["params"]["length"]),
            sent_ns=tuple(int(trip["timestamps"]["client"]["send"]["wall"]) for trip in trips),
            round_trip_ns=tuple(map(_round_trip_ns, trips)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RoundTripError(f"{path}: the JSON of irtt lacks {error}") from error


def _round_trip_ns(trip: dict[str, Any]) -> int:
    # Before 0.9.1 a boolean; of a lost packet it may say which way.
    answered = str(trip["lost"]).lower() == "false"
    return int(trip.get("delay", {}).get("rtt", -1)) if answered else -1
