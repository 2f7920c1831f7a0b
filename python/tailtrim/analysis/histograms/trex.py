"""Latency statistics of TRex: JSON of ``get_stats()`` (stateless), or of a stateful server.

Packets are counted in buckets of one decimal digit of their µs: what is counted as 10 took at least
10 and less than 20 µs, as 100 at least 100 and less than 200. A stateless server counts those below
10 µs as 0; a stateful one has only the number of all. None has a bucket for a second or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.analysis.histograms.bucket_histogram import Bucket, BucketHistogram

if TYPE_CHECKING:
    from collections.abc import Iterator

_US = 1_000
#: From here on there are no buckets.
_END_US = 1_000_000
#: Keys beside a histogram, one of which is TRex's.
_BESIDE = {"total_max", "last_max", "s_max", "min_usec", "s_avg"}
_DEEPEST = 32
#: Of counts and times.
_MOST_DIGITS = 18


def histograms(value: Any, name: str, path: tuple[str, ...] = ()) -> Iterator[BucketHistogram]:
    """Yield the histograms in a JSON value, of ports and streams.

    Raises:
        ValueError: one is damaged.

    """
    if not isinstance(value, dict) or len(path) > _DEEPEST:
        return
    for key, inner in value.items():
        if isinstance(inner, dict) and "histogram" in inner and _BESIDE & inner.keys():
            of = path if key in {"latency", "hist"} else (*path, key)
            counters = value.get("err_cntrs", value.get("stats"))
            yield _histogram(inner, f"{name}{_place(of)}", _integers(counters))
        else:
            yield from histograms(inner, name, (*path, key))


def _place(path: tuple[str, ...]) -> str:
    """Return the name of a port or stream from the keys that lead to it."""
    named = [key for key in path if key not in {"latency", "data"}]
    return "".join(f", {f'stream {key}' if key.isdigit() else key}" for key in named)


def _integers(counters: Any) -> dict[str, int]:
    if not isinstance(counters, dict):
        return {}
    return {key: value for key, value in counters.items() if type(value) is int}


def _histogram(told: dict[str, Any], name: str, counters: dict[str, int]) -> BucketHistogram:
    counts = dict(_counts(told["histogram"]))
    longest_us = max(
        (_integer(told.get(key, 0), key) for key in ("total_max", "last_max", "max_usec")),
        default=0,
    )
    shortest_us = _integer(told.get("total_min", 0), "total_min")
    notes = []
    if "cnt" in told and "high_cnt" in told:
        below = _integer(told["cnt"], "cnt") - _integer(told["high_cnt"], "high_cnt")
        beyond = _integer(told["high_cnt"], "high_cnt") - sum(counts.values())
        if below < 0 or beyond < 0:
            raise ValueError(f"{name}: the histogram has more packets than cnt and high_cnt")
        counts |= {0: below} if below else {}
        counts |= {_END_US: beyond} if beyond else {}
    elif longest_us >= _END_US:
        notes.append(
            f"the longest took {longest_us:,} µs: TRex has no bucket for a second or more, so those"
            " packets are not counted, and the quantiles are too small"
        )
    buckets = []
    for low_us, count in sorted(counts.items()):
        high_us = _end_us(low_us) if low_us < _END_US else max(longest_us + 1, low_us)
        # The largest is rounded down; that of the last half second may be missing in it.
        if low_us <= longest_us:
            high_us = min(high_us, longest_us + 1)
        from_us = max(low_us, shortest_us) if shortest_us <= high_us else low_us
        buckets.append(Bucket(from_us * _US, high_us * _US, count))
    return BucketHistogram(name, tuple(buckets), counters, tuple(notes))


def _counts(histogram: Any) -> Iterator[tuple[int, int]]:
    """Yield the starts of buckets and their counts, of an object or of a list of key and value."""
    if isinstance(histogram, list):
        try:
            rows = [(row["key"], row["val"]) for row in histogram]
        except (KeyError, TypeError) as error:
            raise ValueError('a histogram has rows without "key" and "val"') from error
    elif isinstance(histogram, dict):
        rows = list(histogram.items())
    else:
        message = "a histogram is neither an object nor a list"
        raise ValueError(message)  # noqa: TRY004 - the file is wrong, not the caller
    for key, value in rows:
        start, count = _integer(key, "a bucket"), _integer(value, f"the count of bucket {key}")
        if start and start % (_end_us(start) - start):
            raise ValueError(f"bucket {start} is none of TRex, expected such as 0, 10, 90 or 200")
        if count:
            yield start, count


def _integer(value: Any, what: str) -> int:
    text = str(value) if type(value) in {int, str} else ""
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise ValueError(f"{what} is {str(value)[:40]!r}, expected a whole number from 0 up")
    return int(text)


def _end_us(start_us: int) -> int:
    """Return where the next bucket begins.

    >>> _end_us(0), _end_us(90), _end_us(100)
    (10, 100, 200)

    """
    return start_us + max(10, int(10 ** (len(str(start_us)) - 1)))
