"""The search: a function from the observations so far to the next trial or the result.

It reads no clock and does no trials. The same observations in the same order lead to the same
trials: a search that was interrupted is resumed by telling it the recorded observations.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from tailtrim.laboratory.trim.alpha_spending import FEWEST, Holm, Looks
from tailtrim.laboratory.trim.elimination import Elimination, cost, gain_of
from tailtrim.laboratory.trim.paired import Paired
from tailtrim.laboratory.trim.ranking import by_causes
from tailtrim.laboratory.trim.schedule import BASELINE, Schedule
from tailtrim.laboratory.trim.screening import FEWEST_CANDIDATES, MOST_GROUPS, Screened, screen
from tailtrim.laboratory.trim.trial import BOOT, EXPLAIN, PATH
from tailtrim.laboratory.trim.verdict import Found, Result, cumulative_steps
from tailtrim.verdict import BETTER, NOT_DECIDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.trim.schedule import Steps
    from tailtrim.laboratory.trim.trial import Candidate, Observation, Seen, Settings, Trial
    from tailtrim.laboratory.trim.verdict import Gain

#: Pairs of baseline and all that is kept: the first look at them, and the most. Eight know the
#: standard deviation to a quarter: the interval of the gain is not much wider than it must be.
CONFIRM, CONFIRM_MOST = 8, 16
#: Trials that elimination leaves for them.
_RESERVE = 2 * CONFIRM
#: Baselines with a trace: of two one could not tell which is the exception.
EXPLAINED = 3


def affordable(
    candidates: Sequence[Candidate], settings: Settings, *, done: int = 0
) -> tuple[list[Candidate], list[Found]]:
    """Divide the candidates into those that the budget allows to try, and the others.

    Args:
        candidates: in the order of expected gain.
        settings: of the search.
        done: trials that there were already.

    """
    trials = settings.trials - done - _RESERVE
    tried: list[Candidate] = []
    found: list[Found] = []
    for one in candidates:
        groups = {other.group for other in tried} | {one.group}
        booting = sum(other.boots for other in (*tried, one))
        # FEWEST rounds of the baseline, the whole, and the whole without each of them.
        most = (trials - (booting + 1 if booting else 0)) // FEWEST - 2
        if len(tried) < most and len(groups) <= MOST_GROUPS:
            tried.append(one)
            continue
        reason = "the budget is too small" if len(tried) >= most else "too many groups"
        found.append(Found(one.name, one.group, reason, tried=False))
    return tried, found


class Search:
    """A search for the changes that cut a tail.

    Args:
        candidates: in the order of expected gain; the first ones are tried if the budget is small.
        settings: of the search.

    """

    def __init__(self, candidates: Sequence[Candidate], settings: Settings) -> None:
        """Begin with nothing tried."""
        booting = frozenset(one.name for one in candidates if one.boots)
        self._schedule = Schedule(settings, booting)
        self._candidates = list(candidates)
        self._steps = self._all()
        #: The next trial; ``None`` at the end.
        self.trial: Trial | None = None
        #: The result, at the end.
        self.result: Result | None = None
        self._advance(None)

    @property
    def seen(self) -> Sequence[Seen]:
        """The trials so far, in order."""
        return self._schedule.seen

    @property
    def left(self) -> int:
        """Number of trials that the budget still allows."""
        return self._schedule.left()

    def tell(self, observation: Observation) -> None:
        """Take the observation of :attr:`trial`, and go on to the next one."""
        self._advance(observation)

    def _advance(self, observation: Observation | None) -> None:
        try:
            self.trial = next(self._steps) if observation is None else self._steps.send(observation)
        except StopIteration as ended:
            self.trial, self.result = None, ended.value

    def _all(self) -> Steps[Result]:
        schedule, settings = self._schedule, self._schedule.settings
        if settings.explain:
            yield from self._explained()
        tried, found = affordable(self._candidates, settings, done=len(schedule.seen))
        unbooted = yield from self._booted(tried)
        found += unbooted
        tried = [one for one in tried if one.name not in {other.name for other in unbooted}]
        groups: dict[str, list[Candidate]] = {}
        for one in tried:
            groups.setdefault(one.group, []).append(one)
        screened = Screened(tried, [])
        if len(tried) >= FEWEST_CANDIDATES and len(groups) > 1:
            screened = yield from screen(schedule, groups)
        found += screened.out
        # One hypothesis for each candidate, and one for all that is kept together.
        holm = Holm(settings.error, len(screened.going) + 1)
        elimination = Elimination(schedule, screened.going, holm)
        yield from elimination.rounds(_RESERVE)
        total: Gain | None = None
        found += elimination.found
        if elimination.kept:
            total, refused = yield from _confirm(schedule, elimination.kept, holm)
            if refused:
                found = [
                    replace(one, verdict=NOT_DECIDED, reason=refused)
                    if one.verdict == BETTER
                    else one
                    for one in found
                ]
            yield from _measure_steps(schedule, found)
        return self._ended(found, total, elimination.needed_trials)

    def _explained(self) -> Steps[None]:
        """Put the changes first whose causes cost the baseline's quantile most."""
        seen = yield from self._schedule.block(EXPLAIN, [BASELINE] * EXPLAINED)
        told = [one.costs_ns for one in seen if one.costs_ns]
        checks = {check for costs in told for check in costs}
        costs = {check: median(one.get(check, 0.0) for one in told) for check in checks}
        self._candidates = by_causes(self._candidates, costs)

    def _booted(self, tried: Sequence[Candidate]) -> Steps[list[Found]]:
        """Boot with each change alone that takes a boot; return those that do not come up."""
        booting = [one for one in tried if one.boots]
        if not booting:
            return []
        sets = [BASELINE, *(frozenset([one.name]) for one in booting)]
        _, *seen = yield from self._schedule.block(BOOT, sets)
        told = [(one, at.untried) for one, at in zip(booting, seen, strict=True)]
        return [
            Found(one.name, one.group, f"it could not be tried: {why}", tried=False)
            for one, why in told
            if why is not None
        ]

    def _ended(self, found: list[Found], total: Gain | None, needed_trials: int | None) -> Result:
        schedule = self._schedule
        order = [one.name for one in self._candidates]
        drifted = schedule.drift()
        doubts = [one.observation.doubt for one in schedule.seen if one.observation.doubt]
        doubted = f"{len(doubts)} of {len(schedule.seen)} trials are not to be trusted and not used"
        return Result(
            found=tuple(sorted(found, key=lambda one: order.index(one.name))),
            total=total,
            trials=len(schedule.seen),
            seconds=sum(one.observation.seconds for one in schedule.seen),
            needed_trials=needed_trials,
            notices=(
                *([drifted] if drifted else []),
                *([f"{doubted}, such as: {doubts[0]}"] if doubts else []),
            ),
        )


