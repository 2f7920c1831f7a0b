"""Signals that end a command: with everything taken down, or as an event."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ending_orderly() -> Iterator[None]:
    """Clean up after SIGINT, SIGTERM and SIGHUP, and end.

    Shells without job control start what is before ``&`` with SIGINT ignored, and Python leaves it
    ignored; ``nohup`` starts programs with SIGHUP ignored. As with tcpdump and perf record, SIGINT
    ends the work all the same: a script that is interrupted must not leave a testbed that goes on
    measuring. SIGHUP stays ignored: to outlive the terminal is what ``nohup`` is for.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    wanted: dict[signal.Signals, Any] = {signal.SIGTERM: end}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted[signal.SIGHUP] = end
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        wanted[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
