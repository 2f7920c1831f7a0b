"""Backward elimination: tests of the cost of removing a change.

A round has the baseline, the whole (all changes that are left), and the whole without each change
that is not decided, in random order. Settings that only help together are found, since removing
either costs. Of settings that replace each other, one is removed first, and the others of its group
are then measured anew. So at most one of a group is removed at a look.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tailtrim.laboratory.trim.alpha_spending import FEWEST, Holm, Looks
from tailtrim.laboratory.trim.paired import Paired
from tailtrim.laboratory.trim.schedule import BASELINE
from tailtrim.laboratory.trim.verdict import Found, Gain
from tailtrim.verdict import BETTER, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tailtrim.laboratory.trim.schedule import Schedule, Steps
    from tailtrim.laboratory.trim.trial import Candidate, Observation

#: A change that is worth exactly as much as asked for is dropped by mistake in one look of 20.
_MISSED = 0.05
#: So many rounds beyond a limit, and more than half, are not one unlucky run.
_BEYOND = 2


@dataclass(slots=True)
class _Standing:
    """An undecided candidate of the whole."""

    candidate: Candidate
    differences: list[float] = field(default_factory=list)
    #: For each round since the whole changed, which limit was broken without this change.
    broken: list[str | None] = field(default_factory=list)


class Elimination:
    """The rounds of one elimination, and their verdicts.

    Args:
        schedule: the trials so far.
        candidates: the changes of the whole.
        holm: the error of the search.

    """

    def __init__(self, schedule: Schedule, candidates: Sequence[Candidate], holm: Holm) -> None:
        """Begin with all candidates undecided."""
        self._schedule, self._holm = schedule, holm
        self._undecided = {one.name: _Standing(one) for one in candidates}
        self._kept: set[str] = set()
        self._broken: list[str | None] = []
        self.found: list[Found] = []
        self.needed_trials: int | None = None

    @property
    def whole(self) -> frozenset[str]:
        """The changes that are proven or not decided."""
        return frozenset(self._kept | set(self._undecided))

    @property
    def kept(self) -> frozenset[str]:
        """The changes that are proven."""
        return frozenset(self._kept)

    def rounds(self, reserve: int) -> Steps[None]:
        """Try until all is decided or the budget ends, with so many trials left for later."""
        # Half of the candidates are decided early in most searches.
        each = len(self._undecided) // 2 + 2
        looks = Looks((self._schedule.left() - reserve) // each)
        level = self._holm.level
        for done in range(1, looks.longest + 1):
            if not self._undecided:
                return
            trials = len(self._undecided) + 2
            if not self._schedule.affords(trials, reserve=reserve):
                break
            yield from self._round()
            share = looks.share(done)
            if share is not None:
                self._look(share)
            self._heed_limits()
            level = self._holm.level * (looks.share(looks.longest) or 1.0)
        self._leave(level)

    def _round(self) -> Steps[None]:
        schedule, whole = self._schedule, self.whole
        names = list(self._undecided)
        sets = sets_of(whole, names)
        _, at_whole, *others = yield from schedule.block("eliminate", sets)
        self._broken.append(schedule.beyond_limit(at_whole))
        for name, without in zip(names, others, strict=True):
            standing = self._undecided[name]
            standing.broken.append(schedule.beyond_limit(without))
            difference = cost(without, at_whole)
            if difference is not None:
                standing.differences.append(difference)

    def _look(self, share: float) -> None:
        """Keep what is proven, and drop what is not worth it: at most one of each group."""
        # The smallest p-value first: each proof leaves more of the error to the others.
        for standing in sorted(
            self._tested(), key=lambda one: Paired.of(one.differences).p_value()
        ):
            paired = Paired.of(standing.differences)
            level = self._holm.level * share
            if paired.p_value() <= level:
                self._keep(standing, paired, level)
        worth = -math.log1p(-self._schedule.settings.worth)
        dropped: set[str] = set()
        for standing in sorted(self._tested(), key=lambda one: Paired.of(one.differences).mean):
            # One that goes clears what is known of the others of its group.
            if standing.candidate.group in dropped:
                continue
            paired = Paired.of(standing.differences)
            if paired.bounds(_MISSED)[1] < worth:
                dropped.add(standing.candidate.group)
                self._drop(standing, paired)

    def _tested(self) -> Iterator[_Standing]:
        return (one for one in self._undecided.values() if len(one.differences) >= FEWEST)

    def _keep(self, standing: _Standing, paired: Paired, level: float) -> None:
        self._holm.proven()
        del self._undecided[standing.candidate.name]
        self._kept.add(standing.candidate.name)
        told = f"removing it costs: proven after {paired.count} rounds"
        self._tell(standing, Verdict(verdict=BETTER), told, gain_of(paired, level))

    def _drop(self, standing: _Standing, paired: Paired) -> None:
        gain = gain_of(paired, _MISSED)
        worse = gain.high < 0
        told = "the tail is shorter without it" if worse else f"gains at most {gain.high:.1%}"
        self._remove(standing, gain.verdict, told, gain)

    def _remove(
        self, standing: _Standing, verdict: Verdict, reason: str, gain: Gain | None
    ) -> None:
        del self._undecided[standing.candidate.name]
        self._tell(standing, verdict, reason, gain)
        self._broken.clear()
        for other in self._undecided.values():
            other.broken.clear()
            if other.candidate.group == standing.candidate.group:
                other.differences.clear()

    def _heed_limits(self) -> None:
        """Drop the change without which the whole is within the limits."""
        if not _mostly(self._broken):
            return
        reason = next(filter(None, reversed(self._broken)))
        for standing in list(self._undecided.values()):
            if not _mostly(standing.broken):
                self._remove(standing, Verdict(verdict=WORSE), f"with it {reason}", None)
                return
        # No single change is the reason: nothing of the whole can stay.
        for standing in list(self._undecided.values()):
            self._remove(standing, Verdict(), f"together with others {reason}", None)
        self.found = [
            Found(one.name, one.group, f"together with others {reason}", one.gain)
            if one.verdict == BETTER
            else one
            for one in self.found
        ]
        self._kept.clear()

    def _leave(self, level: float) -> None:
        """Leave the rest as not proven, and estimate the trials that it would have needed."""
        worth = -math.log1p(-self._schedule.settings.worth)
        rounds, each = 0, len(self._undecided) + 2
        for standing in list(self._undecided.values()):
            gain, more = None, 0
            if len(standing.differences) > 1:
                paired = Paired.of(standing.differences)
                gain = gain_of(paired, _MISSED)
                shown = paired.mean >= worth
                more = (
                    paired.needed(level, paired.mean)
                    if shown
                    else paired.needed(_MISSED, worth - paired.mean)
                ) - paired.count
                rounds = max(rounds, more)
            needed = Verdict(needed=max(more, FEWEST) * each)
            self._tell(standing, needed, "the budget ended first", gain)
        if self._undecided:
            self.needed_trials = max(rounds, FEWEST) * each
        self._undecided.clear()

    def _tell(self, standing: _Standing, verdict: Verdict, reason: str, gain: Gain | None) -> None:
        one = standing.candidate
        self.found.append(Found(one.name, one.group, reason, gain, **asdict(verdict)))


def sets_of(whole: frozenset[str], undecided: Iterable[str]) -> list[frozenset[str]]:
    """Return the changes of each trial of a round: none, the whole, and all but each one."""
    return [BASELINE, whole, *(whole - {name} for name in undecided)]


def cost(without: Observation, with_it: Observation) -> float | None:
    """Return the difference of the log tails without and with a change, if both are known."""
    if not without.tail_ns or not with_it.tail_ns:
        return None
    return math.log(without.tail_ns / with_it.tail_ns)


def gain_of(paired: Paired, level: float) -> Gain:
    """Return the gain, with an interval whose ends each err with this probability."""
    return Gain.of_logs(paired.mean, *paired.bounds(level), 1 - 2 * level)


def _mostly(broken: Sequence[str | None]) -> bool:
    reasons = [reason for reason in broken if reason]
    return len(reasons) >= _BEYOND and 2 * len(reasons) > len(broken)
