"""Spans of a watch as HdrHistogram's interval log: an interval for each minute of each target.

Targets are tags, minutes are in order. What one tag may not have, a comma or white space, is an
underscore in it.
"""

from __future__ import annotations

import heapq
import re
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.analysis.watched import MINUTE_NS, NONE
from tailtrim.errors import RoundTripError
from tailtrim.publishing.export import Conversion, hdr, interval_log
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Account, Minute

_DIGITS = 3
#: So that a tag ends where the format says, and is one word.
_NOT_IN_TAGS = re.compile(r"[\s,\x00-\x1f]")


def write(accounts: Sequence[Account], name: str, out: Path) -> Conversion:
    """Write ``NAME.hlog``.

    Raises:
        RoundTripError: a file cannot be read, or no minute is in the span.
        OutputError: the file cannot be written.

    """
    path = out / f"{name}.hlog"
    tags = _tags(accounts)
    streams = [_minutes(account, tag) for account, tag in zip(accounts, tags, strict=True)]
    minutes = heapq.merge(*streams, key=itemgetter(0))
    first = next(minutes, None)
    if first is None:
        raise RoundTripError(f"{name}: no minute in this span")
    start_ns = first[0]
    negative = 0
    with replacing(path) as file:
        file.write(interval_log.header(start_ns).encode())
        for begin_ns, tag, minute in chain([first], minutes):
            took_ns = minute.took_ns[minute.took_ns != NONE]
            histogram = hdr.histogram_up_to(int(took_ns.max(initial=0)), significant_digits=_DIGITS)
            values, counts = np.unique(hdr.coarse(took_ns, histogram), return_counts=True)
            negative += hdr.record(histogram, values, counts)
            begin_s, length_s = (begin_ns - start_ns) // 10**9, MINUTE_NS // 10**9
            line = interval_log.line(begin_s, histogram, length_s=length_s, tag=tag)
            file.write(line.encode())
    return Conversion((path,), hdr.left_out(negative, path))


def _minutes(account: Account, tag: str) -> Iterator[tuple[int, str, Minute]]:
    for minute in account.minutes():
        yield minute.begin_ns, tag, minute


def _tags(accounts: Sequence[Account]) -> list[str]:
    """Return a tag for each target, no two alike: with its host where there are several."""
    hosts = {account.target.host for account in accounts}
    named = [
        f"{account.target.host}/{account.target.name}" if len(hosts) > 1 else account.target.name
        for account in accounts
    ]
    found: list[str] = []
    for name in named:
        tag = _NOT_IN_TAGS.sub("_", name)
        found.append(tag if tag not in found else f"{tag}_{len(found)}")
    return found
