"""The page of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.report import units, wording
from tailtrim.report.latency_table import LatencyTable
from tailtrim.report.pages.assets import assets, policy
from tailtrim.report.pages.cause_section import QUANTILES
from tailtrim.report.pages.embedding import embedded
from tailtrim.rundir.summary import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.experiment import RecordedExperiment
    from tailtrim.report.figures.figure import Figure
    from tailtrim.report.inputs.run_tables import ReportedRun
    from tailtrim.report.pages.cause_section import CauseSection
    from tailtrim.rundir import Summary


def render(
    runs: Sequence[ReportedRun],
    figures: Sequence[Figure],
    sections: Sequence[CauseSection],
    experiment: RecordedExperiment | None = None,
) -> bytes:
    """Return the page of runs as UTF-8.

    ``figures`` show all of them, ``sections`` one each. With an ``experiment``, the page has its
    name, says where and when it was run, and what became of runs that failed or are invalid.
    """
    environment, scripts, styles = assets()
    names = [run.name for run in runs]
    drawn = [*figures, *(figure for section in sections for figure in section.figures)]
    page = environment.get_template("report.html.j2").render(
        policy=policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        runs=[_Shown.of(run) for run in runs],
        experiment=experiment,
        problems=_problems(experiment),
        setting=_setting(experiment),
        confidence=", ".join(sorted({wording.confidence(run.summary) for run in runs})),
        table=LatencyTable.of([run.summary for run in runs], names),
        figures=figures,
        data=embedded(names, [run.index for run in runs], drawn),
        places={figure.key: place for place, figure in enumerate(drawn)},
        sections=sections,
        quantiles=QUANTILES,
        wording=wording,
        units=units,
    )
    return page.encode("utf-8")


def _problems(experiment: RecordedExperiment | None) -> list[tuple[str, str]]:
    runs = experiment.runs if experiment else ()
    return [(run.name, run.problem) for run in runs if run.problem]


def _setting(experiment: RecordedExperiment | None) -> str:
    """Say when and where an experiment was run."""
    if experiment is None:
        return ""
    host = experiment.host
    began = (experiment.began or "").replace("T", " ").replace("+00:00", " UTC")
    model = host.get("model") or host.get("machine")
    parts = [began, f"Linux {host.get('kernel')}", f"{host.get('cpus')} CPUs: {model}"]
    return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the page says of a run beside its summary."""

    index: int
    name: str
    path: Path
    summary: Summary
    latency: Spread
    provenance: dict[str, Any]
    inputs: list[dict[str, Any]]
    #: Frames that each tap dropped, where that is known.
    drops: dict[str, int | None]

    @classmethod
    def of(cls, run: ReportedRun) -> _Shown:
        latency = run.summary.latency_ns
        values = {quantile.p: quantile.value for quantile in latency.quantiles}
        spread = Spread(
            min=latency.min,
            p50=values.get("0.5"),
            p99=values.get("0.99"),
            p999=values.get("0.999"),
            max=latency.max,
            iqr=latency.iqr,
        )
        provenance = run.directory.provenance()
        inputs = provenance.get("inputs")
        known = inputs if isinstance(inputs, list) else []
        return cls(
            run.index,
            run.name,
            run.directory.path,
            run.summary,
            spread,
            provenance,
            [
                {key: entry.get(key) for key in ("path", "bytes", "sha256")}
                for entry in known
                if isinstance(entry, dict)
            ],
            {side: run.tap_drops(side) for side in ("ingress", "egress")},
        )
