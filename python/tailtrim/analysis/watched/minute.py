"""A line of a watch's file: a minute of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.analysis.watched.tap import as_probes
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    import numpy as np

MINUTE_NS = 60 * 10**9
#: Outcomes of probes that left and were not answered in time.
UNANSWERED = ("late", "lost", "altered", "undelivered")
#: Probes that tell nothing about the target: no samples, or never sent.
OF_THE_METER = ("unstamped", "disturbed", "refused", "missed", "cut")
#: All but ``due``, ``unstamped`` and ``disturbed`` add up to ``due``.
OUTCOMES = ("due", "answered", "unstamped", "disturbed", *UNANSWERED, "refused", "missed", "cut")
#: For the round trip of a probe without an answer.
NONE = -(2**62)
#: Least and largest time of a minute, and of a round trip: sums of two fit into 64 bits.
_MOST_NS = 2**61
#: Most probes of a minute: 100,000 a second, ten times.
_MOST_PROBES = 60_000_000
#: A probe leaves at most a second after its minute; clocks that are steered may add to that.
_EARLIEST_US, _LATEST_US = -60_000_000, 120_000_000


class Worst(NamedTuple):
    """The slowest probe of a minute; times of its parts are ``None`` where they are unknown."""

    begin_ns: int
    latency_ns: int
    residence_ns: int | None
    own_host_ns: int | None


class Minute(NamedTuple):
    """A minute: its probes in the order of departures, each with its round trip or :data:`NONE`.

    ``line`` has all that was written, also what this version does not know.
    """

    begin_ns: int
    counts: dict[str, int]
    arrivals: dict[str, int]
    health: dict[str, int]
    worst: Worst | None
    sent_ns: np.ndarray[Any, Any]
    took_ns: np.ndarray[Any, Any]
    line: dict[str, Any]


def read_minute(text: bytes) -> Minute:
    """Read a line.

    Raises:
        ValueError: it is not what a watch writes.

    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    try:
        line = parsed(text.decode())
        if not isinstance(line, dict):
            raise ValueError("not an object")  # noqa: TRY004 - of a file
        if "packets" in line:
            line = as_probes(line)
        begin_ns = _within(line["begin_ns"], 0, _MOST_NS)
        if begin_ns % MINUTE_NS:
            raise ValueError(f"begin_ns {begin_ns} is not the begin of a minute")
        counts = {name: _within(line.get(name, 0), 0, _MOST_PROBES) for name in OUTCOMES}
        if sum(counts.values()) - counts["unstamped"] - counts["disturbed"] != 2 * counts["due"]:
            raise ValueError("outcomes do not add up to due")
        sent_ns, took_ns = _probes(line, begin_ns, counts)
        return Minute(
            begin_ns,
            counts,
            _numbers(line.get("arrivals")),
            _numbers(line.get("health")),
            _worst(line.get("worst")),
            sent_ns,
            took_ns,
            line,
        )
    except KeyError as error:
        raise ValueError(f"{error} is missing") from error
    except (TypeError, OverflowError, ArithmeticError, pa.ArrowException) as error:
        raise ValueError(str(error)) from error


def _within(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r:.40} is not a whole number from {least} to {most}")
    return value


def _numbers(told: Any) -> dict[str, int]:
    """Return the numbers of an object; what is unknown (null) is left out."""
    if not isinstance(told, dict):
        return {}
    return {
        str(name): _within(value, -_MOST_NS, _MOST_NS)
        for name, value in told.items()
        if value is not None
    }


def _worst(told: Any) -> Worst | None:
    if not isinstance(told, dict):
        return None
    known = [
        None if told.get(name) is None else _within(told[name], -_MOST_NS, _MOST_NS)
        for name in Worst._fields
    ]
    begin_ns, latency_ns, residence_ns, own_host_ns = known
    if begin_ns is None or latency_ns is None:
        return None
    return Worst(begin_ns, latency_ns, residence_ns, own_host_ns)


def _probes(
    line: dict[str, Any], begin_ns: int, counts: dict[str, int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return when each probe left, and how long it took."""
    import numpy as np  # noqa: PLC0415 - as above

    took_ns = _integers(line["latency_ns"], "latency_ns", NONE)
    known = took_ns[took_ns != NONE]
    if not _are_within(known, _MOST_NS, -_MOST_NS):
        raise ValueError("latency_ns is beyond 64 bits")
    lost = sum(counts[name] for name in UNANSWERED)
    samples = counts["answered"] - counts["unstamped"] - counts["disturbed"]
    if "samples" in line:
        times = _integers(line["samples"], "samples")
        is_count = len(known) == len(took_ns) == len(times) and _are_within(times, samples)
        if not is_count or int(times.sum()) != samples:
            raise ValueError("samples do not add up to answered")
        took_ns = np.concatenate([np.repeat(took_ns, times), np.full(lost, NONE)])
        # Their order is not known: spread by chance, so that none is put beside its like.
        np.random.default_rng(begin_ns).shuffle(took_ns)
        places = np.arange(len(took_ns), dtype=np.int64)
        return begin_ns + places * MINUTE_NS // max(len(took_ns), 1), took_ns
    if (len(known), len(took_ns) - len(known)) != (samples, lost):
        raise ValueError("latency_ns does not add up to answered and lost")
    at_us = _integers(line["at_us"], "at_us")
    if len(at_us) != len(took_ns):
        raise ValueError("at_us and latency_ns differ in length")
    if not _are_within(at_us, _LATEST_US, _EARLIEST_US):
        raise ValueError("at_us is beyond the minute")
    return begin_ns + at_us * 1_000, took_ns


def _are_within(values: np.ndarray[Any, Any], most: int, least: int = 0) -> bool:
    return not values.size or least <= int(values.min()) <= int(values.max()) <= most


def _integers(told: Any, name: str, null: int | None = None) -> np.ndarray[Any, Any]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if not isinstance(told, list):
        raise ValueError(f"{name} is not a list")  # noqa: TRY004 - of a file
    found = pa.array(told, pa.int64())
    if found.null_count and null is None:
        raise ValueError(f"{name} has a null")
    values: np.ndarray[Any, Any] = (found.fill_null(null) if found.null_count else found).to_numpy()
    return values
