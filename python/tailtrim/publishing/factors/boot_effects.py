"""Each kernel and boot line compared with the first ones of a plan, with boots as repetitions.

Packets of one boot are no repetitions of it: where kernel and memory came to lie is the same for
all of them. Of few boots, Student's interval of the logarithms is taken
(:mod:`tailtrim.analysis.compare`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.plan import LEAST_BOOTS, load, loop_variables
from tailtrim.publishing.factors.effects import Effects, cases_of, outcomes_of, record_of, text_of
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.plan import Boot, Run

_EMULATED = "of an emulated CPU (tcg), not of hardware"


def has_boots(path: Path) -> bool:
    """Whether an experiment is there whose plan boots the device's node."""
    try:
        return record_of(path)["plan"].get("boot") is not None
    except (RunDirectoryError, KeyError, AttributeError):
        return False


def boots_of(path: Path) -> Effects:
    """Compare each kernel and boot line of an experiment with the first ones of its plan.

    Raises:
        RunDirectoryError: there is no such experiment, or a run directory is damaged.
        PlanError: its plan cannot be read.

    """
    outcomes = outcomes_of(path)
    plan, runs = load(path / "plan.yml")
    if plan.boot is None:
        raise RunDirectoryError(f"{path}: the plan of this experiment boots nothing")
    own = loop_variables(path / "plan.yml", ("boot",), ("dut", "node"))
    first = plan.boot
    # Runs of one combination are its boots. The first kernel and boot line are before the others.
    # Packets of one boot say nothing of how boots differ.
    ordered = sorted(runs, key=_order(first))
    cases = cases_of(path, ordered, outcomes, lambda run: _key(run, first, own), LEAST_BOOTS)
    cases.sort(key=lambda case: case.loop)
    return Effects(
        name=plan.name,
        baseline={"kernel": first.kernel, "boot line": first.cmdline or "(empty)"},
        together={},
        cases=tuple(cases),
        slopes=(),
        kind="boots",
        repeated="boots",
        measured="Latencies",
        caveat=_EMULATED if "tcg" in _accelerators(path) else "",
        each="kernel and boot line",
        row=(
            "Each row is another kernel and boot line, or the device without a virtual machine"
            f" (bare), in {plan.boots} boots"
        ),
    )


def _order(first: Boot) -> Callable[[Run], tuple[object, ...]]:
    def place(run: Run) -> tuple[object, ...]:
        boot = run.boot
        named = (boot.kernel, boot.cmdline) if boot is not None else ("", "")
        return boot != first, boot is None, named, run.repetition

    return place


def _key(run: Run, first: Boot, own: set[str]) -> tuple[str, str, str]:
    """Return the other loop variables, kernel and boot line, as text; of the first, none."""
    others = {name: value for name, value in run.loop.items() if name not in own}
    loop = ", ".join(f"{name}={text_of(value)}" for name, value in others.items())
    if run.boot is None:
        return loop, "bare", ""
    return (loop, "", "") if run.boot == first else (loop, run.boot.kernel, run.boot.cmdline)


def _accelerators(path: Path) -> set[str]:
    """Return what ran the guests."""
    records = [parsed(place.read_text("utf-8")) for place in path.glob("boots/*/boot.json")]
    return {str(record["accelerator"]) for record in records if "accelerator" in record}
