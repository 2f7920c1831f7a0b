"""Spans as runs: probes in the order of departures, some at a time, analysed as captures are."""

from __future__ import annotations

import heapq
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.watched.minute import MINUTE_NS, NONE
from tailtrim.analysis.watched.tap import TAP
from tailtrim.errors import RoundTripError
from tailtrim.results import Summary
from tailtrim.results.writing import Draft, provenance_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

    from tailtrim.analysis.watched.minute import Minute
    from tailtrim.analysis.watched.reading import Account

    Column = np.ndarray[Any, Any]

#: Above IP: a probe of the watch has at least these bytes, which its minutes do not tell.
_FRAME_BYTES = 86
#: Names of what leaves and what comes, of probes and of a device.
_SIDES = (("sent", "received"), ("ingress", "egress"))
#: The watch has decided what is in time, by the timeout of that minute, which is a minute at most.
_WINDOW_NS = MINUTE_NS + 1
#: So many probes are put in order at once.
_TOGETHER = 1 << 20
#: Probes of a minute leave at most so long before its begin.
_BEFORE_NS = MINUTE_NS


def leave_run(account: Account, out: Path) -> Summary:
    """Analyse a span of a target, and leave a run directory.

    Raises:
        RoundTripError: no probe is in the span, or a file cannot be read.
        OutputError: ``out`` cannot be written.

    """
    with Draft(out) as draft:
        native = _analysed([account], draft.path)
        native.write_tables(draft.path)
        text = native.summary_json()
        days = [str(path) for path in account.target.days()]
        # Files that are still written have no checksum to be kept.
        draft.commit(text, provenance_of(days, [None] * len(days), [None] * len(days)))
    return Summary.from_json(text)


def _analysed(accounts: Sequence[Account], directory: Path | None) -> _native.NativeAnalysis:
    sides = _Sides(accounts)
    name = accounts[0].target.name
    first, second = _SIDES[accounts[0].target.kind == TAP]
    analysis = _native.analyze_round_trips(
        sides.batches(0),
        sides.batches(1),
        names=(f"{name}, {first}", f"{name}, {second}"),
        length=_FRAME_BYTES,
        window_ns=_WINDOW_NS,
        directory=directory,
    )
    if not any(account.lines for account in accounts):
        raise RoundTripError(nothing(accounts))
    return analysis


def nothing(accounts: Sequence[Account]) -> str:
    """Return why there is no minute at all."""
    return "; ".join(account.nothing() for account in accounts)


def merged(accounts: Sequence[Account]) -> Iterator[Minute]:
    """Read the minutes of several hosts in the order of their begins."""
    minutes = (account.minutes() for account in accounts)
    return heapq.merge(*minutes, key=attrgetter("begin_ns"))


def together(minutes: Iterator[Minute]) -> Iterator[tuple[int, Column, Column]]:
    """Yield departures and round trips of several minutes, and a time before which none follows."""
    import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

    held: list[Minute] = []
    probes = 0

    def joined() -> tuple[int, Column, Column]:
        sent_ns = np.concatenate([minute.sent_ns for minute in held])
        took_ns = np.concatenate([minute.took_ns for minute in held])
        return held[-1].begin_ns - _BEFORE_NS, sent_ns, took_ns

    for minute in minutes:
        held.append(minute)
        probes += len(minute.took_ns)
        if probes >= _TOGETHER:
            yield joined()
            held, probes = [], 0
    if held:
        yield joined()


class Held:
    """Packets of a side that are kept until none follows that was before them."""

    def __init__(self, name: str) -> None:
        """Begin without any; ``name`` is that of the column beside their stamps."""
        import numpy as np  # noqa: PLC0415 - as above

        self._name = name
        self._stamps_ns = self._values = np.array([], np.int64)

    def until(self, end_ns: int, stamps_ns: Column, values: Column) -> pa.RecordBatch:
        """Add packets; return those before a time, in their order."""
        import numpy as np  # noqa: PLC0415 - as above

        stamps_ns = np.concatenate([self._stamps_ns, stamps_ns])
        order = np.argsort(stamps_ns, kind="stable")
        self._stamps_ns = stamps_ns[order]
        self._values = np.concatenate([self._values, values])[order]
        return self._taken(int(np.searchsorted(self._stamps_ns, end_ns)))

    def rest(self) -> pa.RecordBatch:
        """Return those that are left."""
        return self._taken(len(self._stamps_ns))

    def _taken(self, count: int) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - as above

        taken = {"stamp_ns": self._stamps_ns[:count], self._name: self._values[:count]}
        self._stamps_ns, self._values = self._stamps_ns[count:], self._values[count:]
        return pa.record_batch(taken)


class _Sides:
    """Probes and replies in the order of their stamps, a batch of each at a time."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._batches = _numbered(accounts)
        self._ahead: tuple[deque[pa.RecordBatch], ...] = (deque(), deque())

    def batches(self, side: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a side; those of the other one meanwhile are kept for it."""
        while True:
            if not self._ahead[side]:
                both = next(self._batches, None)
                if both is None:
                    return
                for ahead, batch in zip(self._ahead, both, strict=True):
                    ahead.append(batch)
            yield self._ahead[side].popleft()


def _numbered(accounts: Sequence[Account]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches of both sides, in which a probe and its reply have the same number."""
    import numpy as np  # noqa: PLC0415 - as above

    sent, received = Held("number"), Held("number")
    number = 0
    for before_ns, left_ns, tripped_ns in together(merged(accounts)):
        order = np.argsort(left_ns, kind="stable")
        sent_ns, took_ns = left_ns[order], tripped_ns[order]
        numbers = np.arange(number, number + len(sent_ns), dtype=np.int64)
        number += len(sent_ns)
        answered = took_ns != NONE
        replied_ns = (sent_ns + took_ns)[answered]
        yield (
            sent.until(before_ns, sent_ns, numbers),
            received.until(before_ns, replied_ns, numbers[answered]),
        )
    yield sent.rest(), received.rest()
