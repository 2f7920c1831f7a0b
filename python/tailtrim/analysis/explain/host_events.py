"""Events of a run's trace as arrays: the use of the CPU that serves packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tailtrim.errors import RunDirectoryError
from tailtrim.results import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.results import RunDirectory

    Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    #: Kind, name and detail: the same for all events of one cause.
    Key: TypeAlias = tuple[str, str, str | None]


_THREAD, _HOLE = "thread", "hole"
# State in which a thread gives the CPU up, and the name of the device's state then (as in
# explain/absence.rs).
_AWAY = {"sleeping": "asleep", "stopped": "stopped", "runnable": "throttled"}


@dataclass(frozen=True, slots=True)
class HostEvents:
    """Events that took the CPU that serves packets, by start; ``key`` is a place among ``keys``.

    Intervals are gross: they contain the events that interrupted them. The device's own thread
    takes nothing; the times in which it was away are events instead.
    """

    start_ns: Integers
    end_ns: Integers
    key: Integers
    keys: tuple[Key, ...]

    def within(self, start_ns: int, end_ns: int) -> HostEvents:
        """Return the events that overlap a window."""
        return self.chosen((self.end_ns >= start_ns) & (self.start_ns <= end_ns))

    def chosen(self, which: Flags | Integers) -> HostEvents:
        """Return some of the events."""
        return HostEvents(self.start_ns[which], self.end_ns[which], self.key[which], self.keys)

    def places(self, keys: Sequence[Key]) -> Integers:
        """Return for each event where among ``keys`` its own is, ``len(keys)`` if nowhere."""
        known = {key: place for place, key in reversed(list(enumerate(keys)))}
        table = np.array([known.get(key, len(keys)) for key in self.keys], dtype=np.int64)
        return table[self.key]


def read(directory: RunDirectory, *, cpu: int, serving: str | None) -> HostEvents | None:
    """Read the events of the CPU that serves packets; ``None`` where the run keeps no trace.

    Args:
        directory: the run.
        cpu: the CPU that serves packets.
        serving: the name of the device's own thread; ``None`` where the kernel itself serves.

    Raises:
        RunDirectoryError: the trace cannot be read.

    """
    path = directory.path / EVENTS
    if not path.exists():
        return None
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
    from pyarrow import json  # noqa: PLC0415

    texts, numbers = ("kind", "name", "detail", "left"), ("cpu", "start_ns", "end_ns")
    fields = [(name, pa.int64()) for name in numbers] + [(name, pa.string()) for name in texts]
    options = json.ParseOptions(
        explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
    )
    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            # The first line is the header, which has none of these fields: its cells are null.
            table = json.read_json(stream, parse_options=options)
    except (OSError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{path}: the trace cannot be read: {error}") from error
    return _of_table(table, directory, cpu, serving)


def _of_table(
    table: pa.Table, directory: RunDirectory, cpu: int, serving: str | None
) -> HostEvents:
    table = table.combine_chunks()
    table = table.filter(_mask(table["cpu"].fill_null(-1).to_numpy() == cpu))
    start_ns, end_ns = (table[name].fill_null(0).to_numpy() for name in ("start_ns", "end_ns"))
    key, keys = _keys(table, ("kind", "name", "detail"))
    left, words = _keys(table, ("left",))
    away = np.array([word and _AWAY.get(word, "") for (word,) in words], dtype=object)[left]
    order = np.argsort(start_ns, kind="stable")
    events = HostEvents(start_ns[order], end_ns[order], key[order], keys)
    own = _serving(events, directory, serving)
    return events if own is None else _without_own(events, away[order], own)


def _mask(flags: Flags) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - see above

    return pa.array(flags)


def _keys(table: pa.Table, columns: Sequence[str]) -> tuple[Integers, tuple[Any, ...]]:
    """Return for each row which of the distinct rows it is, and these."""
    code = np.zeros(table.num_rows, dtype=np.int64)
    words = []
    for column in columns:
        encoded = table[column].combine_chunks().dictionary_encode()
        # The last word is none.
        known = [*encoded.dictionary.to_pylist(), None]
        code = code * len(known) + encoded.indices.fill_null(len(known) - 1).to_numpy()
        words.append(known)
    distinct, inverse = np.unique(code, return_inverse=True)
    rows = []
    for one in distinct.tolist():
        row: list[str | None] = []
        rest = one
        for known in reversed(words):
            rest, place = divmod(rest, len(known))
            row.append(known[place])
        rows.append(tuple(reversed(row)))
    return inverse.reshape(-1).astype(np.int64), tuple(rows)


def _serving(events: HostEvents, directory: RunDirectory, serving: str | None) -> int | None:
    """Return the key of the device's own thread: the one of its name that let most packets go."""
    named = [
        place
        for place, (kind, name, _) in enumerate(events.keys)
        if kind == _THREAD and name == serving
    ]
    if not named:
        return None
    threads = events.chosen(_threads(events))
    left_ns = directory.table("sample", columns=["egress_ns"])["egress_ns"].to_numpy()
    at = np.searchsorted(threads.start_ns, left_ns, side="right") - 1
    at = at[at >= 0]
    packets = np.bincount(threads.key[at], minlength=len(events.keys))
    return max(named, key=lambda place: int(packets[place]))


