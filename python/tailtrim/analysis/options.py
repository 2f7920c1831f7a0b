"""Options that all engines read alike."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Self, TypedDict

from tailtrim._native import confidence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Header fields that the device under test may rewrite, by the name of their mask.
MASKS = ("nat", "tos", "tunnel")

_LONGEST_NS = 2**61
_SECOND_NS = 10**9
#: Those of all commands, and of the agent.
_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": _SECOND_NS,
    "min": 60 * _SECOND_NS,
    "h": 3_600 * _SECOND_NS,
}


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


class MatchingOptions(TypedDict, total=False):
    """Options of the packet matching, see :func:`tailtrim.analyze`."""

    signature: str | None
    masks: Sequence[str]
    skip_s: str | float
    window_s: str | float
    quantiles: Sequence[str]
    confidence: str
    x552_trailer: bool
    nanoseconds: bool
    salvage: bool
    in_order: bool
    direction: str | None


def native(
    matching: MatchingOptions,
    departures: Departures = WELL,
    correction_ns: int = 0,
    *,
    lost: int = 0,
    fit_clocks: bool = False,
) -> dict[str, Any]:
    """Return options as the native matcher takes them, with the number of lost packets to keep.

    Raises:
        ValueError: one of them makes no sense.

    """
    return {
        "signature": matching.get("signature"),
        "masks": known_masks(matching.get("masks", ())),
        "trim_ns": nanoseconds("skip", matching.get("skip_s", 0)),
        "window_ns": nanoseconds("window", matching.get("window_s", 5)),
        "quantiles": list(matching.get("quantiles", ())),
        "confidence": confidence(matching.get("confidence", "0.95")),
        "x552_trailer": matching.get("x552_trailer", False),
        "nanoseconds": matching.get("nanoseconds", False),
        "salvage": matching.get("salvage", False),
        "watched_to_the_end": False,
        **asdict(departures),
        "correction_ns": correction_ns,
        "in_order": matching.get("in_order", False),
        "direction": matching.get("direction"),
        "lost": lost,
        "fit_clocks": fit_clocks,
    }


def known_masks(masks: Sequence[str]) -> list[str]:
    """Return the masks; each is one of :data:`MASKS`.

    Raises:
        ValueError: when one is not.

    """
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        raise ValueError(f"unknown mask {unknown[0]!r}, expected one of {', '.join(MASKS)}")
    return list(masks)


def cores(jobs: int | None) -> int | None:
    """Return how many cores to use at most, if that is said.

    Raises:
        ValueError: fewer than one.

    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs {jobs}, expected 1 or more")
    return jobs


def nanoseconds(
    name: str, time: str | float, *, unit_ns: int = _SECOND_NS, example: str = "5s or 250ms"
) -> int:
    """Return a time such as ``10s`` or ``500ms`` as a whole number of nanoseconds.

    Args:
        name: name of the setting, for the error.
        time: the time, with its unit or as a number of ``unit_ns``.
        unit_ns: the unit of a number without one; by default a second.
        example: of such a time, for the error.

    Raises:
        ValueError: the time is invalid.

    """
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?) ?([nuµm]?s|min|h)?", str(time))
    try:
        exact = Decimal(found[1]) * _UNITS_NS.get(found[2], unit_ns) if found else None
    except InvalidOperation:
        exact = None
    if exact is None or exact >= _LONGEST_NS:
        raise ValueError(f"invalid {name} {str(time)!r}, expected a time such as {example}")
    return int(exact)


def share(name: str, text: str | float, example: str) -> float:
    """Return a share, as a percentage or as a number.

    >>> share("width", "2%", example="2% or 0.02")
    0.02

    Raises:
        ValueError: it is neither.

    """
    words = str(text).strip()
    try:
        exact = Decimal(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except InvalidOperation:
        exact = Decimal("nan")
    if not exact.is_finite():
        raise ValueError(f"invalid {name} {words!r}, expected {example}")
    return float(exact)
