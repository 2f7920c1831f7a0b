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
#: So many probes are put in order at once.
_TOGETHER = 1 << 20
#: Probes of a minute leave at most so long before its begin.
_BEFORE_NS = MINUTE_NS


def summary_of(accounts: Sequence[Account]) -> Summary:
    """Analyse a span of a target, or of the same target of several hosts as one.

    The accounts are filled meanwhile.

    Raises:
        RoundTripError: no probe is in the span, or a file cannot be read.

    """
    return Summary.from_json(_analysed(accounts, None).summary_json())


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
        window_ns=max(account.target.timeout_ns for account in accounts),
        directory=directory,
    )
    if not any(account.lines for account in accounts):
        raise RoundTripError("; ".join(map(_nothing, accounts)))
    return analysis


def _nothing(account: Account) -> str:
    days = [path.name.partition(".")[0] for path in account.target.days()]
    there = f"there are days from {days[0]} to {days[-1]} (UTC)" if days else "it has no days"
    left_out = account.damaged + account.wrong
    faults = f", {left_out} left out ({'; '.join(account.places)})" if left_out else ""
    return f"{account.target.folder}: no minute in this span{faults}; {there}"


class _Sides:
    """Probes and replies in the order of their stamps, a batch of each at a time."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        minutes = (account.minutes() for account in accounts)
        self._minutes = heapq.merge(*minutes, key=attrgetter("begin_ns"))
        self._batches = self._ordered()
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

    def _ordered(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

        none = np.array([], np.int64)
        sent, received = _Held(none), _Held(none)
        number = 0
        for begin_ns, left_ns, tripped_ns in self._together():
            order = np.argsort(left_ns, kind="stable")
            sent_ns, took_ns = left_ns[order], tripped_ns[order]
            numbers = np.arange(number, number + len(sent_ns), dtype=np.int64)
            number += len(sent_ns)
            answered = took_ns != NONE
            yield (
                sent.until(begin_ns, sent_ns, numbers),
                received.until(begin_ns, (sent_ns + took_ns)[answered], numbers[answered]),
            )
        yield sent.until(None, none, none), received.until(None, none, none)

    def _together(self) -> Iterator[tuple[int, Column, Column]]:
        """Yield probes of several minutes, and a time before which none follows."""
        import numpy as np  # noqa: PLC0415 - as above

        held: list[Minute] = []
        probes = 0

        def joined() -> tuple[int, Column, Column]:
            sent_ns = np.concatenate([minute.sent_ns for minute in held])
            took_ns = np.concatenate([minute.took_ns for minute in held])
            return held[-1].begin_ns - _BEFORE_NS, sent_ns, took_ns

        for minute in self._minutes:
            held.append(minute)
            probes += len(minute.took_ns)
            if probes >= _TOGETHER:
                yield joined()
                held, probes = [], 0
        if held:
            yield joined()


class _Held:
    """Packets of a side that are kept until none follows that was before them."""

    def __init__(self, none: Column) -> None:
        self._stamps_ns = self._numbers = none

    def until(self, end_ns: int | None, stamps_ns: Column, numbers: Column) -> pa.RecordBatch:
        """Add packets; return those before a time, in their order."""
        import numpy as np  # noqa: PLC0415 - as above
        import pyarrow as pa  # noqa: PLC0415 - as above

        stamps_ns = np.concatenate([self._stamps_ns, stamps_ns])
        numbers = np.concatenate([self._numbers, numbers])
        order = np.argsort(stamps_ns, kind="stable")
        stamps_ns, numbers = stamps_ns[order], numbers[order]
        count = len(order) if end_ns is None else int(np.searchsorted(stamps_ns, end_ns))
        self._stamps_ns, self._numbers = stamps_ns[count:], numbers[count:]
        return pa.record_batch({"stamp_ns": stamps_ns[:count], "number": numbers[:count]})
