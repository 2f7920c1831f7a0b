"""When and where runs were measured, in a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tailtrim.experiment import is_experiment, recorded
from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.experiment import RecordedExperiment
    from tailtrim.report.inputs.run_tables import ReportedRun

# Captures whose clock was never set begin in 1970.
_PLAUSIBLE_NS = 946_684_800 * units.SECOND


def setting(runs: Sequence[ReportedRun], experiment: RecordedExperiment | None) -> str:
    """Return date, kernel and CPU, as far as they are known."""
    if experiment is None:
        around = {run.directory.path.resolve().parent for run in runs}
        parent = around.pop() if len(around) == 1 else None
        if parent is None or not is_experiment(parent):
            return _captured(runs)
        experiment = recorded(parent)
    host = experiment.host
    began = (experiment.began or "").replace("T", " ").replace("+00:00", " UTC")
    cpus = host.get("cpus")
    parts = [
        began or _captured(runs),
        f"Linux {host['kernel']}" if host.get("kernel") else "",
        str(host.get("model") or host.get("machine") or ""),
        f"{cpus} CPU{'s' * (cpus != 1)}" if cpus else "",
    ]
    return " \N{MIDDLE DOT} ".join(part for part in parts if part)


def _captured(runs: Sequence[ReportedRun]) -> str:
    """Say when the first packet came in."""
    stamps = [run.summary.ingress_tap.first_ns for run in runs]
    known = [stamp for stamp in stamps if stamp is not None and stamp > _PLAUSIBLE_NS]
    if not known:
        return ""
    first = datetime.fromtimestamp(min(known) // units.SECOND, tz=UTC)
    return f"Captured {first:%Y-%m-%d %H:%M:%S} UTC"
