"""HdrHistogram's interval log, as jHiccup and ``tailtrim convert --format hlog`` write it.

A line has an optional tag, start and length of an interval in s, its largest value and the values
in a histogram: V2-encoded, compressed, in base64. The unit of the values is not part of the format;
only comments may tell it.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from hdrh.histogram import HdrHistogram

from tailtrim.analysis.histograms.bucket_histogram import Bucket, BucketHistogram
from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.errors import Remedy, RoundTripError

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"(?:Tag=(?P<tag>[^,]*),)?[0-9.]+,[0-9.]+,[^,]*,(?P<histogram>[\w+/=]+)")
_COMMENTS = (
    (re.compile("nanosecond|with jHiccup", re.IGNORECASE), 1),
    (re.compile("microsecond", re.IGNORECASE), 1_000),
    (re.compile("millisecond", re.IGNORECASE), 1_000_000),
)
#: Of the encodings: without the bits that hold the width of counts.
_V2_COMPRESSED = 0x1C849304
_OTHERS = {
    0x1C849302: "version 1 of the encoding",
    0x1C849309: "version 0 of the encoding",
    0x0C72120F: "a histogram of floating-point numbers",
}
_HEADER_BYTES = 8
#: Five digits up to 2⁶³ take seven million counts of up to nine bytes.
_MOST_BYTES = 1 << 26

_Counts = Counter[tuple[int, int]]


def read(path: Path, unit_ns: int | None) -> list[BucketHistogram]:
    """Read a log: a histogram for each tag, of all its intervals.

    Args:
        path: the log.
        unit_ns: unit of its values; ``None`` if its comments tell.

    Raises:
        RoundTripError: it cannot be read, or does not tell its unit.

    """
    tags: dict[str, _Counts] = defaultdict(Counter)
    intervals: Counter[str] = Counter()
    told_ns = None
    with reading(path) as lines:
        for number, line in enumerate(map(str.strip, lines), 1):
            if line.startswith("#"):
                told_ns = told_ns or next((ns for word, ns in _COMMENTS if word.search(line)), None)
                continue
            if not line or line.startswith('"'):
                continue
            try:
                tag, found = _interval(line)
            except ValueError as error:
                message = f"{path}, line {number}: {error}, expected a line of HdrHistogram's log"
                raise RoundTripError(message) from error
            tags[tag].update(found)
            intervals[tag] += 1
    if not tags:
        raise RoundTripError(
            f"{path}: HdrHistogram's log ends before its first interval, expected at least one"
        )
    unit_ns = unit_ns or told_ns
    if unit_ns is None:
        failure = RoundTripError(f"{path}: the log does not tell the unit of its values")
        failure.add_note(Remedy("{unit} names it: ns for most tools, us for those such as YCSB"))
        raise failure
    return [
        BucketHistogram(
            name=f"{path.name}{f', tag {tag}' if tag else ''}",
            # A value is what is left of a latency: the part of a unit behind it is not known.
            buckets=tuple(
                Bucket(low * unit_ns, (high + 1) * unit_ns - 1, count)
                for (low, high), count in sorted(counts.items())
            ),
            counters={"intervals": intervals[tag]},
        )
        for tag, counts in tags.items()
    ]


def _interval(line: str) -> tuple[str, _Counts]:
    """Return the tag of an interval, empty without one, and its counts.

    Raises:
        ValueError: it is none, or damaged.

    """
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:40]!r} is not an interval")
    return match["tag"] or "", _decoded(match["histogram"])


def _decoded(text: str) -> _Counts:
    """Return the counts of a histogram by the lowest and highest value of their buckets.

    Raises:
        ValueError: it is damaged, or encoded in another way.

    """
    encoded = base64.b64decode(text, validate=True)
    cookie = int.from_bytes(encoded[:4], "big") & ~0xF0
    if cookie in _OTHERS:
        raise ValueError(
            f"the histogram is {_OTHERS[cookie]}, expected version 2, as HdrHistogram 2.1.10 and"
            " later write it"
        )
    if cookie != _V2_COMPRESSED:
        raise ValueError("the histogram is damaged: it does not begin as one")
    try:
        plain = zlib.decompressobj().decompress(encoded[_HEADER_BYTES:], _MOST_BYTES)
        histogram = HdrHistogram.decode(text) if len(plain) < _MOST_BYTES else None
    except Exception as error:  # hdrh has errors of its own, and those of ctypes and zlib
        raise ValueError(f"the histogram is damaged: {error or type(error).__name__}") from error
    if histogram is None:
        raise ValueError("the histogram is larger than one can be")
    found: _Counts = Counter()
    counts = np.ctypeslib.as_array(histogram.counts)
    if (counts < 0).any():
        raise ValueError("the histogram is damaged: it has a negative count")
    for index in np.flatnonzero(counts).tolist():
        lowest = histogram.get_value_from_index(index)
        found[lowest, histogram.get_highest_equivalent_value(lowest)] = int(counts[index])
    return found
