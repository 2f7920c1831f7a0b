"""Worlds whose truth is known, to try searches in: simulated results of runs.

The tail of a run is the baseline times the effects of its changes, times noise from run to run. A
change may help, help only together with another one, do nothing, or make the tail longer.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tailtrim.laboratory.trim.search import Search
from tailtrim.laboratory.trim.trial import Candidate, Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.laboratory.trim.trial import Settings, Trial
    from tailtrim.laboratory.trim.verdict import Result

#: Laws of the log of the noise, each with a standard deviation of one: the lognormal noise of runs;
#: a law with so heavy tails that single runs are far off (Student's of 3 degrees of freedom); and
#: runs of which one in ten is disturbed by something else, and only longer.
Noise = Literal["normal", "heavy", "disturbed"]

_BASELINE_NS = 100_000.0
_DISTURBED_SHARE, _DISTURBED_BY = 0.1, 3.0
_UNBOOTED = "the device's node did not boot"


@dataclass(frozen=True, slots=True)
class World:
    """A device under test with planted effects on the log of its tail; negative is shorter.

    Args:
        groups: the candidates of each group.
        alone: effects of single changes.
        together: effects that changes only have together; positive for those that replace each
            other.
        sigma: standard deviation of the log of the tail between runs.
        noise: its law.
        drift: by how much the log of the tail moves in a hundred trials.
        booting: the changes that take a boot.
        boot_sigma: standard deviation of the log of the tail between boots.
        unbootable: those with which nothing boots.
        clash: changes with which nothing boots if all of them are made.

    """

    groups: Mapping[str, tuple[str, ...]]
    alone: Mapping[str, float]
    together: Mapping[frozenset[str], float]
    sigma: float = 0.1
    noise: Noise = "normal"
    drift: float = 0.0
    booting: frozenset[str] = frozenset()
    boot_sigma: float = 0.0
    unbootable: frozenset[str] = frozenset()
    clash: frozenset[str] = frozenset()

    @property
    def candidates(self) -> list[Candidate]:
        """All changes, group by group."""
        return [
            Candidate(one, group, boots=one in self.booting)
            for group, names in self.groups.items()
            for one in names
        ]

    @property
    def helpful(self) -> frozenset[str]:
        """The changes that a search should keep."""
        alone = {name for name, effect in self.alone.items() if effect < 0}
        together = [names for names, effect in self.together.items() if effect < 0]
        return frozenset(alone.union(*together))

    def run(self, trial: Trial, rng: random.Random) -> Observation:
        """Return what a trial would measure."""
        if trial.changes & self.unbootable or (self.clash and self.clash <= trial.changes):
            return Observation(None, failed=_UNBOOTED, untried=_UNBOOTED)
        log = math.log(_BASELINE_NS) + self.drift * trial.number / 100
        log += sum(effect for name, effect in self.alone.items() if name in trial.changes)
        log += sum(effect for names, effect in self.together.items() if names <= trial.changes)
        log += self.sigma * _noise(self.noise, rng)
        return Observation(math.exp(log), rate_pps=10_000.0, seconds=8.0)


def simulate(world: World, settings: Settings, seed: int) -> Result:
    """Search in a world; ``seed`` is that of the noise."""
    rng = random.Random(seed)  # noqa: S311 - noise, not a secret
    search = Search(world.candidates, settings)
    boots: dict[tuple[int, frozenset[str]], float] = {}
    while search.trial is not None:
        trial = search.trial
        boot = (trial.block, trial.changes & world.booting)
        if boot not in boots:
            boots[boot] = world.boot_sigma * rng.gauss(0, 1) if world.boot_sigma else 0.0
        seen = world.run(trial, rng)
        if seen.tail_ns is not None:
            # The deviation of a boot is the same for all its trials.
            seen = replace(seen, tail_ns=seen.tail_ns * math.exp(boots[boot]))
        search.tell(seen)
    assert search.result is not None
    return search.result


def _noise(law: Noise, rng: random.Random) -> float:
    if law == "normal":
        return rng.gauss(0, 1)
    if law == "heavy":
        # Student's law of 3 degrees of freedom has a variance of 3.
        chi = sum(rng.gauss(0, 1) ** 2 for _ in range(3))
        return rng.gauss(0, 1) / math.sqrt(chi / 3) / math.sqrt(3)
    disturbed = _DISTURBED_BY if rng.random() < _DISTURBED_SHARE else 0.0
    variance = 1 + _DISTURBED_SHARE * (1 - _DISTURBED_SHARE) * _DISTURBED_BY**2
    return (rng.gauss(0, 1) + disturbed) / math.sqrt(variance)
