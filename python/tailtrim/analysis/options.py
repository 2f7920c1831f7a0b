"""Options that all engines read alike."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, TypedDict

from tailtrim import _native

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Header fields that the device under test may rewrite, by the name of their mask.
MASKS = ("nat", "tos", "tunnel")

_LONGEST_NS = 2**61
_SECOND_NS = 10**9

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
    masks: str | Sequence[str]
    skip_s: str | float
    window_s: str | float
    quantiles: str | float | Sequence[str | float]
    confidence: str | float
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
        TypeError: one of them is unknown.

    """
    known = MatchingOptions.__annotations__
    for name in matching.keys() - known.keys():
        near = get_close_matches(name, known, 1)
        meant = f", did you mean {near[0]}?" if near else ""
        raise TypeError(f"unexpected keyword argument {name!r}{meant}")
    return {
        "signature": matching.get("signature"),
        "masks": known_masks(matching.get("masks", ())),
        "trim_ns": nanoseconds("skip", matching.get("skip_s", 0)),
        "window_ns": nanoseconds("window", matching.get("window_s", 5)),
        "quantiles": probabilities(matching.get("quantiles", ())),
        "confidence": confidence_level(matching.get("confidence", "0.95")),
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


def probability(given: str | float) -> str:
    """Return a quantile or a confidence as text, which the native module reads.

    >>> probability("99.9 %"), probability(0.999)
    ('99.9 %', '0.999')

    """
    return given if isinstance(given, str) else f"{Decimal(str(given)):f}"


def confidence_level(given: str | float) -> str:
    """Return a confidence as a decimal number.

    >>> confidence_level("95 %"), confidence_level(0.99)
    ('0.95', '0.99')

    Raises:
        ValueError: it is not below 1.

    """
    return _native.confidence(probability(given))


def probabilities(given: str | float | Sequence[str | float]) -> list[str]:
    """Return quantiles as text; one alone is one."""
    several = [given] if isinstance(given, str | float | int) else given
    return [probability(one) for one in several]


def known_masks(given: str | Sequence[str]) -> list[str]:
    """Return the masks; each is one of :data:`MASKS`, and one alone is one.

    Raises:
        ValueError: when one is not.

    """
    masks = [given] if isinstance(given, str) else list(given)
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        raise ValueError(f"unknown mask {unknown[0]!r}, expected one of {', '.join(MASKS)}")
    return masks


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

    The agent reads texts in the same way: the parser is that of ``crates/wire/src/duration.rs``.

    Args:
        name: name of the setting, for the error.
        time: the time, with its unit or as a number of ``unit_ns``.
        unit_ns: the unit of a number without one; by default a second.
        example: of such a time, for the error.

    Raises:
        ValueError: the time is invalid.

    """
    if isinstance(time, str):
        exact = _native.nanoseconds(time, unit_ns)
    else:
        exact = int(Decimal(str(time)) * unit_ns) if 0 <= time < _LONGEST_NS else None
    if exact is None or exact >= _LONGEST_NS:
        raise ValueError(f"invalid {name} {str(time)!r}, expected a time such as {example}")
    return exact


def amount_of(rate: str) -> tuple[int, str]:
    """Return the amount of a rate such as ``120kpps``, and ``pps`` or ``bit/s``.

    The agent reads it in the same way: the parser is that of ``crates/wire/src/traffic/rate.rs``.

    >>> amount_of("120kpps"), amount_of("1.5Gbit/s"), amount_of("500")
    ((120000, 'pps'), (1500000000, 'bit/s'), (500, 'pps'))

    Raises:
        ValueError: it is not one.

    """
    told = _native.rate(rate)
    unit = "bit/s" if told.endswith("bit/s") else "pps"
    return int(told.removesuffix(unit)), unit


def packets_per_s(text: str) -> int:
    """Return the packets per second of a rate such as ``20kpps`` or ``20k``.

    Raises:
        ValueError: it is not such a rate.

    """
    amount, unit = amount_of(text)
    if unit != "pps":
        raise ValueError(f"rate {text!r}: expected packets per second, such as 20kpps")
    return amount


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
    if not exact.is_finite() or (abs(exact) > 1 and not words.endswith("%")):
        raise ValueError(f"invalid {name} {words!r}, expected {example}")
    return float(exact)
