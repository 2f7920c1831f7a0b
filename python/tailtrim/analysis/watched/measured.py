"""Spans of many targets: a result for each, and one for all hosts that have the same target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.analysis.watched.reading import Account
from tailtrim.analysis.watched.run import leave_run, summary_of
from tailtrim.errors import RoundTripError
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched.span import Span
    from tailtrim.analysis.watched.target import Target
    from tailtrim.results import Summary

#: In place of the host, where the same target of several hosts is one.
ALL_HOSTS = "all hosts"


@dataclass(frozen=True)
class Measured:
    """A span of a target.

    ``accounts`` are those of the hosts that are together in it. Without a ``summary``, ``fault``
    says why. ``run`` is the run directory, if one was left.
    """

    name: str
    host: str
    accounts: tuple[Account, ...]
    summary: Summary | None
    fault: str = ""
    run: RunDirectory | None = None

    @property
    def label(self) -> str:
        """Name with host, which no other one has."""
        return f"{self.host}/{self.name}"


def measured(
    targets: Sequence[Target],
    span: Span,
    *,
    folder: Path | None = None,
    progress: Callable[[float], object] = lambda _: None,
) -> Iterator[Measured]:
    """Analyse a span of each target, and of all hosts together where several have the same one.

    Args:
        targets: the targets.
        span: the span.
        folder: where to leave a run directory of each target; by default none is left.
        progress: is told the share that is done.

    """
    several = [name for name, hosts in Counter(one.name for one in targets).items() if hosts > 1]
    steps = len(targets) + len(several)
    done = 0
    for target in targets:
        yield _of_target(target, span, folder and folder / str(done))
        done += 1
        progress(done / steps)
    for name in several:
        accounts = tuple(Account(target, span) for target in targets if target.name == name)
        try:
            yield Measured(name, ALL_HOSTS, accounts, summary_of(accounts))
        except RoundTripError as error:
            yield Measured(name, ALL_HOSTS, accounts, None, str(error))
        done += 1
        progress(done / steps)


def _of_target(target: Target, span: Span, out: Path | None) -> Measured:
    account = Account(target, span)
    try:
        summary = summary_of([account]) if out is None else leave_run(account, out)
    except RoundTripError as error:
        return Measured(target.name, target.host, (account,), None, str(error))
    run = None if out is None else RunDirectory(out)
    return Measured(target.name, target.host, (account,), summary, run=run)
