"""Minutes of a target in a span of time, and the account of what is there and what is not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tailtrim.analysis.watched.frames import lines
from tailtrim.analysis.watched.minute import MINUTE_NS, Minute, Worst, read_minute
from tailtrim.analysis.watched.outages import Outages
from tailtrim.analysis.watched.span import Span
from tailtrim.analysis.watched.tap import TAP
from tailtrim.analysis.watched.target import ROUND_TRIP, Target
from tailtrim.errors import RoundTripError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DAY_LETTERS = len("2026-11-29")
_DAY_NS = 86_400 * 10**9
#: So many faults are told with their place; all are counted.
_TOLD = 3
#: Begin of each line that a watch has written.
_BEGIN = re.compile(rb'\{"begin_ns":(\d{1,19}),')
#: So many of the worst minutes are kept.
_WORST = 20


@dataclass
class Account:
    """Account of a span of a target, filled while its minutes are read.

    ``begins_ns`` are the begins of its minutes; a restart leaves two lines of one. ``repeated``
    lines, which are there twice, ``damaged`` frames and ``wrong`` lines are left out; ``places``
    has the first ones of these. ``unordered`` minutes tell how many packets have each latency, and
    not which came when. ``health`` has the largest fault of the meter of each kind.
    """

    target: Target
    span: Span
    counts: Counter[str] = field(default_factory=Counter)
    arrivals: Counter[str] = field(default_factory=Counter)
    health: Counter[str] = field(default_factory=Counter)
    worst: list[Worst] = field(default_factory=list)
    begins_ns: set[int] = field(default_factory=set)
    lines: int = 0
    unordered: int = 0
    repeated: int = 0
    damaged: int = 0
    wrong: int = 0
    places: list[str] = field(default_factory=list)
    outages: Outages = field(default_factory=Outages)

    def minutes(self) -> Iterator[Minute]:
        """Read the minutes, in the order of the file.

        Raises:
            RoundTripError: a file cannot be read, or the target is of another kind.

        """
        if self.target.kind not in {ROUND_TRIP, TAP}:
            raise RoundTripError(
                f"{self.target.folder}: its kind is {self.target.kind!r:.40}, which this version"
                " does not read"
            )
        seen: set[int] = set()
        for path in self.target.days():
            day = path.name[:_DAY_LETTERS]
            if not _has_times(day, self.span):
                continue
            for number, text in self._lines(path):
                if (digest := hash(text)) in seen:
                    self.repeated += 1
                    continue
                seen.add(digest)
                minute = self._read(text, path, number)
                if minute is not None and self._has(minute.begin_ns):
                    self._enter(minute)
                    yield minute

    def _lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a file that may be of the span, with their numbers."""

        def damaged(told: str) -> None:
            self.damaged += 1
            self._place(f"{path.name}: {told}")

        day_ns = _begin_of(path.name[:_DAY_LETTERS])
        for number, text in enumerate(lines(path, damaged), 1):
            # Most lines of a day are not of an hour of it, and take long to parse.
            begin = _BEGIN.match(text)
            begin_ns = int(begin[1]) if begin else -1
            is_of_day = day_ns <= begin_ns < day_ns + _DAY_NS
            if self._has(begin_ns) or not is_of_day:
                yield number, text

    def _read(self, text: bytes, path: Path, number: int) -> Minute | None:
        try:
            minute = read_minute(text)
        except ValueError as error:
            fault = str(error)
        else:
            if path.name.startswith(_day_of(minute.begin_ns)):
                return minute
            fault = f"a minute of {_day_of(minute.begin_ns)}"
        self.wrong += 1
        self._place(f"{path.name}: line {number}: {fault}")
        return None

    def missing(self, now_ns: int) -> list[Span]:
        """Return the spans without a minute, up to the one that is not written yet."""
        begins_ns = sorted(self.begins_ns)
        written_ns = now_ns - 2 * MINUTE_NS - self.target.timeout_ns
        end_ns = min(self.span.end_ns, written_ns) // MINUTE_NS * MINUTE_NS
        # Of a span without a begin, the first minute is it.
        next_ns = -(-self.span.begin_ns // MINUTE_NS) * MINUTE_NS or min(begins_ns, default=end_ns)
        found: list[Span] = []
        for begin_ns in [*begins_ns, end_ns]:
            if begin_ns > next_ns:
                found.append(Span(next_ns, begin_ns))
            next_ns = max(next_ns, begin_ns + MINUTE_NS)
        return found

    def slowest(self) -> list[Worst]:
        """Return the slowest probes of different minutes, the slowest first."""
        return sorted(self.worst, key=lambda one: -one.latency_ns)[:_WORST]

    def nothing(self) -> str:
        """Return why there is no minute, and which days there are."""
        days = [path.name[:_DAY_LETTERS] for path in self.target.days()]
        there = f"there are days from {days[0]} to {days[-1]} (UTC)" if days else "it has no days"
        left_out = self.damaged + self.wrong
        faults = f", {left_out:,} left out ({'; '.join(self.places)})" if left_out else ""
        return f"{self.target.folder}: no minute in this span{faults}; {there}"

    def _has(self, ns: int) -> bool:
        return self.span.begin_ns <= ns < self.span.end_ns

    def _place(self, told: str) -> None:
        if len(self.places) < _TOLD:
            self.places.append(told)

    def _enter(self, minute: Minute) -> None:
        self.lines += 1
        self.unordered += "samples" in minute.line
        self.outages.enter(minute)
        self.begins_ns.add(minute.begin_ns)
        self.counts.update(minute.counts)
        self.arrivals.update(minute.arrivals)
        for name, value in minute.health.items():
            self.health[name] = max(self.health[name], abs(value))
        if minute.worst is not None:
            self.worst.append(minute.worst)
            if len(self.worst) > 2 * _WORST:
                self.worst = self.slowest()


def _day_of(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d")


def _has_times(day: str, span: Span) -> bool:
    """Tell whether a day (UTC) has times of a span."""
    try:
        begin_ns = _begin_of(day)
    except ValueError:
        return False
    return span.begin_ns < begin_ns + _DAY_NS and begin_ns < span.end_ns


def _begin_of(day: str) -> int:
    begin = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    return int(begin.timestamp()) * 10**9
