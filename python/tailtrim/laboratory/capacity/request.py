"""Request for a search: a plan with its loads, goals, the width of the bounds and the time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tailtrim.analysis.options import amount_of
from tailtrim.analysis.slo import objectives
from tailtrim.errors import PlanError
from tailtrim.laboratory.capacity.loss_goal import LossGoal
from tailtrim.laboratory.capacity.promise import Condition, Promise
from tailtrim.laboratory.capacity.search import Search
from tailtrim.laboratory.devices.reflector import Reflector
from tailtrim.laboratory.experiment.taps import held_packets
from tailtrim.laboratory.plan import Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.trial import Trial
    from tailtrim.laboratory.plan import Plan, Run

Unit = Literal["packets/s", "bit/s", "packets in a burst"]
#: Quantity that a search varies (``--search``).
SearchQuantity = Literal["load", "burst"]

#: The lowest load is that of the plan divided by this.
_RANGE = 1_000
#: Two of three trials decide a load for NDR and PDR; FD.io's CSIT has half of 21 of 1 s, for hosts
#: that measure around the clock.
_TRIALS = 3
#: PDR as FD.io's CSIT has it.
_PDR = 0.005


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of a search: the plan's is the highest.

    Args:
        traffic: that of the plan.
        unit: unit of a load; packets in a burst are sent at the plan's mean rate.

    """

    traffic: Traffic
    unit: Unit

    @classmethod
    def of(cls, run: Run, searched: SearchQuantity) -> Loads:
        """Return the loads of the one run of a plan.

        Raises:
            PlanError: there is nothing to search for in it.

        """
        traffic = run.traffic
        if traffic.schedule.brings_rate:
            raise PlanError("traffic.schedule: a replay has the rate of its capture, not others")
        burst = traffic.schedule.burst
        if searched == "burst":
            if burst is None or burst == 1:
                raise PlanError(
                    "traffic.schedule: expected burst:N with the largest N to be tried, for"
                    " bursts at the mean rate of the plan"
                )
            return cls(traffic, "packets in a burst")
        return cls(traffic, "bit/s" if _rate(traffic)[1] == "bit/s" else "packets/s")

    @property
    def largest(self) -> int:
        """The highest load."""
        if self.unit == "packets in a burst":
            return self.traffic.schedule.burst or 1
        return _rate(self.traffic)[0]

    @property
    def smallest(self) -> int:
        """The lowest load."""
        return max(self.largest // _RANGE, 1)

    def pps(self, load: int) -> float:
        """Return the packets per second at a load."""
        if self.unit == "packets/s":
            return float(load)
        mean_pps = self.traffic.packets_per_s or 0.0
        return mean_pps if self.unit == "packets in a burst" else mean_pps * load / self.largest

    def sent(self, load: int, duration_s: float) -> Traffic:
        """Return what is sent at a load, for so long."""
        told = self.traffic.model_dump(mode="json") | {"duration_s": duration_s}
        if self.unit == "packets in a burst":
            told |= {"schedule": f"burst:{load}"}
        elif self.unit == "bit/s":
            told |= {"rate": f"{load}bit/s"}
        else:
            told |= {"rate": None, "rate_pps": load}
        return Traffic.model_validate(told)

    def loop(self, load: int) -> dict[str, int | str]:
        """Return the load as the value of a loop variable, by which reports arrange runs."""
        if self.unit == "packets in a burst":
            return {"burst": load}
        return {"rate": f"{load}bit/s" if self.unit == "bit/s" else load}


@dataclass(frozen=True)
class SearchRequest:
    """A search in the words of its plan.

    Args:
        run: the one run of the plan; its load is the highest that is tried.
        loads: its loads.
        search: the search.
        conditions: those of the promise.
        lead_s: time at the beginning of each trial that is left out.

    """

    run: Run
    loads: Loads
    search: Search
    conditions: tuple[Condition, ...]
    lead_s: float

    def run_of(self, number: int, trial: Trial, repetition: int) -> Run:
        """Return the run of a trial.

        Args:
            number: its place among all trials.
            trial: which one.
            repetition: how many trials had the same load before: each has a seed of its own.

        """
        traffic = self.loads.sent(trial.load, round(trial.duration_s + self.lead_s, 3))
        more = {"number": number, "traffic": traffic, "repetition": repetition}
        return self.run.model_copy(update=more | {"loop": self.loads.loop(trial.load)})

    def as_json(self) -> dict[str, Any]:
        """Return all on which the trials depend, as JSON data; not the budget."""
        search = self.search
        return {
            "unit": self.loads.unit,
            "smallest": search.smallest,
            "largest": search.largest,
            "largest_pps": search.pps(search.largest),
            "width": search.width,
            "trial_s": search.trial_s,
            "goals": [_told(goal) for goal in search.goals],
        }


def search_request(  # noqa: PLR0913 - keyword-only options, each with a default
    plan: Plan,
    runs: Sequence[Run],
    *,
    slo: str | None = None,
    searched: SearchQuantity = "load",
    width: float = 0.02,
    confidence: float = 0.95,
    budget_s: float = 540.0,
) -> SearchRequest:
    """Return the search that a plan and options ask for: NDR, PDR and a promise.

    Args:
        plan: its load is the highest that is tried, its duration that of a trial.
        runs: those of the plan.
        slo: the promise, such as ``p99.9 < 200us, loss < 1e-4``.
        searched: the quantity to vary: the load, or the packets in a burst at the mean rate.
        width: how far the bounds of a goal may be apart, as a share.
        confidence: of each bound of the promise.
        budget_s: how long all trials may take.

    Raises:
        PlanError: the plan leaves open what is to be measured.
        ValueError: the promise, or an option, makes no sense.

    """
    run = _one_run(plan, runs)
    if not 0.001 <= width < 0.5:  # noqa: PLR2004 - as the text says
        raise ValueError(f"invalid width {width:g}, expected from 0.001 to below 0.5")
    if not 0.5 < confidence < 1:  # noqa: PLR2004 - as the text says
        raise ValueError(f"invalid confidence {confidence:g}, expected between 0.5 and 1")
    loads = Loads.of(run, searched)
    lead_s = 0.0 if isinstance(run.dut, Reflector) else plan.skip_s
    trial_s = run.traffic.duration_s - lead_s
    least_s = _TRIALS * trial_s
    goals: list[LossGoal | Promise] = [
        LossGoal("NDR", 0.0, trial_s, least_s),
        LossGoal("PDR", _PDR, trial_s, least_s),
    ]
    conditions = tuple(Condition.of(one) for one in objectives(slo)) if slo is not None else ()
    if slo is not None:
        goals.append(Promise(slo, conditions, confidence, trial_s, least_s))
    # Where taps begin to write, they take a CPU from the generator. A reflector has no taps.
    most = math.inf
    if not isinstance(run.dut, Reflector):
        most = held_packets(run.traffic, plan.snap_bytes) * trial_s / (trial_s + lead_s)
    search = Search(
        goals=tuple(goals),
        smallest=loads.smallest,
        largest=loads.largest,
        pps=loads.pps,
        trial_s=trial_s,
        width=width,
        budget_s=budget_s,
        seed=plan.seed,
        most_packets=most,
    )
    return SearchRequest(run, loads, search, conditions, lead_s)


def _rate(traffic: Traffic) -> tuple[int, str]:
    """Return the rate of a plan, and pps or bit/s."""
    if traffic.rate_pps is not None:
        return traffic.rate_pps, "pps"
    return amount_of(traffic.rate or "")


def _one_run(plan: Plan, runs: Sequence[Run]) -> Run:
    """Return the run whose load is searched for."""
    measured = [run for run in runs if not run.floor]
    if len(measured) != 1:
        raise PlanError(
            f"the plan has {len(measured)} runs: a search takes one device and one traffic,"
            " expected a plan without loop, factors, repeat and trace: both"
        )
    if plan.boot is not None:
        raise PlanError("boot: not with a search of capacity, leave it out")
    if plan.by_minute:
        raise PlanError(
            "by_minute: not with a search of capacity, which needs each packet, leave it out"
        )
    return measured[0]


def _told(goal: LossGoal | Promise | Any) -> dict[str, Any]:
    if isinstance(goal, LossGoal):
        return {
            "name": goal.name,
            "decided_by": "trials",
            "loss_ratio": goal.loss_ratio,
            "exceed_ratio": goal.exceed_ratio,
            "final_trial_s": goal.final_trial_s,
            "duration_sum_s": goal.duration_sum_s,
        }
    return {
        "name": goal.name,
        "decided_by": "proof",
        "confidence": goal.confidence,
        "conditions": [
            {"text": one.text, "ratio": one.ratio, "deadline_ns": one.deadline_ns}
            for one in goal.conditions
        ],
    }
