"""Meters that are read during a run: each by a thread, every second and when a state changes."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from tailtrim.errors import TailtrimError
from tailtrim.laboratory.energy.series import Reading, Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tailtrim.laboratory.nodes.meters import Reader


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in one state, on the clock of this host that never steps."""

    state: str
    begin_s: float
    end_s: float
    began: datetime


class _Watch:
    """One meter and the thread that reads it."""

    def __init__(self, name: str, reader: Reader) -> None:
        self.name, self.reader = name, reader
        self.series = Series(reader.channels, reader.every_s)
        self.failed: list[str] = []
        self._due_s = time.monotonic()
        self._ended = False
        self._changed = threading.Condition()
        self._reading = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"meter {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def read(self) -> None:
        """Read now; failed readings are counted."""
        with self._reading:
            began_s = time.monotonic()
            try:
                values = self.reader.read()
            except TailtrimError as error:
                self.failed.append(str(error))
                return
            at_s = (began_s + time.monotonic()) / 2
            self.series.add(Reading(at_s, datetime.now(UTC), values))

    def due(self, at_s: float) -> None:
        """Read at this time, if nothing is read before."""
        with self._changed:
            self._due_s = min(self._due_s, at_s)
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._ended and (left_s := self._due_s - time.monotonic()) > 0:
                    self._changed.wait(left_s)
                if self._ended:
                    return
                self._due_s = time.monotonic() + self.reader.every_s
            self.read()


class Recorder:
    """Reads meters for as long as the context lasts.

    Threads run where this process runs: measurements on this host keep it off their CPUs.

    Args:
        readers: the meters by the names of their nodes; they are closed with the context.

    """

    def __init__(self, readers: Mapping[str, Reader]) -> None:
        """Take the meters, which are open."""
        self._watches = [_Watch(name, reader) for name, reader in readers.items()]
        self.stretches: list[Stretch] = []

    def __enter__(self) -> Self:
        """Begin to read."""
        with ExitStack() as stack:
            for watch in self._watches:
                stack.enter_context(watch.reader)
            for watch in self._watches:
                watch.start()
                stack.callback(watch.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the meters."""
        self._stack.close()

    @contextmanager
    def state(self, name: str, *, settle_s: float, most_s: float | None = None) -> Iterator[None]:
        """Have what is within be a state; :meth:`read` was called just before it.

        A reading takes as long as a meter needs to answer, and a load that begins does not wait.

        Args:
            name: its name.
            settle_s: so much of its begin does not count: meters lag, and devices settle.
            most_s: readings later than this after the begin do not count either.

        """
        begin_s, began = time.monotonic(), datetime.now(UTC)
        for watch in self._watches:
            watch.due(begin_s + settle_s)
        yield
        end_s = time.monotonic()
        self.read()
        if most_s is not None:
            end_s = min(end_s, begin_s + most_s)
        self.stretches.append(Stretch(name, begin_s + settle_s, end_s, began))

    @property
    def meters(self) -> dict[str, tuple[Reader, Series, list[str]]]:
        """For each meter: its reader, its readings, and the errors of failed ones."""
        return {one.name: (one.reader, one.series, one.failed) for one in self._watches}

    def read(self) -> None:
        """Read all meters at once, and return when the slowest has answered."""
        threads = [threading.Thread(target=watch.read) for watch in self._watches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
