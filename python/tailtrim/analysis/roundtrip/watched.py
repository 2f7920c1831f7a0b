"""Spans of a watch: its minutes become a run directory."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import RoundTripError
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.results import Summary

SCHEMA = "tailtrim.watch/1"
#: Above IP: a probe of the watch has at least these bytes, which its minutes do not tell.
_FRAME_BYTES = 86
_MINUTE_NS = 60 * 10**9
#: Outcomes without an answer in time.
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
    sent: list[Any] = []
    took: list[Any] = []
    minutes = 0
    for line in _lines(folder, span):
        begin_ns = int(line["begin_ns"])
        minutes += 1
        counts.update({name: value for name, value in line.items() if _is_count(name, value)})
        arrivals.update(line["arrivals"])
        latency_ns = [_NONE if ns is None else int(ns) for ns in line["latency_ns"]]
        if "at_us" in line:
            sent.append(begin_ns + np.array(line["at_us"], np.int64) * 1_000)
            took.append(np.array(latency_ns, np.int64))
        else:
            many = np.repeat(np.array(latency_ns, np.int64), np.array(line["samples"], np.int64))
            lost = np.full(sum(int(line[name]) for name in _UNANSWERED), _NONE)
            every = np.concatenate([many, lost])
            # Their order is not known: spread by chance, so that none is put beside its like.
            np.random.default_rng(begin_ns).shuffle(every)
            places = np.arange(len(every), dtype=np.int64)
            sent.append(begin_ns + places * _MINUTE_NS // max(len(every), 1))
            took.append(every)
    took_ns = np.concatenate(took) if took else np.array([], np.int64)
    if not len(took_ns):
        raise RoundTripError(f"{folder}: no probe in this span; {_has(folder)}")
    series = Series(
        name=str(target["name"]),
        sent_ns=np.concatenate(sent),
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
        minutes=minutes,
        timeout_ns=int(target["timeout_ns"]),
    )


def leave_run(watched: Watched, out: Path) -> Summary:
    """Analyse a span as ``analyze`` does captures, and leave a run directory.

    Raises:
        OutputError: ``out`` cannot be written.

    """
    return write_run(out, watched.series, timeout_ns=watched.timeout_ns)


def _is_count(name: str, value: object) -> bool:
    return isinstance(value, int) and name not in {"begin_ns", "rounded"}


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


def _lines(folder: Path, span: Span) -> Iterator[dict[str, Any]]:
    from datetime import UTC  # noqa: PLC0415

    first, last = (datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d") for ns in span)
    for path in _days(folder):
        if not first <= path.name.partition(".")[0] <= last:
            continue
        with reading(path) as file:
            for number, text in enumerate(file, 1):
                try:
                    line = parsed(text)
                    if span.begin_ns <= int(line["begin_ns"]) < span.end_ns:
                        yield line
                except (ArithmeticError, ValueError, TypeError, KeyError) as error:
                    message = f"{path}: line {number}: expected what tailtrim wrote ({error!r})"
                    raise RoundTripError(message) from error