def _confirm(
    schedule: Schedule, kept: frozenset[str], holm: Holm
) -> Steps[tuple[Gain | None, str | None]]:
    """Compare all that is kept with the baseline in new rounds: no choice was made by these.

    Returns:
        the gain, and why nothing can be kept after all.

    """
    looks = Looks(schedule.left() // 2, first=CONFIRM, longest=CONFIRM_MOST)
    differences: list[float] = []
    broken: list[str] = []
    for done in range(1, looks.longest + 1):
        if not schedule.affords(2):
            break
        before, after = yield from schedule.block("confirm", [BASELINE, kept])
        difference = cost(before, after)
        if difference is not None:
            differences.append(difference)
        reason = schedule.beyond_limit(after)
        broken += [reason] if reason else []
        share = looks.share(done)
        if share is None or len(differences) < FEWEST:
            continue
        if 2 * len(broken) > done:
            return None, f"all that is proven together: {broken[-1]}"
        paired, level = Paired.of(differences), holm.level * share
        if paired.p_value() <= level:
            return gain_of(paired, level), None
    return None, "all that is proven together does not show a gain against the baseline"


def _measure_steps(schedule: Schedule, found: Sequence[Found]) -> Steps[None]:
    """Try the steps between baseline and all that is kept, as far as the budget allows it.

    Nothing is decided by them: they are for the report, and no other phase tries them.
    """
    between = cumulative_steps(found)[1:-1]
    for _ in range(FEWEST):
        if not between or not schedule.affords(len(between)):
            return
        yield from schedule.block(PATH, between)
