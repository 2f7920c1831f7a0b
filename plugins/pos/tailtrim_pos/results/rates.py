"""Rates of packets that MoonGen logs each second: :func:`rates_of`, :func:`offered`.

::

    [Device: id=0] TX: 0.4000 Mpps, 217.60 Mbit/s (281.60 Mbit/s with framing)

A log's last line of a counter (with ``StdDev`` and totals) is not used: it is the mean over seconds
before the first and after the last packet, too, and the totals of two counters begin at different
times, so that their difference is not the loss.
"""

from __future__ import annotations

import re
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ResultsError
from tailtrim.results.summary import Throughput
from tailtrim_pos.results.bounded import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MOST_BYTES = 16 << 20
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_LINE = re.compile(r"^\[(.+)\] ([TR]X): ([0-9]+\.[0-9]+) Mpps,", re.MULTILINE)
_DEVICE = "Device: "
#: Seconds at both ends of a log that do not count, in which the generator starts and stops: those
#: of the figures of "The pos Framework" (CoNEXT 2021; in its artifacts, plot_throughput.py takes
#: ``[strip:-(strip + 1)]`` with a strip of 2).
_FIRST, _LAST = 2, 3
#: A generator that sends less does not keep up with the load (``limits.sent_share``).
_SENT_SHARE = 0.99


def rates_of(logs: Sequence[Path]) -> Throughput:
    """Return the packets per second that a run sent and received: the sum over its devices.

    Raises:
        ResultsError: a log cannot be read, or has no such rates, or too few.

    """
    counted: dict[str, dict[str, list[float]]] = {"TX": {}, "RX": {}}
    for log in logs:
        for counter, way, mpps in _LINE.findall(_COLOUR.sub("", text_of(log, _MOST_BYTES))):
            counted[way].setdefault(f"{counter} of {log}", []).append(float(mpps))
    names = ", ".join(log.name for log in logs)
    sums = []
    for way, counters in counted.items():
        # A script may count packets of a device again; then the device has them all.
        devices = {name: of for name, of in counters.items() if name.startswith(_DEVICE)}
        kept = [of[_FIRST:-_LAST] for of in (devices or counters).values()]
        if not kept:
            raise ResultsError(f"{names}: no rates of MoonGen, expected lines [Device: id=0] {way}")
        if not all(kept):
            raise ResultsError(f"{names}: fewer than {_FIRST + _LAST + 1} seconds of {way}")
        sums.append(round(sum(map(fmean, kept)) * 1e6))
    return Throughput(*sums)


def offered(runs: Sequence[tuple[dict[str, Any], Throughput]]) -> str | None:
    """Return the loop variable that is the offered load in packets/s.

    No run sent more than its value, and one sent as much: other variables have other numbers.
    """
    for name in dict.fromkeys(name for loop, _ in runs for name in loop):
        values = [(loop.get(name), rates.sent_pps) for loop, rates in runs]
        shares = [
            sent / value
            for value, sent in values
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        ]
        if len(shares) == len(runs) and _SENT_SHARE <= max(shares) <= 1 / _SENT_SHARE:
            return name
    return None
