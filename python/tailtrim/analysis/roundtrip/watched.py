"""Spans of a watch: its minutes become a run directory."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import RoundTripError
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from tailtrim.results import Summary

SCHEMA = "tailtrim.watch/1"
#: Above IP: a probe of the watch has at least these bytes, which its minutes do not tell.
_FRAME_BYTES = 86
_MINUTE_NS = 60 * 10**9
#: Counts of a minute, and outcomes without an answer in time.
_OUTCOMES = (
    *("due", "answered", "unstamped", "disturbed", "late", "lost", "altered", "undelivered"),
    *("refused", "missed", "cut"),
)
_UNANSWERED = ("late", "lost", "altered", "undelivered")
#: Probes that tell nothing about the target: no samples, or never sent.
OF_THE_METER = ("unstamped", "disturbed", "refused", "missed", "cut")
#: For the round trip of a probe without an answer.
_NONE = -(2**62)


class Span(NamedTuple):
    """A time, from its begin up to its end, in ns since 1970."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Watched:
    """A span of a target.

    ``counts`` are its probes by outcome; all but ``due``, ``unstamped`` and ``disturbed`` add up to
    ``due``. ``minutes`` are those with a line.
    """

    name: str
    folder: Path
    span: Span
    series: Series
    counts: Counter[str]
    arrivals: Counter[str]
    minutes: int
    timeout_ns: int


def is_target(path: Path) -> bool:
    """Return whether a folder is that of a target of a watch."""
    return (path / "target.json").is_file()


def split(text: str) -> tuple[Path, str] | None:
    """Return the folder and the span of ``WATCH/TARGET@SPAN``; ``None`` of any other path."""
    folder, at, span = text.rpartition("@")
    if not at or Path(text).exists() or not is_target(Path(folder)):
        return None
    return Path(folder), span


