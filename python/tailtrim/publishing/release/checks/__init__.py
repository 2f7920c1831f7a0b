"""Levels of a verification, one module each, and their result: :class:`CheckResult`.

``check`` of each takes the release and reads it only; :mod:`.rerun` also measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Outcome of a level."""

    PASS = "pass"  # noqa: S105 - a word of the output
    FAIL = "fail"
    SKIPPED = "skipped"


#: Errors of code that reads records of a release, where these are not of the shape that tailtrim
#: writes. A level that meets one fails.
DAMAGED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a level.

    ``told`` sums it up in a line, ``wrong`` are differences, ``skipped`` the reasons why a part was
    not checked, ``notes`` for readers; ``undecided`` are claims that the data neither show nor
    contradict. ``without``: nothing of it was checked.
    """

    name: str
    told: str
    wrong: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    without: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict of the level."""
        if self.wrong:
            return Verdict.FAIL
        return Verdict.SKIPPED if self.without else Verdict.PASS
