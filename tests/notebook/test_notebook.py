"""The notebook of the documentation runs from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.packages

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def test_the_notebook_runs_and_shows_its_results() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            key = cell.source.splitlines()[-1]
            shown[key] = output.get("data", {"text/plain": output.get("text", "")})
    for result in ("analysis", "explanation", "compared"):
        assert "text/html" in shown[result]
    for result in ("analysis", "compared"):
        assert "data:image/svg+xml" in shown[result]["text/html"]
    assert "250.00 Hz" in shown["explanation"]["text/html"]
    assert ">better<" in shown["compared"]["text/html"]
    assert shown['    print(f"{verdict.decision}: {verdict.objective}")']["text/plain"] == (
        "passed: p99 < 50us\nfailed: p99.9 < 10us\npassed: loss < 0.1%\n"
    )
