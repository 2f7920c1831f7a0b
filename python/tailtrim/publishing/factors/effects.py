"""Each value of each factor compared with the baseline: latencies, differences and verdicts."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.analysis.compare import compare_groups
from tailtrim.analysis.compare.sources import Group, Repetition
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.devices.reflector import Reflector
from tailtrim.laboratory.plan import load
from tailtrim.publishing.factors.slope import RulePosition, Slope, slopes
from tailtrim.results import RunDirectory
from tailtrim.results.typed_json import read_object
from tailtrim.verdict import Verdict, fewest_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.compare import Row
    from tailtrim.laboratory.plan import Run

    Integers = np.ndarray[Any, np.dtype[np.int64]]
    #: Loop variables, factor and its value, as text.
    Key = tuple[str, str, str]
    #: Outcomes by run, as the record has them.
    Outcomes = dict[str, dict[str, Any]]

#: As ``tailtrim compare`` on the command line: a smaller difference is drift.
MARGIN = 0.01
#: Quantiles that are reported of each case; the largest is p1.
QUANTILES = ("0.25", "0.5", "0.75", "0.9", "0.99", "0.999", "1")


@dataclass(frozen=True, slots=True)
class Effect(Verdict):
    """A quantile of the baseline (``a``) and of a case: ``ratio`` above one is slower.

    ``low`` and ``high`` are the ratio's interval; the verdict holds for all quantiles of the case.
    """

    p: str
    a_ns: int
    b_ns: int
    ratio: float
    low: float | None
    high: float | None

    @property
    def change_ns(self) -> tuple[float, float | None, float | None]:
        """The difference and its interval, by the baseline's value."""
        low, high = (None if r is None else (r - 1) * self.a_ns for r in (self.low, self.high))
        return self.b_ns - self.a_ns, low, high


@dataclass(frozen=True, slots=True)
class Case:
    """One combination: a factor with one value, the baseline (no factor), or all together.

    ``loop`` are the values of the loop variables. Latencies are those of all its runs; ``skipped``
    says why there are none, ``left_out`` what this host lacks of all together and which runs do
    not count. ``most`` is the quantile that changed most, ``resolution_ps`` that of
    the coarsest stamps of its runs, ``needed`` how many runs of a value are
    the fewest to compare if these are fewer.
    """

    factor: str
    value: str
    loop: str
    runs: int
    samples: int = 0
    lost: int = 0
    quantiles_ns: dict[str, int] | None = None
    median: Effect | None = None
    most: Effect | None = None
    resolution_ps: int = 1_000
    needed: int | None = None
    skipped: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name for a row of a table."""
        return f"{self.factor} {self.value}".strip() if self.factor else "baseline"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the quantile that changed most."""
        return self.most or Verdict(needed=self.needed)

    @property
    def iqr_ns(self) -> int | None:
        """The interquartile range, which the paper takes for jitter."""
        known = self.quantiles_ns
        return known["0.75"] - known["0.25"] if known else None


@dataclass(frozen=True, slots=True)
class Effects:
    """All cases of an experiment, by loop variables, and the cost of a firewall rule.

    ``kind`` is what differs between cases, and the name of the files: factors or boots.
    ``repeated`` are the repetitions of a case. ``measured`` is what the latencies are, with a
    ``caveat`` where there is one; ``each`` is what a case stands for, ``row`` says it of a row.
    """

    name: str
    baseline: dict[str, str]
    together: dict[str, str]
    cases: tuple[Case, ...]
    slopes: tuple[Slope, ...]
    kind: str = "factors"
    repeated: str = "runs"
    measured: str = "Round-trip times"
    caveat: str = ""
    each: str = "value of a factor"
    row: str = "Each row has another value of one factor"

    @property
    def loops(self) -> list[str]:
        """The combinations of the loop variables, in order."""
        return list(dict.fromkeys(case.loop for case in self.cases))

    def of(self, loop: str) -> list[Case]:
        """Return the cases of a combination, the baseline first."""
        return [case for case in self.cases if case.loop == loop]


