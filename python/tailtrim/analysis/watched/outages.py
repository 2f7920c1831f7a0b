"""Outages: successive probes that were not answered in time."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from tailtrim.analysis.watched.minute import MINUTE_NS, NONE

if TYPE_CHECKING:
    from tailtrim.analysis.watched.minute import Minute

#: Fewer are single losses.
_FEWEST = 3
#: So many of the longest are kept.
_KEPT = 20


class Outage(NamedTuple):
    """An outage: when its first probe left, and the next one that was answered, or its last one."""

    begin_ns: int
    end_ns: int
    probes: int

    @property
    def length_ns(self) -> int:
        """Return how long it was."""
        return self.end_ns - self.begin_ns


class Outages:
    """Outages of a span, whose minutes are entered in their order; ``count`` is that of all."""

    def __init__(self) -> None:
        """Begin without any."""
        self.count = 0
        self._longest: list[tuple[int, Outage]] = []
        self._open: Outage | None = None
        self._until_ns = 0

    def enter(self, minute: Minute) -> None:
        """Enter a minute; of one whose probes were counted, the order is unknown."""
        import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

        if minute.begin_ns > self._until_ns:
            # Nothing is known of the time between.
            self._close(None)
        self._until_ns = minute.begin_ns + MINUTE_NS
        if "samples" in minute.line:
            self._close(None)
            return
        order = np.argsort(minute.sent_ns, kind="stable")
        sent_ns, bad = minute.sent_ns[order], minute.took_ns[order] == NONE
        if not bad.any():
            if len(sent_ns):
                self._close(int(sent_ns[0]))
            return
        edges = np.flatnonzero(np.diff(bad)) + 1
        for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(bad)], strict=True):
            if not bad[first]:
                self._close(int(sent_ns[first]))
                continue
            begin_ns, probes = int(sent_ns[first]), last - first
            if self._open is not None:
                begin_ns, probes = self._open.begin_ns, self._open.probes + probes
            self._open = Outage(begin_ns, int(sent_ns[last - 1]), probes)

    def longest(self) -> list[Outage]:
        """Return the longest ones, also one that did not end in the span, the longest first."""
        self._close(None)
        return [outage for _, outage in sorted(self._longest, reverse=True)]

    def _close(self, end_ns: int | None) -> None:
        if self._open is not None and self._open.probes >= _FEWEST:
            outage = self._open if end_ns is None else self._open._replace(end_ns=end_ns)
            self.count += 1
            heapq.heappush(self._longest, (outage.length_ns, outage))
            if len(self._longest) > _KEPT:
                heapq.heappop(self._longest)
        self._open = None
