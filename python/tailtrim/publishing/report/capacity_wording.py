"""Result of a search of capacity: a table of goals and sentences, for terminal and page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailtrim import units
from tailtrim.laboratory.capacity import record
from tailtrim.laboratory.capacity.result import EndReason
from tailtrim.laboratory.capacity.trial import Purpose
from tailtrim.publishing.report import capacity_prediction
from tailtrim.publishing.report.capacity_prediction import LoadUnit
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.capacity.asleep import Asleep
    from tailtrim.laboratory.capacity.record import Capacity
    from tailtrim.laboratory.capacity.result import GoalResult
    from tailtrim.results.experiments import RecordedExperiment


def goals(capacity: Capacity) -> Table:
    """Return a row for each goal: its bounds, and how they were found."""
    unit = LoadUnit.of(capacity)
    columns = [
        Column(unit.name, page="Goal", kind="left"),
        Column("lower bound", label=f"Lower bound, {unit.name}", page=f"Lower bound\n{unit.name}"),
        Column("upper bound", label=f"Upper bound, {unit.name}", page=f"Upper bound\n{unit.name}"),
        Column("throughput", page=f"Conditional throughput\n{unit.name}"),
        Column("width", page="Width"),
        Column("trials at the bounds", "Trials at the bounds", "Trials", kind="text"),
    ]
    rows = [
        Row(
            _named(capacity, one),
            [
                unit.text(one.lower.load if one.lower else None),
                unit.text(one.upper.load if one.upper else None),
                unit.text(one.throughput),
                units.NONE if one.width is None else f"{100 * one.width:.1f} %",
                _trials(one),
            ],
        )
        for one in capacity.goals
    ]
    return Table(columns, rows)


def notes(capacity: Capacity) -> list[str]:
    """Return sentences: limits, doubts, and the time of the search."""
    of_goals = [note for one in capacity.goals for note in _notes(capacity, one)]
    done = [seen for _, seen in capacity.trials if seen is not None]
    invalid = sum(seen.invalid is not None for seen in done)
    took_s = sum(seen.took_s for seen in done)
    told = f" {invalid} of them invalid: repeated, and not counted." if invalid else ""
    predicted = capacity_prediction.sentences(capacity)
    of_goals += [_asleep(capacity, slept)] if (slept := capacity.asleep) is not None else []
    return [*of_goals, *predicted, f"{len(done)} trials took {took_s / 60:,.1f} min.{told}"]


def _asleep(capacity: Capacity, slept: Asleep) -> str:
    unit = LoadUnit.of(capacity)
    style = units.Times.of([[slept.low_ns, slept.high_ns]])
    return (
        f"The slower, the later: the median latency is {style.text(slept.low_ns)} up to"
        f" {unit.text(slept.low_to)} {unit.name} and {style.text(slept.high_ns)} from"
        f" {unit.text(slept.high_from)} {unit.name} on. A queue is shorter with less load: the"
        " device falls asleep between packets (idle states of its CPUs: audit checks PWR-003 and"
        " PWR-004; programs that have to be woken), or its interrupts wait for more packets"
        " (NET-001)."
    )


def sentence(capacity: Capacity) -> str:
    """Return the bounds of each goal in a sentence."""
    unit = LoadUnit.of(capacity)
    told = []
    for one in capacity.goals:
        known = [bound and unit.text(bound.load) for bound in (one.lower, one.upper)]
        span = {
            (True, True): "{} to {} {}",
            (True, False): "at least {0} {2}",
            (False, True): "less than {1} {2}",
            (False, False): "not known",
        }[bool(known[0]), bool(known[1])]
        told.append(f"{one.goal}: {span.format(*known, unit.name)}")
    return f"{'; '.join(told)}."


class CapacitySection(NamedTuple):
    """A table of goals, and sentences above and beneath it."""

    table: Table
    notes: list[str]
    sentence: str

    @classmethod
    def of(cls, capacity: Capacity | None) -> CapacitySection | None:
        """Return the section; ``None`` where nothing was searched for, or nothing is found yet."""
        if capacity is None or not capacity.goals:
            return None
        return cls(goals(capacity), notes(capacity), sentence(capacity))


def warm_ups(capacity: Capacity | None) -> list[str]:
    """Return the trials of a search that only warm up."""
    return [
        f"run-{number:03d}"
        for number, (trial, _) in enumerate(capacity.trials if capacity is not None else ())
        if trial.purpose is Purpose.WARM_UP
    ]


def capacity_of(experiment: RecordedExperiment | None) -> Capacity | None:
    """Return the search that the runs of an experiment are trials of, if they are.

    Raises:
        RunDirectoryError: its record is damaged.

    """
    return record.read(experiment.path) if experiment is not None else None


def _notes(capacity: Capacity, one: GoalResult) -> Iterator[str]:
    unit = LoadUnit.of(capacity)
    at = f"{unit.text(one.lower.load if one.lower else None)} {unit.name}"
    if one.ended is EndReason.GENERATOR:
        known = f"at least {at}" if one.lower else "not known"
        whose = "the generator's or the taps' limit, not the device's"
        yield f"{one.goal}: {known}: {whose} ({one.limit})."
    elif one.ended is EndReason.HIGHEST:
        yield f"{one.goal}: at least {at}: the highest load of the plan."
    elif one.ended is EndReason.LOWEST:
        lowest = unit.text(capacity.search["smallest"])
        yield f"{one.goal}: not met at the lowest load, {lowest} {unit.name}."
    elif one.ended is EndReason.BUDGET:
        yield f"{one.goal}: the budget ended before the bounds were near; go on with more."
    elif one.ended is EndReason.NOT_DECIDED and one.not_decided:
        loads = ", ".join(unit.text(load) for load in one.not_decided[:3])
        more = f" and {len(one.not_decided) - 3} more" if len(one.not_decided) > 3 else ""  # noqa: PLR2004
        yield (
            f"{one.goal}: loads between the bounds were measured and not decided"
            f" ({loads}{more} {unit.name}): the share of bad packets is too near to the limit,"
            " bad packets come in clusters, so that few tell little, or the load was a bound until"
            " it was measured again at the end."
        )
    if one.upper is not None and one.upper.cold:
        yield (
            f"{one.goal}: at the upper bound, packets were lost at the start of each trial only: it"
            " is the bound of a cold device. A longer skip_s in the plan leaves the start out."
        )
    for bound, which in ((one.lower, "lower"), (one.upper, "upper")):
        if bound is not None and not bound.verified:
            load = f"{unit.text(bound.load)} {unit.name}"
            yield f"{one.goal}: the {which} bound {load} was not measured again: the budget ended."


def _trials(one: GoalResult) -> str:
    told = [
        f"{bound.good_trials} of {bound.trials} good in {bound.duration_s:.3g} s"
        for bound in (one.lower, one.upper)
        if bound is not None
    ]
    return ", ".join(told) or units.NONE


def _named(capacity: Capacity, one: GoalResult) -> str:
    for goal in capacity.search["goals"]:
        if goal["name"] == one.goal and goal["decided_by"] == "trials":
            ratio = goal["loss_ratio"]
            return f"{one.goal} ({f'{100 * ratio:g} % lost' if ratio else 'none lost'})"
        if goal["name"] == one.goal:
            return f"{one.goal} ({100 * goal['confidence']:g} % confidence)"
    return one.goal