def _threads(events: HostEvents) -> Flags:
    kinds = np.array([kind == _THREAD for kind, _, _ in events.keys], dtype=bool)
    return kinds[events.key]


def _without_own(events: HostEvents, away: Any, own: int) -> HostEvents:
    """Put the times in which the device was away in the place of those in which it ran."""
    name = events.keys[own][1]
    seen = np.array([word is not None for word in away], dtype=bool)
    mine = np.flatnonzero((events.key == own) & seen)
    start_ns, end_ns = events.end_ns[mine[:-1]], events.start_ns[mine[1:]]
    why = away[mine[:-1]]
    keep = (why != "") & (start_ns < end_ns) & ~_overlap(events, start_ns, end_ns)
    start_ns, end_ns, why = start_ns[keep], end_ns[keep], why[keep]
    stopped = why == _AWAY["stopped"]
    others = events.key != own
    # A thread that ran because the device was stopped took nothing from it.
    let_in = _threads(events) & _inside(events, start_ns[stopped], end_ns[stopped])
    idle = _idle(events, start_ns[~stopped], end_ns[~stopped], why[~stopped])
    pieces = [(start_ns[stopped], end_ns[stopped], why[stopped]), idle]
    kept = events.chosen(others & ~let_in)
    words = tuple(_AWAY.values())
    keys = events.keys + tuple((_THREAD, name, word) for word in words)
    place = {word: len(events.keys) + n for n, word in enumerate(words)}
    starts, ends, reasons = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    key = np.array([place[word] for word in reasons], dtype=np.int64)
    start_ns = np.concatenate([kept.start_ns, starts]).astype(np.int64)
    order = np.argsort(start_ns, kind="stable")
    return HostEvents(
        start_ns[order],
        np.concatenate([kept.end_ns, ends]).astype(np.int64)[order],
        np.concatenate([kept.key, key])[order],
        keys,
    )


def _overlap(events: HostEvents, start_ns: Integers, end_ns: Integers) -> Flags:
    """Return which intervals overlap a hole: nothing is known across one."""
    holes = np.array([kind == _HOLE for kind, _, _ in events.keys], dtype=bool)[events.key]
    lost = np.zeros(start_ns.size, dtype=bool)
    for hole_start, hole_end in zip(events.start_ns[holes], events.end_ns[holes], strict=True):
        lost |= (hole_start < end_ns) & (hole_end > start_ns)
    return lost


def _inside(events: HostEvents, start_ns: Integers, end_ns: Integers) -> Flags:
    """Return which events lie within one of some ascending intervals."""
    if not start_ns.size:
        return np.zeros(events.start_ns.size, dtype=bool)
    at = np.searchsorted(start_ns, events.start_ns, side="right") - 1
    inside: Flags = (at >= 0) & (events.end_ns <= end_ns[np.maximum(at, 0)])
    return inside


def _idle(
    events: HostEvents, start_ns: Integers, end_ns: Integers, why: Any
) -> tuple[Integers, Integers, Any]:
    """Cut intervals down to where no thread ran: those of a CPU come one after the other."""
    threads = events.chosen(_threads(events))
    free_ns, taken_ns = threads.end_ns[:-1], threads.start_ns[1:]
    at = np.searchsorted(start_ns, free_ns, side="right") - 1
    fits = (at >= 0) & (free_ns < taken_ns)
    if start_ns.size:
        fits &= taken_ns <= end_ns[np.maximum(at, 0)]
    else:
        fits[:] = False
    return free_ns[fits], taken_ns[fits], why[at[fits]] if start_ns.size else why
