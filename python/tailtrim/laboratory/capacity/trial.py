"""A trial of a search: the traffic to send, and its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tailtrim.laboratory.experiment import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.results.experiments import Outcome

#: Attempts at a load whose trials fail, until it is given up.
ATTEMPTS = 3
#: Of :attr:`TrialResult.counts`: packets that were lost or not sent.
LOST = "lost"


class Purpose(StrEnum):
    """Purpose of a trial. One to warm up is not counted."""

    WARM_UP = "warm-up"
    SEARCH = "search"
    #: Below the bounds, for the curve of latency against load.
    CURVE = "curve"
    #: Bounds are measured again at the end, in random order: has the device changed meanwhile?
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Trial:
    """Traffic to send: a load, in the unit of its search, for the trial duration."""

    load: int
    duration_s: float
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True, slots=True)
class Count:
    """Number of bad packets of a trial.

    Bad packets come in clusters: ``design_effect`` packets are worth one independent packet.
    ``unknown`` packets are not among the bad ones: the generator was late with them, so that the
    device may have been good (:mod:`.lateness`).
    """

    bad: int
    packets: int
    design_effect: float = 1.0
    unknown: int = 0

    @property
    def ratio(self) -> float:
        """The share of bad packets, if none of the unknown ones is bad."""
        return self.bad / self.packets if self.packets else 0.0

    @property
    def most_ratio(self) -> float:
        """The share of bad packets, if all unknown ones are."""
        return (self.bad + self.unknown) / self.packets if self.packets else 0.0

    @property
    def known(self) -> int:
        """Packets that are known to be good or bad."""
        return self.packets - self.unknown


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial that was done, and took so long with all that is done before and after.

    ``invalid`` says why it shows the generator or the taps rather than the device, ``sent_share``
    which share of the load the generator reached. ``counts`` has :data:`LOST` and each condition
    of a promise. ``own_pps`` is what the device is able to forward by its own count of the time
    that packets took it, if it counts that. ``cold`` says that packets were lost at the start only.
    ``median_ns`` is the median latency.
    """

    trial: Trial
    took_s: float
    counts: Mapping[str, Count] = field(default_factory=dict)
    invalid: str | None = None
    sent_share: float = 1.0
    own_pps: float | None = None
    cold: bool = False
    median_ns: int | None = None


class TrialListener(Listener):
    """Listener to the events of a search, too."""

    def trial_ended(self, result: TrialResult, outcome: Outcome) -> None:
        """Hear the result of a trial, and the outcome of its run."""