def span(text: str, now: datetime) -> Span:
    """Return the span of a text, in the time zone of ``now``.

    Args:
        text: ``today``, ``yesterday``, a day such as ``2026-11-29``, or two times with ``..``
            between: ``08:00..09:00`` (of today) or ``2026-11-28T08:00..2026-11-28T09:00``.
        now: the present time, with its zone.

    Raises:
        ValueError: it has none of these forms, or ends before it begins.

    >>> from datetime import UTC
    >>> now = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
    >>> (span("08:00..09:00", now).end_ns - span("08:00..09:00", now).begin_ns) // 10**9
    3600
    >>> span("yesterday", now).end_ns == span("today", now).begin_ns
    True

    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": 0, "yesterday": -1}
    if text in days:
        begin = midnight + timedelta(days=days[text])
        return Span(_ns(begin), _ns(begin + timedelta(days=1)))
    first, dots, last = text.partition("..")
    try:
        if not dots:
            begin = datetime.strptime(first, "%Y-%m-%d").replace(tzinfo=now.tzinfo)
            return Span(_ns(begin), _ns(begin + timedelta(days=1)))
        found = Span(_ns(_time(first, midnight)), _ns(_time(last, midnight)))
    except ValueError:
        message = (
            f"span {text!r}: expected today, yesterday, a day such as 2026-11-29, or two times"
            " such as 08:00..09:00 or 2026-11-28T08:00..2026-11-28T09:00"
        )
        raise ValueError(message) from None
    if found.end_ns <= found.begin_ns:
        message = f"span {text!r}: it ends before it begins"
        raise ValueError(message)
    return found


def _time(text: str, midnight: datetime) -> datetime:
    if re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", text):
        hour, minute, *second = (int(part) for part in text.split(":"))
        return midnight.replace(hour=hour, minute=minute, second=second[0] if second else 0)
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=midnight.tzinfo)


def _ns(time: datetime) -> int:
    return round(time.timestamp()) * 10**9


def read(folder: Path, span: Span) -> Watched:
    """Read the minutes of a target that began in a span.

    Raises:
        RoundTripError: the folder is not that of a target, a file is damaged, or there is no probe.

    """
    import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

    target = _described(folder)
    counts: Counter[str] = Counter()
    arrivals: Counter[str] = Counter()
    lines = list(_lines(folder, span))
    for line in lines:
        counts.update(line.counts)
        arrivals.update(line.arrivals)
    took = [line.took_ns for line in lines]
    took_ns = np.concatenate(took) if took else np.array([], np.int64)
    if not len(took_ns):
        raise RoundTripError(f"{folder}: no probe in this span; {_has(folder)}")
    series = Series(
        name=str(target["name"]),
        sent_ns=np.concatenate([line.sent_ns for line in lines]),
        answered=took_ns != _NONE,
        round_trip_ns=took_ns,
        length=_FRAME_BYTES,
    )
    return Watched(
        name=str(target["name"]),
        folder=folder,
        span=span,
        series=series,
        counts=counts,
        arrivals=arrivals,
        minutes=len(lines),
        timeout_ns=int(target["timeout_ns"]),
    )


def leave_run(watched: Watched, out: Path) -> Summary:
    """Analyse a span as ``analyze`` does captures, and leave a run directory.

    Raises:
        OutputError: ``out`` cannot be written.

    """
    return write_run(out, watched.series, timeout_ns=watched.timeout_ns)


class _Line(NamedTuple):
    counts: dict[str, int]
    arrivals: dict[str, int]
    sent_ns: np.ndarray[Any, Any]
    took_ns: np.ndarray[Any, Any]


def _line(line: dict[str, Any]) -> _Line:
    import numpy as np  # noqa: PLC0415 - as above

    begin_ns = int(line["begin_ns"])
    latency_ns = [_NONE if ns is None else int(ns) for ns in line["latency_ns"]]
    took_ns = np.array(latency_ns, np.int64)
    if "at_us" in line:
        sent_ns = begin_ns + np.array(line["at_us"], np.int64) * 1_000
    else:
        counted = np.repeat(took_ns, np.array(line["samples"], np.int64))
        lost = np.full(sum(int(line[name]) for name in _UNANSWERED), _NONE)
        took_ns = np.concatenate([counted, lost])
        # Their order is not known: spread by chance, so that none is put beside its like.
        np.random.default_rng(begin_ns).shuffle(took_ns)
        places = np.arange(len(took_ns), dtype=np.int64)
        sent_ns = begin_ns + places * _MINUTE_NS // max(len(took_ns), 1)
    if len(sent_ns) != len(took_ns):
        raise ValueError("at_us and latency_ns differ in length")
    counts = {name: int(line[name]) for name in _OUTCOMES}
    arrivals = {str(kind): int(count) for kind, count in line["arrivals"].items()}
    return _Line(counts, arrivals, sent_ns, took_ns)


def _described(folder: Path) -> dict[str, Any]:
    path = folder / "target.json"
    try:
        target = json.loads(path.read_text(encoding="utf-8"))
        if target["schema"] != SCHEMA:
            raise RoundTripError(f"{path}: is {target['schema']!r}, expected {SCHEMA!r}")
        return {"name": str(target["name"]), "timeout_ns": int(target["timeout_ns"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RoundTripError(f"{path}: not a target of tailtrim watch ({error!r})") from error


def _days(folder: Path) -> list[Path]:
    return sorted(folder.glob("????-??-??.jsonl.zst"))


def _has(folder: Path) -> str:
    days = [path.name.partition(".")[0] for path in _days(folder)]
    return f"there are minutes from {days[0]} to {days[-1]} (UTC)" if days else "it has no minutes"


def _lines(folder: Path, span: Span) -> Iterator[_Line]:
    first, last = (datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d") for ns in span)
    for path in _days(folder):
        if not first <= path.name.partition(".")[0] <= last:
            continue
        with reading(path) as file:
            for number, text in enumerate(file, 1):
                try:
                    line = parsed(text)
                    if span.begin_ns <= int(line["begin_ns"]) < span.end_ns:
                        yield _line(line)
                except (ArithmeticError, ValueError, TypeError, KeyError) as error:
                    message = f"{path}: line {number}: expected what tailtrim wrote ({error!r})"
                    raise RoundTripError(message) from error
