"""The site of the documentation is built: no broken link, every command, every key of a plan."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tailtrim.cli.catalogue import CATALOGUE
from tailtrim.laboratory.plan.model import Plan

pytestmark = pytest.mark.packages

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
MKDOCS = BIN / "mkdocs"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "pages"
    subprocess.run([sys.executable, ROOT / "packaging" / "docs.py", folder], check=True)
    return folder


def test_the_reference_has_every_command_and_key(pages: Path) -> None:
    text = "".join(page.read_text() for page in (pages / "reference").glob("*.md"))
    titles = re.findall("^## (.*)$", text, re.MULTILINE)
    assert {f"tailtrim {name}" for name in CATALOGUE} <= set(titles)
    assert {"tailtrim tune revert", "tailtrim-agent disturb"} <= set(titles)
    for model in (
        Plan,
        Plan.model_fields["traffic"].annotation,
        Plan.model_fields["limits"].annotation,
    ):
        for key in getattr(model, "model_fields", ()):
            assert f"| `{key}` | " in text


def test_a_link_out_of_the_site_that_goes_nowhere_is_an_error(tmp_path: Path) -> None:
    copied = tmp_path / "checkout"
    shutil.copytree(ROOT / "packaging", copied / "packaging")
    page = copied / "docs" / "index.md"
    page.parent.mkdir()
    page.write_text("[gone](../examples/gone.yml)\n")
    command = [sys.executable, str(copied / "packaging" / "docs.py"), str(tmp_path / "pages")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "index.md: the link to ../examples/gone.yml goes nowhere" in done.stderr


def test_the_site_has_no_broken_link_and_loads_nothing_from_elsewhere(
    pages: Path, tmp_path: Path
) -> None:
    if not MKDOCS.exists():
        pytest.skip("mkdocs is not installed (requirements-docs.lock)")
    settings = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text()
    text = re.sub("^docs_dir: .*$", f"docs_dir: {pages}", text, flags=re.MULTILINE)
    text = re.sub("^site_dir: .*$", f"site_dir: {tmp_path / 'site'}", text, flags=re.MULTILINE)
    settings.write_text(text)
    done = subprocess.run(
        [MKDOCS, "build", "--config-file", settings],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert not re.findall(r'<(?:link|img|script)[^>]+(?:href|src)="https?://[^"]*"', page)
