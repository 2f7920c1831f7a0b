"""Limits of objectives in the figures of a comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tailtrim.compare import compare
from tailtrim.report.pages import comparison_page
from tailtrim.slo import objectives

if TYPE_CHECKING:
    from pathlib import Path


def test_limits_of_objectives_are_lines_in_both_tails(measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    comparison_page.write(compare(measured, measured), page, objectives=objectives("p99 < 100us"))
    text = page.read_text("utf-8").partition('id="data">')[2].partition("</script>")[0]
    (figure,) = json.loads(text)["figures"]
    tails, _ = figure["panels"]
    assert [(rule["label"], rule["at"], rule["until"]) for rule in tails["rules"]] == [
        ("p99 < 100us", 100, 100)
    ]
