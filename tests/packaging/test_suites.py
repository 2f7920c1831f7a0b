"""A suite fails by a test or step that fails, by an unlisted skip, and where nothing ran."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "suites.py"
#: The runner, with one suite of one step: pytest on a file of this test.
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import suites
from pathlib import Path
suites.ROOT = Path.cwd()
suites.RESULTS = suites.ROOT / "results"
command = {command!r}
suites.SUITES = {{"long": (suites.Step("step", command, "results/step.xml"),)}}
sys.argv[1:] = ["long"]
sys.exit(suites.main())
"""
SKIPS = """
without_root = []
[[skip]]
reason = "^no hardware"
suites = ["long"]
[[skip]]
reason = "^elsewhere"
suites = ["lab"]
"""
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=results/step.xml")


def suite(folder: Path, tests: str, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    (folder / "tests" / "skips.toml").write_text(SKIPS)
    (folder / "tests" / "test_it.py").write_text(f"import pytest\n{tests}\n")
    script = SCRIPT.format(folder=str(RUNNER.parent), command=command or (*PYTEST, "tests"))
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("tests", "code", "told"),
    [
        ("def test_it(): pass", 0, "1 passed, 0 failed, 0 skipped"),
        ("def test_it(): assert False", 1, "0 passed, 1 failed, 0 skipped"),
        ("def test_it(): pass\ndef test_no(): pytest.skip('no hardware')", 0, "no hardware"),
        ("def test_it(): pass\ndef test_no(): pytest.skip('no sshd')", 1, "no sshd"),
        ("def test_it(): pass\ndef test_no(): pytest.skip('elsewhere')", 1, "elsewhere"),
        ("pytest.skip('no module', allow_module_level=True)", 1, "no module"),
        ("", 1, "0 passed, 0 failed, 0 skipped"),
    ],
)
def test_a_suite(tmp_path: Path, tests: str, code: int, told: str) -> None:
    ended = suite(tmp_path, tests)
    assert ended.returncode == code, ended.stdout
    assert told in ended.stdout
    assert "Traceback" not in ended.stderr


def test_a_step_that_fails_fails_its_suite(tmp_path: Path) -> None:
    command = "import subprocess, sys; subprocess.run(sys.argv[1:]); sys.exit(3)"
    ended = suite(tmp_path, "def test_it(): pass", sys.executable, "-c", command, *PYTEST, "tests")
    assert ended.returncode == 1
    assert "1 passed, 0 failed, 0 skipped" in ended.stdout
    assert "exit code 3" in ended.stdout


def test_parts_of_a_suite_are_all_of_it(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / f"test_{name}.py").write_text("def test_it(): pass")
    for path in ("../conftest.py", "support/machine_state.py"):
        shutil.copy(RUNNER.parent / path, tmp_path)

    def collected(part: str) -> set[str]:
        ended = subprocess.run(
            (
                *PYTEST[:-1],
                "--suite",
                "fast",
                "--part",
                part,
                "--collect-only",
                "-q",
                str(tmp_path),
            ),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return {line for line in ended.stdout.splitlines() if "::" in line}

    parts = [collected(f"{number}/3") for number in (1, 2, 3)]
    assert [len(part) for part in parts] == [2, 2, 1]
    assert len(set.union(*parts)) == 5


def test_an_unknown_suite_is_one_error(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, RUNNER, "fast"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert "fast" in line
    assert "simulations" in line
