"""A run, and once more where a node died during it and was brought back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from tailtrim.errors import CaptureError, HostError, RunError
from tailtrim.laboratory.experiment.record import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.plan import Run
    from tailtrim.results.experiments import Outcome


def attempted(
    experiment: Experiment, run: Run, conduct: Callable[[], Outcome], told: Callable[[str], None]
) -> Outcome:
    """Conduct a run, and again after each node that came back; its outcome has why.

    Raises:
        CaptureError, HostError, RunError: it broke, and no node came back.

    """
    repeated: list[str] = []
    while True:
        try:
            outcome = conduct()
        except (RunError, CaptureError, HostError) as error:
            revived = experiment.testbed.revive(told)
            if revived is None:
                for before in repeated:
                    error.add_note(f"repeated before: {before}")
                raise
            repeated.append(f"{error}; {revived}")
        else:
            break
    if repeated:
        outcome = replace(outcome, repeated=tuple(repeated))
        write_json(experiment.path / run.folder / "outcome.json", asdict(outcome))
    return outcome
