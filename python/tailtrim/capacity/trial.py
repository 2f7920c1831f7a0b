"""A trial of a search: what is sent, and what was counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Of :attr:`Seen.counts`: packets that were lost or not sent.
LOST = "lost"


class Purpose(StrEnum):
    """What a trial is for. One to warm up is not counted."""

    WARM_UP = "warm-up"
    SEARCH = "search"
    #: Below the bounds, for the curve of latency against load.
    CURVE = "curve"
    #: Bounds are measured again at the end, in random order: has the device changed meanwhile?
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be sent: a load, in the unit of its search, for so long (the trial duration)."""

    load: int
    duration_s: float
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True, slots=True)
class Count:
    """How many of the packets of a trial were bad.

    So many packets as ``design_effect`` are worth one independent one: bad packets come in
    clusters.
    """

    bad: int
    packets: int
    design_effect: float = 1.0

    @property
    def ratio(self) -> float:
        """The share of bad packets."""
        return self.bad / self.packets if self.packets else 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A trial that was done, and took so long with all that is done before and after.

    ``invalid`` says why it shows the generator or the taps rather than the device, ``sent_share``
    which share of the load the generator reached. ``counts`` has :data:`LOST` and each condition
    of a promise.
    """

    trial: Trial
    took_s: float
    counts: Mapping[str, Count] = field(default_factory=dict)
    invalid: str | None = None
    sent_share: float = 1.0
