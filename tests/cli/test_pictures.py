"""Without the extra ``pictures``: commands that need it say how to install it, before any work."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tailtrim
from tailtrim.errors import PicturesError
from tailtrim.publishing import report

TESTPMD = Path(__file__).parents[2] / "examples" / "testpmd"
#: The command line where these packages are not installed.
WITHOUT = """
import sys
sys.modules |= dict.fromkeys({missing!r})
from tailtrim.cli import main
main()
"""


def without(missing: list[str], *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing), *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results") / "testpmd"
    tailtrim.analyze(TESTPMD / "ingress.pcap.zst", TESTPMD / "egress.pcap.zst", skip_s=1, out=place)
    return place


@pytest.mark.parametrize(
    "words",
    [
        ["report", "RUN", "--pdf"],
        ["compare", "RUN", "RUN", "--out", "figure.pdf"],
    ],
)
def test_a_command_that_draws_says_how_to_install_what_is_missing(
    run: Path, words: list[str]
) -> None:
    done = without(["matplotlib"], *(run if word == "RUN" else word for word in words))
    assert done.returncode == 3
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert re.match("error: .*matplotlib.* not installed", error)
    assert hint == "hint: pip install 'tailtrim[pictures]'"


def test_all_that_is_missing_is_named(run: Path) -> None:
    done = without(["matplotlib", "jinja2"], "report", run, "--pdf")
    assert "need jinja2 and matplotlib" in done.stderr


@pytest.mark.parametrize(
    "words", [["compare", "RUN", "RUN"], ["explain", "RUN"], ["convert", "RUN", "--format", "hgrm"]]
)
def test_other_commands_work_without(run: Path, words: list[str], tmp_path: Path) -> None:
    out = ["--out", tmp_path / "converted"] if words[0] == "convert" else []
    named = [run if word == "RUN" else word for word in words]
    done = without(["matplotlib", "jinja2", "markupsafe"], *named, *out)
    assert done.returncode == 0, done.stderr


def test_pages_and_svgs_need_no_matplotlib(run: Path, tmp_path: Path) -> None:
    done = without(["matplotlib"], "report", run, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figures" / "hdr.svg").is_file()


def test_a_library_caller_gets_the_same(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(PicturesError, match="need jinja2") as raised:
        report.write([tailtrim.RunDirectory(run)], run / "report")
    assert raised.value.__notes__ == ["pip install 'tailtrim[pictures]'"]
    assert not (run / "report").exists()
