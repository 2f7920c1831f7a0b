"""The testbed of an experiment, drawn, and what its runs say of clocks, cables and matching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tailtrim.nodes import drawing
from tailtrim.nodes.description import TestbedDescription
from tailtrim.report import units
from tailtrim.report.pages.fact import Fact
from tailtrim.rundir.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.experiment import RecordedExperiment
    from tailtrim.report.inputs.run_tables import ReportedRun


def picture(experiment: RecordedExperiment | None) -> Markup | None:
    """Return the drawing of the hosts that an experiment ran on; ``None`` if it has none."""
    try:
        described = TestbedDescription.model_validate(experiment.testbed if experiment else None)
    except ValueError:
        # The testbed of one machine, or a record of another version.
        return None
    return Markup(drawing.svg(described, styled=False))  # noqa: S704 - names are escaped there


def facts(run: ReportedRun) -> Iterator[Fact]:
    """Yield where a run's captures were matched, what was corrected, and which clocks it has."""
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
    bound = units.microseconds(int(taps["bound_ns"]), places=3)
    return f"two, at most {bound} µs apart ({taps['why']}), so each latency is sure to that: {each}"


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
