"""When a load generator was not up to its schedule: :class:`Departures`."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Departures:
    """Times from and to in ns of the clock of the stamps, in order.

    ``stalled``: the generator's CPU stood still in the middle of sending. A packet that entered
    then may have waited in the generator's hands, so it is set aside. ``late``: the generator sent
    probes later than intended. These are samples; the result says what it is without them.
    """

    stalled: tuple[Span, ...] = ()
    late: tuple[Span, ...] = ()

    @classmethod
    def read(cls, log: Path) -> Self:
        """Read what ``tailtrim-agent generate --stall-log`` writes.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not such a log.

        """
        spans: dict[str, list[Span]] = {"stalled": [], "late": []}
        with log.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                try:
                    spans[row["kind"]].append((int(row["from_ns"]), int(row["to_ns"])))
                except (KeyError, TypeError, ValueError) as error:
                    message = f"{log}: {row}: expected kind,from_ns,to_ns of generate --stall-log"
                    raise ValueError(message) from error
        return cls(tuple(spans["stalled"]), tuple(spans["late"]))

    def without_stalls(self) -> Self:
        """Return these where a stall of the generator's CPU is one of the device's, too."""
        return replace(self, stalled=())


#: Nothing is known to have been wrong.
WELL = Departures()
