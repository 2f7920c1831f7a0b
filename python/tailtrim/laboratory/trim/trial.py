"""Values of a search: candidates, trials, observations, settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tailtrim.laboratory.experiment import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Phases before the search (baselines with a trace, first boots) and after it (the steps between
#: the baseline and all that is kept).
EXPLAIN, BOOT, PATH = "explain", "boot", "path"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that may cut the tail.

    Candidates of one group belong together: screening switches them on and off at the same time,
    since some do nothing alone.

    Args:
        name: as the plan or the catalogue of ``tune`` calls it.
        group: of changes that screening switches together.
        boots: it takes a boot: of another kernel, or with another boot line.
        checks: the checks of the audit that it is for; ``None`` if that is not known.
        takes: the CPUs that it takes away from everything else, as the kernel writes such lists.

    """

    name: str
    group: str
    boots: bool = False
    checks: tuple[str, ...] | None = None
    takes: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run with some of the changes; none of them is the baseline.

    ``phase`` is ``explain``, ``boot``, ``screen``, ``eliminate``, ``confirm`` or ``path``. Trials
    of one ``block`` follow each other in random order, so that a host that drifts moves all of them
    alike; those of one boot are together.
    """

    number: int
    changes: frozenset[str]
    phase: str
    block: int

    @property
    def folder(self) -> str:
        """The name of its run directory."""
        return f"run-{self.number:03d}"


@dataclass(frozen=True, slots=True)
class Observation:
    """The measured values of a trial.

    Args:
        tail_ns: the quantile of all packets sent, in ns; ``None`` if it is not known, because the
            run failed or lost too many packets.
        loss: share of the packets that were lost.
        rate_pps: packets delivered per second.
        watts: mean power, if known.
        seconds: what the trial took with its set-up, in s.
        failed: why the changes are not to be kept: the run broke, or lost too many packets.
        doubt: why the run is not to be trusted, which is no fault of the changes.
        untried: why the changes could not be made: what boots did not come up with them.
        costs_ns: what the causes of each check of the audit add to the quantile, in ns.

    """

    tail_ns: float | None
    loss: float = 0.0
    rate_pps: float | None = None
    watts: float | None = None
    seconds: float = 0.0
    failed: str | None = None
    doubt: str | None = None
    untried: str | None = None
    costs_ns: Mapping[str, float] = field(default_factory=dict)


class Seen(NamedTuple):
    """A trial and its observation."""

    trial: Trial
    observation: Observation


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the cost of a change; ``None`` is no limit.

    Args:
        loss: highest share of lost packets.
        rate_loss: highest share of the baseline's delivered rate that may be lost.
        watts: highest mean power.

    """

    loss: float | None = None
    rate_loss: float | None = None
    watts: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a search.

    Args:
        error: highest probability that any change is kept that does not help.
        worth: smallest share of the tail that is worth a change.
        trials: most trials.
        seconds: longest time, in s; ``None`` for no limit.
        seed: of the random order.
        limits: of the cost of a change.
        explain: the first trials have a trace, whose causes order the changes.

    """

    error: float = 0.05
    worth: float = 0.05
    trials: int = 400
    seconds: float | None = None
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    explain: bool = False


class TrialListener(Listener):
    """Listener to the events of a search, too."""

    def trial_ended(self, trial: Trial, observation: Observation) -> None:
        """Hear what was observed in a trial."""
