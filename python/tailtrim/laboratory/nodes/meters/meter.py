"""The base class of all meters: one is opened, and read as often as its power is needed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from pydantic import Field

from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.node import Process

#: So often a meter is read: pos_energy does so, and metered outlets tell new values once a second.
EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Channel:
    """A thing that a meter measures.

    ``resolution`` is the smallest step: of the energy in J where the channel counts energy,
    otherwise of the power in W. An energy counter begins again at 0 after ``wraps_j`` and is
    written every ``update_s``. The power of a node is the sum of the channels with ``whole``:
    others are parts of them.
    """

    name: str
    counts: bool
    resolution: float
    whole: bool = True
    wraps_j: float | None = None
    update_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Value:
    """A reading of a channel: its energy counter in J, or its power in W, and the rest.

    ``energy_wh`` is the counter of an outlet, too coarse for a run, which files of pos have.
    """

    energy_j: float | None = None
    power_w: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    energy_wh: float | None = None


class Start(Protocol):
    """Starts a command on the node, on CPUs that nothing is measured on, with pipes to it."""

    def __call__(self, command: Sequence[str]) -> Process:
        """Return the process.

        Raises:
            HostError: the node cannot be reached.

        """


class Reader(ABC):
    """A meter that is open, for as long as the context lasts.

    ``every_s`` is how often it should be read, ``why`` why that is more seldom than usual.
    """

    channels: Sequence[Channel]
    every_s: float = EVERY_S
    why: str | None = None

    def __enter__(self) -> Self:
        """Return the reader itself."""
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Leave the meter."""

    @abstractmethod
    def read(self) -> list[Value]:
        """Return what each channel says now.

        Raises:
            HostError: the meter cannot be read.

        """


class Meter(Strict, ABC):
    """A meter, as a testbed file says it. A subclass narrows ``kind`` to its name.

    Methods raise MissingPackageError where the Python package that asks it is not installed.
    """

    kind: str
    resolution_w: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Smallest step of its power in W. Default: what its kind or model tells.",
    )
    accuracy_percent: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Largest error in percent of what it tells, as its data sheet says: 1 for class"
        " 1. Without it, uncertainties do not contain this error.",
    )

    @property
    @abstractmethod
    def place(self) -> str:
        """The source of its readings, for messages."""

    @abstractmethod
    def opened(self, start: Start, busy: Sequence[int] = ()) -> Reader:
        """Open it.

        Args:
            start: starts a command on the node.
            busy: CPUs of the node on which something is measured.

        Raises:
            HostError: the meter cannot be read.

        """


class AskedReader(Reader):
    """A meter with one channel that is asked over the network, away from the node."""

    def __init__(self, meter: AskedMeter) -> None:
        """Ask once, so that a meter that cannot be read is known before a run."""
        self._meter = meter
        _, resolution_w = meter.measure()
        step = meter.resolution_w or resolution_w
        self.channels = [Channel("power", counts=False, resolution=step)]

    def __exit__(self, *_: object) -> None:
        """Leave it: each question is one of its own."""

    def read(self) -> list[Value]:
        """Ask."""
        return [self._meter.measure()[0]]


class AskedMeter(Meter):
    """A meter that is asked over the network."""

    @abstractmethod
    def measure(self) -> tuple[Value, float]:
        """Return what it says, and the smallest step of that in W.

        Raises:
            HostError: it cannot be asked, or has no meter.

        """

    def opened(self, start: Start, busy: Sequence[int] = ()) -> Reader:
        """Open it: nothing runs on the node."""
        del start, busy
        return AskedReader(self)


def watts(meter: Meter, start: Start) -> float:
    """Return the power of a node; where a meter counts energy, over a second.

    Args:
        meter: which one.
        start: starts a command on the node.

    Raises:
        HostError: the meter cannot be read.

    """
    with meter.opened(start) as reader:
        whole = [number for number, channel in enumerate(reader.channels) if channel.whole]
        before, began_s = reader.read(), time.monotonic()
        if not any(reader.channels[number].counts for number in whole):
            return sum(before[number].power_w or 0.0 for number in whole)
        time.sleep(EVERY_S)
        after, took_s = reader.read(), time.monotonic() - began_s
        used_j = 0.0
        for number in whole:
            added_j = (after[number].energy_j or 0.0) - (before[number].energy_j or 0.0)
            used_j += added_j if added_j >= 0 else added_j + (reader.channels[number].wraps_j or 0)
        return used_j / took_s
