"""The plan of an experiment, kept with its runs, and a drawing of its testbed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.laboratory.nodes.testbed import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.experiment.record import Experiment

PLAN, DRAWING = "plan.yml", "testbed.svg"


def keep_plan(plan: Path, experiment: Experiment) -> None:
    """Copy a plan to the directory of its experiment, with a drawing of the hosts it names.

    Raises:
        OutputError: a file cannot be written.

    """
    from tailtrim.laboratory.nodes import drawing  # noqa: PLC0415 - only hosts are drawn

    place = experiment.path / PLAN
    try:
        if not (place.exists() and place.samefile(plan)):
            shutil.copyfile(plan, place)
        if experiment.plan.testbed != LOCAL:
            place = experiment.path / DRAWING
            place.write_text(drawing.svg(experiment.plan.testbed), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
