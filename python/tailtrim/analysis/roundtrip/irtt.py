"""The JSON that irtt writes (``irtt client -o FILE``): all round trips of a session.

Times are integers in ns. Values that irtt did not measure have no key: without server
stamps there are no one-way delays.
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
class IrttRoundTrip:
    """A packet and its reply. Wall times are UNIX ns of either host's clock."""

    number: int
    lost: str
    """``false``; ``true``, ``true_up`` or ``true_down``: which way, where irtt knows."""
    late: bool
    sent_ns: int
    received_ns: int | None
    far_received_ns: int | None
    far_sent_ns: int | None
    round_trip_ns: int | None
    """Without the time that the server had it, where the server says that."""
    forward_ns: int | None
    backward_ns: int | None

    @property
    def answered(self) -> bool:
        """Whether a reply came."""
        return self.lost == "false"


@dataclass(frozen=True, slots=True)
class IrttSession:
    """Content of a file: irtt's own statistics and settings as they are, and every round trip."""

    version: str
    remote: str
    local: str
    packet_bytes: int
    config: dict[str, Any]
    stats: dict[str, Any]
    round_trips: tuple[IrttRoundTrip, ...]

    @property
    def duplicates(self) -> int:
        """Replies beyond the first."""
        return int(self.stats.get("duplicates", 0))


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
        config = data["config"]
        return IrttSession(
            version=version["irtt"],
            remote=config["remote_address"],
            local=config["local_address"],
            packet_bytes=int(config["params"]["length"]),
            config=config,
            stats=data["stats"],
            round_trips=tuple(_round_trip(trip) for trip in data["round_trips"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RoundTripError(f"{path}: the JSON of irtt lacks {error}") from error


def _round_trip(trip: dict[str, Any]) -> IrttRoundTrip:
    stamps, delay = trip["timestamps"], trip.get("delay", {})
    client, server = stamps["client"], stamps.get("server", {})
    # Before 0.9.1 a boolean.
    lost = str(trip["lost"]).lower()
    return IrttRoundTrip(
        number=int(trip["seqno"]),
        lost=lost,
        late=bool(trip.get("late", False)),
        sent_ns=int(client["send"]["wall"]),
        received_ns=_wall(client, "receive"),
        far_received_ns=_wall(server, "receive"),
        far_sent_ns=_wall(server, "send"),
        round_trip_ns=_integer(delay.get("rtt")) if lost == "false" else None,
        forward_ns=_integer(delay.get("send")),
        backward_ns=_integer(delay.get("receive")),
    )


def _wall(side: dict[str, Any], what: str) -> int | None:
    # 0 where there is none.
    return _integer(side.get(what, {}).get("wall")) or None


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
