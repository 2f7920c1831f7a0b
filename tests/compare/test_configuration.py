"""Settings that differ between two sides, as far as they are recorded."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from tailtrim.analysis.compare import compare
from tailtrim.cli.application import app
from tailtrim.laboratory.nodes.namespace import LocalHost

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_recorded_is_not_told_as_no_difference(measured: Path, tmp_path: Path) -> None:
    for side in ("a", "b"):
        shutil.copytree(measured, tmp_path / side)
        for record in (tmp_path / side).rglob("*.json"):
            if record.name != "summary.json":
                record.unlink()
    (found,) = compare(tmp_path / "a", tmp_path / "b")
    assert (found.settings, found.differences) == (0, ())
    shown = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "not recorded" in shown.output
    assert "settings differ" not in shown.output


def test_an_audit_beside_a_run_tells_what_differs(measured: Path, tmp_path: Path) -> None:
    for side, verdict in (("a", "ok"), ("b", "fail")):
        shutil.copytree(measured, tmp_path / side)
        check = {"id": "CPU-001", "title": "isolated", "verdict": verdict, "said": "2-3"}
        audit = {"schema": "tailtrim.audit/1", "checks": [check]}
        (tmp_path / side / "audit.json").write_text(json.dumps(audit))
    (found,) = compare(tmp_path / "a", tmp_path / "b")
    (difference,) = found.differences
    assert found.settings > 0
    assert (difference.what, difference.a, difference.b) == (
        "CPU-001 isolated",
        "ok: 2-3",
        "fail: 2-3",
    )


def test_what_was_only_seen_is_no_configuration(measured: Path, tmp_path: Path) -> None:
    for side, said in (("a", "3 a second"), ("b", "4 a second")):
        shutil.copytree(measured, tmp_path / side)
        check = {"id": "IRQ-020", "verdict": "fail", "level": "seen", "said": said}
        audit = {"schema": "tailtrim.audit/1", "checks": [check]}
        (tmp_path / side / "audit.json").write_text(json.dumps(audit))
    (found,) = compare(tmp_path / "a", tmp_path / "b")
    assert found.differences == ()


def test_the_host_is_audited_for_comparisons() -> None:
    audit = LocalHost().audit("--duration", "0")
    assert audit["schema"] == "tailtrim.audit/1"
    assert {check["level"] for check in audit["checks"]} >= {"set"}
