"""The request of a search: its changes, its limits and its workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from tailtrim.errors import MissingPackageError
from tailtrim.laboratory.trim.host import HostTuning
from tailtrim.laboratory.trim.ranking import by_causes, costs
from tailtrim.laboratory.trim.trial import Candidate, Limits
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.laboratory.experiment import Listener
    from tailtrim.laboratory.plan.trimming import Trimming
    from tailtrim.laboratory.trim.trial import Observation, Trial
    from tailtrim.laboratory.trim.verdict import Found, Result

_NEEDED = ("pydoe", "scipy")


class Workload(Protocol):
    """The source of trials, for as long as its context lasts; each trial has a run directory."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End all that runs."""

    @property
    def notices(self) -> Sequence[str]:
        """Notices for users."""

    def close(self) -> None:
        """Unlock the folder of the trials."""

    def prepare(self, listener: Listener) -> None:
        """Prepare the trials, such as images to boot; the listener hears what takes time."""

    def measure(self, trial: Trial) -> Observation:
        """Measure a trial; changes of the host are made."""

    def passed_over(self, trial: Trial) -> None:
        """Take note of a trial that cannot be measured."""

    def leave(self, result: Result) -> Iterator[str]:
        """Apply kept changes that are not the host's, and yield notices about it."""


class Request(ABC):
    """The request of a search.

    Args:
        trimming: changes of the host, and settings of the search.
        name: of the results.
        explained: a run that says why packets were late: changes of the host against these causes
            come first.
        out: the folder of the trials; by default that of the name.
        resume: the search is taken up: changes of the host that it has applied are taken back.

    Raises:
        HostError: the host to be changed is not this one, or cannot be.
        OutputError: the search that is to be taken up is running.
        RunDirectoryError: the explanation cannot be read.
        ValueError: the run has no explanation.

    """

    #: The first trials are to have a trace, which orders the changes of the host.
    explains = False

    def __init__(
        self,
        trimming: Trimming,
        name: str,
        explained: Path | None,
        out: Path | None,
        *,
        resume: bool,
    ) -> None:
        """Look at the changes of the host."""
        self.trimming = trimming
        #: The folder of the trials.
        self.place = out or Path("results") / name
        killed = self.place if resume else None
        self.tuning = HostTuning(trimming.host, killed) if trimming.host else None
        self._of_host = self.tuning.candidates if self.tuning else []
        if explained is not None:
            costs_ns = costs(RunDirectory(explained), trimming.quantile)
            if costs_ns is None:
                told = f"{explained}: no explanation of a trace"
                raise ValueError(f"{told}, expected a run with one")
            self._of_host = by_causes(self._of_host, costs_ns)

    @property
    def candidates(self) -> list[Candidate]:
        """The changes in order of expected gain."""
        return self._of_host

    @property
    def impossible(self) -> list[Found]:
        """The changes of the host that cannot be tried."""
        return self.tuning.impossible if self.tuning else []

    @property
    def limits(self) -> Limits:
        """Limits of the cost of a change."""
        limits = self.trimming.limits
        return Limits(loss=limits.loss, rate_loss=limits.throughput, watts=limits.watts)

    def of_host(self, changes: frozenset[str]) -> frozenset[str]:
        """Return those of the changes that are the host's."""
        return changes & {one.name for one in self._of_host}

    @property
    @abstractmethod
    def each_s(self) -> float:
        """Shortest duration of a trial, in s."""

    @abstractmethod
    def workload(
        self, folder: Path, done: Sequence[Trial], next_one: Trial | None, *, resume: bool
    ) -> Workload:
        """Return the workload of the trials.

        Args:
            folder: for their directories.
            done: the trials that are there.
            next_one: the one that may have been interrupted.
            resume: take up what is there.

        Raises:
            OutputError: the folder belongs to something else.

        """


def require_packages() -> None:
    """Refuse to search without pydoe and scipy, which no other command needs.

    Raises:
        MissingPackageError: one is not installed.

    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        error = MissingPackageError(f"searching needs the package {missing[0]}")
        error.add_note("pip install 'tailtrim[trim]'")
        raise error
