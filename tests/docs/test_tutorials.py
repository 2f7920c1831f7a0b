"""The tutorials are true: their commands are run, and print what they show.

`UPDATE_TUTORIAL=1 pytest tests/docs` writes the outputs anew; look at the difference. Of live
measurements numbers differ each time, and rows of what else ran: a line `…` stands for any lines,
within a line for any text.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BASH = "/bin/bash"
_BLOCK = re.compile(r"```console\n\$ (.*)\n((?:.*\n)*?)```\n")
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?\*?")
_UNIT = re.compile(r"\bN (?:ns|µs|ms|s)\b")
_ANY = "…"


def _run(command: str, place: Path) -> list[str]:
    """Run a command, and return the lines of its output."""
    reading, writing = os.pipe()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(
        [BASH, "-c", command],
        cwd=place,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        stdout=writing,
        stderr=writing,
    ):
        os.close(writing)
        output = b"".join(iter(lambda: os.read(reading, 65_536), b""))
    os.close(reading)
    return [f"{line.rstrip()}\n" for line in output.decode().strip("\n").splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with the examples; processes whose number is left there are ended."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with suppress(OSError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def _typed(tutorial: str, place: Path) -> tuple[str, str]:
    """Return a tutorial with the outputs of its commands, and as it is written."""
    written = (ROOT / tutorial).read_text(encoding="utf-8")
    assert len(_BLOCK.findall(written)) == written.count("```console") > 0

    def run(block: re.Match[str]) -> str:
        return f"```console\n$ {block[1]}\n{''.join(_run(block[1], place))}```\n"

    found = _BLOCK.sub(run, written)
    if "UPDATE_TUTORIAL" in os.environ:
        (ROOT / tutorial).write_text(found, encoding="utf-8")
    return found, written


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial-captures.md"])
def test_a_page_of_captures_prints_what_it_shows(page: str, place: Path) -> None:
    found, written = _typed(page, place)
    assert found == written


def _shapes(text: str) -> list[str]:
    """Return lines without their numbers, whether these are supported, units and widths."""
    lines = (" ".join(line.replace(" (invalid)", "").split()) for line in text.splitlines())
    numbers = (_NUMBER.sub("N", line) for line in lines)
    return [_UNIT.sub("N U", line) for line in numbers]


def _check_shapes(found: str, written: str) -> None:
    """Each line that is shown was printed, in its order, next to its neighbours."""
    for (command, printed), (_, shown) in zip(
        _BLOCK.findall(found), _BLOCK.findall(written), strict=True
    ):
        lines = (re.escape(line).replace(_ANY, ".*") + r"\n" for line in _shapes(shown))
        pattern = "".join(r"(?:.*\n)*?" if line == r".*\n" else line for line in lines)
        text = "".join(f"{line}\n" for line in _shapes(printed))
        assert re.fullmatch(pattern, text), f"$ {command}\n{printed}\nshown:\n{shown}"


def test_the_tutorial_of_a_promise_prints_what_it_shows(place: Path) -> None:
    _check_shapes(*_typed("docs/tutorial-promise.md", place))


@pytest.mark.reflectors
def test_the_tutorial_of_a_watch_prints_what_it_shows(place: Path) -> None:
    tools.need(tools.PROMTOOL)
    (place / "packaging").symlink_to(ROOT / "packaging")
    _check_shapes(*_typed("docs/tutorial-watch.md", place))


@pytest.mark.lab
@pytest.mark.alone
def test_the_tutorial_of_a_testbed_and_the_demo_print_what_they_show(place: Path) -> None:
    found, written = _typed("docs/tutorial-testbed.md", place)
    _check_shapes(found, written)
    (table,) = (
        printed for command, printed in _BLOCK.findall(found) if command.endswith("--out demo")
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("`make demo` runs")[2].partition("##")[0]
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    assert lines
    assert set(_shapes("\n".join(lines))) <= set(_shapes(table))


@pytest.mark.lab
@pytest.mark.alone
def test_the_tutorial_of_an_application_finds_who_took_its_cpu(place: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root: only root sees what the kernel does (tracefs)")
    if 1 not in os.sched_getaffinity(0) or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs CPU 1 for an application, and another one to live on")
    source = _run("tailtrim trace --cpus 1 --duration 10ms --json", place)
    if not any('"source": "tracefs"' in line or '"source": "perf"' in line for line in source):
        pytest.skip("neither tracefs nor perf here")
    found, written = _typed("docs/tutorial-application.md", place)
    _check_shapes(found, written)
    before, after = (
        printed
        for command, printed in _BLOCK.findall(found)
        if command.startswith("tailtrim trace --cpus 1 --pid")
    )
    assert "thread backup" in before
    assert "thread backup" not in after
