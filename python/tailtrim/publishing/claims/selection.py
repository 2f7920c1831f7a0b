"""Which runs a claim is about: :func:`selected`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.plan.plan_file import close

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tailtrim.results.experiments import RecordedExperiment, RecordedRun

Where = dict[str, Any]
#: Values of a variable that an error lists.
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Combination:
    """Runs that are repetitions of one another; ``left_out`` says which do not count, and why."""

    name: str
    loop: dict[str, Any]
    runs: list[RecordedRun] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def mistakes(experiment: RecordedExperiment, where: Where) -> Iterator[tuple[str, str]]:
    """Yield what of a selection no run of the experiment has: the key, and the mistake."""
    measured = _measured(experiment, where)
    runs = [_values(run) for run in measured]
    if not runs:
        yield "", "the experiment has no complete run"
        return
    known = dict.fromkeys(name for run in runs for name in run)
    unknown = [name for name in where if name not in known]
    for name in unknown:
        variables = dict.fromkeys(name for run in measured for name in run.loop)
        told = ", ".join(variables) or "run, repetition (there is no loop variable)"
        yield name, f"no run has this variable, expected one of {told}{close(name, known)}"
    for name, wanted in where.items():
        values = list(dict.fromkeys(_told(run[name]) for run in runs if name in run))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if name not in unknown and _told(value) not in values:
                shown = [*values[:_MOST_LISTED], *(["…"] if values[_MOST_LISTED:] else [])]
                told = f"no run has {_told(value)}, expected one of {', '.join(shown)}"
                yield name, told + close(_told(value), values)
                unknown.append(name)
    if not unknown and not any(_matches(run, where) for run in runs):
        told = ", ".join(f"{name}: {_told(value)}" for name, value in where.items())
        yield "", f"no run has all of {told}"


def selected(experiment: RecordedExperiment, where: Where) -> list[Combination]:
    """Return the combinations that a selection has, each with its runs that can be trusted."""
    found: dict[str, Combination] = {}
    for run in _measured(experiment, where):
        if not _matches(_values(run), where):
            continue
        label = run.outcome.label
        one = found.setdefault(label, Combination(label, run.loop))
        if run.outcome.invalid:
            one.left_out.append(f"{run.outcome.run} is {run.problem}")
        else:
            one.runs.append(run)
    return list(found.values())


def paired(
    a: Sequence[Combination], b: Sequence[Combination], of_a: Where, of_b: Where
) -> list[tuple[Combination, Combination]]:
    """Put combinations together that have the same values of what neither selection names.

    Raises:
        ValueError: one has no counterpart, or several.

    """
    named = {*of_a, *of_b}

    def others(one: Combination) -> dict[str, str]:
        return {name: _told(value) for name, value in one.loop.items() if name not in named}

    pairs = []
    for one in a:
        same = [other for other in b if others(other) == others(one)]
        if len(same) != 1:
            told = ", ".join(other.name for other in same) or "none"
            raise ValueError(
                f"for {one.name} expected one combination of B with the same other loop variables,"
                f" found {told}: name more of them in a and b"
            )
        pairs.append((one, same[0]))
    return pairs


def _measured(experiment: RecordedExperiment, where: Where) -> list[RecordedRun]:
    """Return the runs of devices; the floor, the testbed without one, only if ``run`` names it."""
    return [run for run, _ in experiment.complete if not run.outcome.floor or "run" in where]


def _values(run: RecordedRun) -> dict[str, Any]:
    """Return all that a selection may name of a run; loop variables come before the rest."""
    parts = {"dut": run.dut, "traffic": run.traffic, "boot": run.boot}
    told = dict(_leaves(parts, ""))
    return told | {"run": run.outcome.run, "repetition": run.repetition} | run.loop


def _leaves(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, f"{before}{key}.")
        else:
            yield f"{before}{key}", item


def _matches(run: dict[str, Any], where: Where) -> bool:
    return all(
        name in run
        and _told(run[name])
        in [_told(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        for name, wanted in where.items()
    )


def _told(value: Any) -> str:
    """Return a value as YAML has it; 1000 and 1000.0 are the same."""
    if isinstance(value, list):
        return f"[{', '.join(map(_told, value))}]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
