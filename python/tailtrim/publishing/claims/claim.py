"""Claims, read from a file and judged: :func:`read`, :meth:`Claim.judge`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError
from tailtrim.laboratory.plan.plan_file import Source
from tailtrim.publishing.claims.evaluate import (
    Judgement,
    all_of,
    evaluate,
    evaluate_order,
    together,
)
from tailtrim.publishing.claims.schema import Entry
from tailtrim.publishing.claims.selection import mistakes, paired, selected
from tailtrim.publishing.claims.statement import Ordered

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tailtrim.publishing.claims.evaluate import Part
    from tailtrim.publishing.claims.selection import Combination
    from tailtrim.publishing.claims.statement import Statement
    from tailtrim.results.experiments import RecordedExperiment


_KEYS = ("claim", "where", "expect")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a file; ``number`` is its place there, from 0."""

    entry: Entry
    source: Source
    number: int

    def __str__(self) -> str:
        """Return the claim in words."""
        return self.entry.claim

    def judge(self, experiment: RecordedExperiment) -> Judgement:
        """Say whether the claim holds.

        A claim is about each combination of loop variables that it selects: it holds if it holds
        for all, and fails if it fails for one. The repetitions of a combination are judged
        together.

        Raises:
            PlanError: the claim selects no run; all that is wrong with its selection is told.
            RunDirectoryError: a run directory is damaged.

        """
        found = all_of([self._of(says, experiment) for says in self.entry.statements])
        return Judgement(self.entry.claim, found.verdict, found.text)

    def _of(self, says: Statement, experiment: RecordedExperiment) -> Part:
        entry = self.entry
        if not isinstance(says, Ordered):
            chosen = self._selected(experiment, "where")
            return together([evaluate(one, says, entry.confidence) for one in chosen])
        try:
            sides = [self._selected(experiment, side) for side in ("a", "b")]
            pairs = paired(sides[0], sides[1], entry.a, entry.b)
        except ValueError as error:
            self._refuse([("a", str(error))])
            raise
        return together([evaluate_order(a, b, says, entry.confidence) for a, b in pairs])

    def _selected(self, experiment: RecordedExperiment, side: str) -> list[Combination]:
        where: dict[str, Any] = getattr(self.entry, side)
        self._refuse(
            (f"{side}.{key}" if key else side, told) for key, told in mistakes(experiment, where)
        )
        return selected(experiment, where)

    def _refuse(self, found: Iterable[tuple[str, str]]) -> None:
        self.source.refuse(
            ((str(self.number), *key.split(".", 1)), f"{told} (claim {self.entry.claim!r})")
            for key, told in found
        )


def read(path: Path) -> list[Claim]:
    """Read the claims of a file, such as ``claims.yml``.

    Raises:
        PlanError: it cannot be read, or is not a list of claims; all mistakes are told at once.

    """
    source = Source(path, keys=_KEYS, entries=True)
    claims: list[Claim] = []
    wrong: list[str] = []
    seen: dict[str, int] = {}
    for number, data in enumerate(source.data.values()):
        try:
            if not isinstance(data, dict):
                source.fail((str(number),), f"expected keys such as {', '.join(_KEYS)}")
            entry = source.validated(Entry, data, (str(number),))
            if entry.claim in seen:
                source.fail((str(number), "claim"), f"{entry.claim!r} is there twice")
            seen[entry.claim] = number
            claims.append(Claim(entry, source, number))
        except PlanError as error:
            wrong += map(str, error.args)
    if wrong:
        raise PlanError(*wrong)
    return claims


def judge_all(claims: Iterable[Claim], experiment: RecordedExperiment) -> list[Judgement]:
    """Judge claims of an experiment.

    Raises:
        PlanError: claims select no run; those of all claims are told at once.
        RunDirectoryError: a run directory is damaged.

    """
    found: list[Judgement] = []
    wrong: list[str] = []
    for claim in claims:
        try:
            found.append(claim.judge(experiment))
        except PlanError as error:
            wrong += map(str, error.args)
    if wrong:
        raise PlanError(*wrong)
    return found
