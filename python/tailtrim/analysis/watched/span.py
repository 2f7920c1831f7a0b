"""Spans of time as a user types them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

_FORMS = (
    "expected today, yesterday, a day such as 2026-11-29, or two times such as 08:00..09:00 or"
    " 2026-11-28T08:00..2026-11-28T09:00"
)
_DAYS = {"today": 0, "yesterday": -1}


class Span(NamedTuple):
    """A time, from its begin up to its end, in ns since 1970."""

    begin_ns: int
    end_ns: int


def span(text: str, now: datetime) -> Span:
    """Return the span of a text, in the time zone of ``now``.

    Args:
        text: ``today``, ``yesterday``, a day such as ``2026-11-29``, or two times with ``..``
            between: ``08:00..09:00`` (of today), ``2026-11-28T08:00..2026-11-28T09:00`` or
            ``2026-11-22..2026-11-28`` (with this last day). Without the first one it is all that
            there is, without the last one until now.
        now: the present time, with its zone; without one, in that of this host.

    Raises:
        ValueError: it has none of these forms, or ends before it begins.

    >>> from datetime import UTC
    >>> now = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
    >>> (span("08:00..", now).end_ns - span("08:00..09:00", now).end_ns) // 10**9
    12600
    >>> span("yesterday", now).end_ns == span("today", now).begin_ns
    True

    """
    first, dots, last = text.partition("..")
    found = None
    with suppress(ValueError, OverflowError, OSError):
        if dots:
            found = Span(_ns(_begin(first, now)) if first else 0, _ns(_end(last, now)))
        elif day := _day(text, now):
            found = Span(_ns(day), _ns(day + timedelta(days=1)))
    if found is None:
        message = f"span {text!r}: {_FORMS}"
        raise ValueError(message)
    if found.end_ns <= found.begin_ns:
        message = f"span {text!r}: it ends before it begins"
        raise ValueError(message)
    return found


def _begin(text: str, now: datetime) -> datetime:
    return _day(text, now) or _time(text, now)


def _end(text: str, now: datetime) -> datetime:
    if not text:
        return now
    day = _day(text, now)
    return _time(text, now) if day is None else day + timedelta(days=1)


def _day(text: str, now: datetime) -> datetime | None:
    """Return the midnight at which a day begins; ``None`` of a time."""
    if text in _DAYS:
        return _midnight(now) + timedelta(days=_DAYS[text])
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=now.tzinfo)
    return None


def _time(text: str, now: datetime) -> datetime:
    if re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", text):
        hour, minute, *second = (int(part) for part in text.split(":"))
        return _midnight(now).replace(hour=hour, minute=minute, second=second[0] if second else 0)
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=now.tzinfo)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _ns(time: datetime) -> int:
    # Without a zone it is in that of the host, with the summer time of its day.
    return round(time.timestamp()) * 10**9