def has_factors(path: Path) -> bool:
    """Whether an experiment is there whose plan has factors."""
    try:
        return bool(record_of(path)["plan"].get("factors"))
    except (RunDirectoryError, KeyError, TypeError, AttributeError):
        return False


def effects_of(path: Path) -> Effects:
    """Compare each value of each factor of an experiment with the baseline.

    Raises:
        RunDirectoryError: there is no such experiment, or a run directory is damaged.
        PlanError: its plan cannot be read.

    """
    outcomes = outcomes_of(path)
    plan, runs = load(path / "plan.yml")
    if not plan.factors:
        raise RunDirectoryError(f"{path}: the plan of this experiment has no factors")
    # Runs of one combination are repetitions of it.
    ordered = sorted(runs, key=lambda run: (run.repetition, run.number))
    cases = cases_of(path, ordered, outcomes, _key)
    loops = list(dict.fromkeys(case.loop for case in cases))
    # Runs may be in random order, cases are in the plan's: the baseline first, all together last.
    named = [(name, text_of(value)) for name, every in plan.factors.items() for value in every]
    place = {("", ""): -1} | {one: at for at, one in enumerate(named)}
    cases.sort(
        key=lambda case: (
            loops.index(case.loop),
            place.get((case.factor, case.value), len(named)),
        )
    )
    return Effects(
        name=plan.name,
        baseline={name: text_of(values[0]) for name, values in plan.factors.items()},
        together={name: text_of(value) for name, value in plan.together.items()},
        cases=tuple(cases),
        slopes=tuple(slopes(_positions(path, runs, outcomes))),
        measured="Round-trip times" if isinstance(plan.dut, Reflector) else "Latencies",
    )


def record_of(path: Path) -> dict[str, Any]:
    """Return the record of an experiment.

    Raises:
        RunDirectoryError: it cannot be read, or is none.

    """
    told = read_object(path / "experiment.json")
    if not isinstance(told.get("outcomes"), list):
        raise RunDirectoryError(f"{path / 'experiment.json'}: not the record of an experiment")
    return told


def outcomes_of(path: Path) -> Outcomes:
    """Return the outcomes of an experiment by run; errors are those of :func:`record_of`."""
    return {outcome["run"]: outcome for outcome in record_of(path)["outcomes"]}


def cases_of(
    path: Path,
    runs: Iterable[Run],
    outcomes: Outcomes,
    key_of: Callable[[Run], Key],
    least: int = 1,
) -> list[Case]:
    """Sum up the runs of each combination, and compare it with the baseline of its loop variables.

    Args:
        path: the experiment.
        runs: its runs; the floor is left out.
        outcomes: by run.
        key_of: returns loop variables, factor and value of a run; the baseline has no factor.
        least: with fewer runs on a side, nothing is compared.

    """
    combinations: dict[Key, list[Run]] = {}
    for run in runs:
        if not run.floor:
            combinations.setdefault(key_of(run), []).append(run)
    told = {
        key: [(run, outcomes.get(run.folder)) for run in same] for key, same in combinations.items()
    }
    groups = {key: _group(path, key, of_key) for key, of_key in told.items()}
    nothing = Group("", ())
    cases = []
    for key, group in groups.items():
        baseline = groups.get((key[0], "", ""), nothing)
        few = min(len(side.repetitions) for side in (group, baseline)) < least
        outcomes_of_key = [outcome for _, outcome in told[key] if outcome]
        case = _case(key, group, nothing if few else baseline, outcomes_of_key)
        cases.append(replace(case, needed=fewest_runs()) if few and key[1] else case)
    return cases


