"""The level ``numbers``: each run derived again, and compared with what was released."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import TailtrimError
from tailtrim.publishing.release.checks import DAMAGED, CheckResult
from tailtrim.publishing.release.derivation import derive
from tailtrim.publishing.release.differences import of_json, of_run
from tailtrim.publishing.release.safe_files import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.publishing.release.derivation import Derived
    from tailtrim.publishing.release.untrusted_release import UntrustedRelease
    from tailtrim.results import RunDirectory

_EXPLANATION = "explanation.json"


def check(release: UntrustedRelease, told: Callable[[str], None]) -> CheckResult:
    """Derive the runs again, one after the other."""
    wrong: list[str] = []
    of_samples: list[str] = []
    without: dict[str, list[str]] = {}
    complete = release.experiment.complete
    for _, run in complete:
        told(run.path.name)
        try:
            found, derived = _compared(run)
        except (TailtrimError, OSError, *DAMAGED) as error:
            wrong.append(f"{run.path.name}: cannot be derived again: {error}")
            continue
        wrong += [f"{run.path.name}/{one}" for one in found]
        if derived.why:
            without.setdefault(derived.why, []).append(run.path.name)
        elif derived.parts is not None:
            of_samples.append(run.path.name)
    skipped = [f"{_named(runs)}: {why}" for why, runs in without.items()]
    whole = len(complete) - sum(map(len, without.values())) - len(of_samples)
    if of_samples:
        names = _named(of_samples)
        skipped.append(
            f"{names}: no captures, so latencies are derived from the samples; outcomes of packets,"
            " gaps and seconds are not"
        )
    how = f"{whole:,} runs from captures, {len(of_samples):,} from samples"
    nothing = whole + len(of_samples) == 0
    return CheckResult("numbers", how, tuple(wrong), tuple(skipped), without=nothing)


def _compared(run: RunDirectory) -> tuple[list[str], Derived]:
    """Return the first differences of a run, and the derived parts."""
    with tempfile.TemporaryDirectory() as folder:
        derived = derive(run, Path(folder) / run.path.name)
        found = of_run(run, derived)
    wrong = [] if found is None else [found]
    if (run.path / _EXPLANATION).is_file():
        wrong += _explained(run)
    return wrong, derived


def _explained(run: RunDirectory) -> list[str]:
    """Return the first difference of why packets were late, derived from the trace."""
    from tailtrim.laboratory.experiment.running import explained  # noqa: PLC0415 - takes long to load

    released = record(run.path / _EXPLANATION)
    # Of experiments before the name was kept, it is that of a draft.
    derived = json.loads(json.dumps(explained(run.path))) | {"run": released.get("run")}
    found = of_json(released, derived, "")
    return [] if found is None else [f"{_EXPLANATION}: {found}"]


def _named(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
