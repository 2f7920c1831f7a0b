"""What a level of a verification found: :class:`Level`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a level, or a check in it, ended."""

    PASS = "pass"  # noqa: S105 - a word of the output
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Level:
    """A level: its name, what is wrong, what was not checked and why, and what readers should know.

    ``undecided`` are claims that the data neither show nor contradict.
    """

    name: str
    told: str
    wrong: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    #: Nothing of it was checked.
    without: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict of the level."""
        if self.wrong:
            return Verdict.FAIL
        return Verdict.SKIPPED if self.without else Verdict.PASS