def _key(run: Run) -> Key:
    """Return loop variables, factor and its value, as text."""
    varied = run.varied or ""
    loop = ", ".join(f"{name}={text_of(v)}" for name, v in run.loop.items() if name != varied)
    return loop, varied, text_of(run.loop[varied]) if varied in run.loop else ""


def text_of(value: Any) -> str:
    """Return a value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _group(path: Path, key: Key, runs: Sequence[tuple[Run, dict[str, Any] | None]]) -> Group:
    """Put the runs together that can be trusted; say why the others cannot."""
    kept, left_out = [], []
    for run, outcome in runs:
        if outcome is None or outcome.get("skipped"):
            continue
        reasons = [*outcome["invalid"]] + [f"failed: {outcome['failed']}"] * bool(outcome["failed"])
        if reasons:
            left_out.append(f"{run.folder}: {'; '.join(reasons)}")
        else:
            kept.append(Repetition(run.folder, RunDirectory(path / run.folder)))
    return Group(" ".join(filter(None, key)), tuple(kept), left_out=tuple(left_out))


def _case(key: Key, group: Group, baseline: Group, outcomes: Sequence[dict[str, Any]]) -> Case:
    """Sum a combination up, and compare it with the baseline where both have runs."""
    loop, factor, value = key
    lacking = [text for outcome in outcomes for text in outcome.get("left_out", ())]
    case = Case(
        factor=factor,
        value=value,
        loop=loop,
        runs=len(group.repetitions),
        skipped=next((one["skipped"] for one in outcomes if one.get("skipped")), None),
        left_out=(*dict.fromkeys(lacking), *group.left_out),
    )
    if not group.repetitions:
        return case if case.skipped else replace(case, skipped="no run is complete and trusted")
    latencies = np.sort(np.concatenate([_latencies(run) for run in group.repetitions]))
    case = replace(
        case,
        samples=latencies.size,
        lost=sum(run.summary.ingress.lost for run in group.repetitions),
        quantiles_ns={p: int(_quantile(latencies, p)) for p in QUANTILES},
        resolution_ps=group.resolution_ps,
    )
    if not factor or not baseline.repetitions or not latencies.size:
        return case
    compared = compare_groups(baseline, group, margin=MARGIN)
    median = next(row for row in compared.quantiles if row.p == "0.5")
    return replace(case, median=_effect(median), most=_effect(compared.most_changed))


def _latencies(run: Repetition) -> Integers:
    latencies: Integers = run.samples()["latency_ns"].to_numpy()
    return latencies


def _quantile(ascending: Integers, p: str) -> int:
    """Return the value at rank ceil(p n), as everywhere."""
    rank = -(-(Decimal(p) * ascending.size) // 1) if ascending.size else 0
    return int(ascending[max(int(rank), 1) - 1]) if ascending.size else 0


def _effect(row: Row | None) -> Effect | None:
    if row is None or row.a_ns is None or row.b_ns is None or row.ratio is None:
        return None
    told = {field.name: getattr(row, field.name) for field in fields(Verdict)}
    return Effect(row.p, row.a_ns, row.b_ns, row.ratio, row.low, row.high, **told)


def _positions(path: Path, runs: Sequence[Run], outcomes: Outcomes) -> Iterator[RulePosition]:
    """Yield the median of each run in which one rule of a firewall accepted the probes."""
    for run in runs:
        outcome = outcomes.get(run.folder)
        if outcome is None or outcome["invalid"] or outcome["failed"] or outcome.get("skipped"):
            continue
        if not isinstance(run.dut, Reflector):
            continue
        for option in ("firewall", "path"):
            kind, _, rule = getattr(run.dut, option).partition(":")
            if not rule or run.varied not in {option, None}:
                continue
            latencies = np.sort(_latencies(Repetition("", RunDirectory(path / run.folder))))
            if latencies.size:
                where = kind if option == "firewall" else "between"
                yield RulePosition(where, _key(run)[0], int(rule), _quantile(latencies, "0.5"))
