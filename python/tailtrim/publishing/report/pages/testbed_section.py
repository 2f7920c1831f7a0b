"""Testbed of runs: date, kernel and CPU, its drawing, and facts of clocks, cables and matching."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tailtrim import units
from tailtrim.results.experiments import is_experiment, recorded
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.results.experiments import RecordedExperiment


# Captures whose clock was never set begin in 1970.
_PLAUSIBLE_NS = 946_684_800 * units.SECOND


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of facts: its label, a part shown as code, and the rest."""

    label: str
    code: str = ""
    text: str = ""
    more: str = ""


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


def picture(experiment: RecordedExperiment | None) -> Markup | None:
    """Return the drawing of the hosts that an experiment ran on; ``None`` if it has none."""
    if experiment is None or experiment.testbed == "local":
        return None
    from tailtrim.laboratory.nodes import drawing  # noqa: PLC0415 - most pages have none
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription  # noqa: PLC0415

    try:
        described = TestbedDescription.model_validate(experiment.testbed)
    except ValueError:
        # A record of another version.
        return None
    return Markup(drawing.svg(described, styled=False))  # noqa: S704 - names are escaped there


def facts(run: ReportedRun) -> Iterator[Fact]:
    """Yield clocks, corrections and place of matching of a run."""
    try:
        told = parsed((run.directory.path / "nodes.json").read_text("utf-8"))
        parts = [told[key] for key in ("taps", "correction", "matching")]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for label, of, part in zip(
        ("Clocks", "Cables", "Matched"), (_clocks, _cables, _matched), parts, strict=True
    ):
        try:
            yield Fact(label, text=of(part))
        except (KeyError, TypeError, ValueError):
            continue


def _clocks(taps: dict[str, Any]) -> str:
    each = ", ".join(
        f"{name}: {taps[name]['clock']} of {taps[name]['node']}, stamped by the"
        f" {'NIC' if taps[name]['stamped_by'] == 'hardware' else taps[name]['stamped_by']} at"
        f" {taps[name]['interface']} in steps of {taps[name]['step_ns']} ns"
        for name in ("ingress", "egress")
    )
    if taps["clocks"] == 1:
        return f"one: {each}"
    if taps["bound_ns"] is None:
        return f"two, and their difference is not known ({taps['why']}): {each}"
    bound = units.time(int(taps["bound_ns"]))
    return f"two, at most {bound} apart ({taps['why']}), so each latency is sure to that: {each}"


def _cables(correction: dict[str, Any]) -> str:
    if not correction.get("cables"):
        return f"nothing taken off ({correction['source']})"
    lengths = ", ".join(
        f"{'+' if cable['sign'] > 0 else '-'}{cable['length_m']:g} m {cable['between']}"
        for cable in correction["cables"]
    )
    each = f"{correction['ns_per_m']:g} ns/m, {correction['source']}"
    return f"{correction['ns']} ns taken off each latency ({each}): {lengths}"


def _matched(matching: dict[str, Any]) -> str:
    kept = ", ".join(matching["kept"] or []) or "not kept"
    size = units.count(int(matching["bytes"]))
    place = matching["matched_on"]
    where = "here" if place == "here" else f"on {place}"
    return f"{where}, by {matching['by']}; captures of {size} bytes: {kept}"
