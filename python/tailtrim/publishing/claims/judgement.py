"""Judgement of a claim by the runs of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Conclusion(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim holds, and a sentence with the value and its interval."""

    claim: str
    verdict: Conclusion
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """Verdict of one combination, or of one pair of them."""

    verdict: Conclusion
    text: str


def together(claim: str, parts: Sequence[Part]) -> Judgement:
    """Return what all combinations say: a claim is about each of them.

    The text is that of the combinations that decide.
    """
    for verdict in (Conclusion.FAILS, Conclusion.UNDECIDED):
        deciding = [part for part in parts if part.verdict is verdict]
        if deciding:
            more = f" ({len(deciding)} of {len(parts)} combinations)" if len(parts) > 1 else ""
            return Judgement(claim, verdict, deciding[0].text + more)
    others = len(parts) - 1
    many = f"{others} combinations" if others > 1 else "combination"
    more = f" (likewise the other {many})" if others else ""
    return Judgement(claim, Conclusion.HOLDS, parts[0].text + more)


def all_of(found: Sequence[Judgement]) -> Judgement:
    """Return what all statements of a claim say; the text is that of the one that decides."""
    if len(found) == 1:
        return found[0]
    claim = found[0].claim
    for verdict in (Conclusion.FAILS, Conclusion.UNDECIDED):
        deciding = [one for one in found if one.verdict is verdict]
        if deciding:
            told = f"{deciding[0].text} ({len(deciding)} of {len(found)} statements)"
            return Judgement(claim, verdict, told)
    return Judgement(claim, Conclusion.HOLDS, "; ".join(one.text for one in found))
