"""Runs that objectives are checked against: :class:`Measured`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from tailtrim.results.summary import Summary


class Run(Protocol):
    """A run directory, or an analysis that kept its samples."""

    summary: Summary

    def table(self, name: str) -> pa.Table:
        """Return a table by its name."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run by name.

    Those of one ``group`` are repetitions of the same combination. ``invalid`` ones take no part in
    verdicts over several runs.
    """

    name: str
    run: Run
    group: str = ""
    invalid: bool = False

    @property
    def summary(self) -> Summary:
        """The numbers of the run."""
        return self.run.summary
