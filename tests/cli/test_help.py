"""The help as a user reads it, and how soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tailtrim.cli.catalogue import BY_AGENT, CATALOGUE

BIN = Path(sys.executable).parent


def tailtrim(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "tailtrim", *arguments],
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": str(columns)},
    )


def test_every_command_has_one_line_that_is_not_cut() -> None:
    told = tailtrim("--help").stdout
    widest = max(map(len, CATALOGUE))
    for name, entry in CATALOGUE.items():
        assert f"  {name.ljust(widest)}  {entry.summary}\n" in told
    groups = [line for line in told.splitlines() if line.endswith(":") and line[0] != " "]
    assert groups == [
        *("Options:", "Start here:", "Measure:", "Explain:", "Host:", "Data:", "Laboratory:"),
        "Plug-ins:",
    ]
    first = told.partition("Start here:\n")[2].split("\n\n")[0]
    names = [line.split()[0] for line in first.splitlines()]
    assert names == ["analyze", "run", "report", "explain", "compare", "doctor"]
    assert f"  {'pos'.ljust(widest)}  Run an experiment folder of pos as it is\n" in told


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in BY_AGENT])
def test_help_names_values_as_people_type_them(name: str) -> None:
    result = tailtrim(name, "--help", columns=200)
    assert result.returncode == 0
    assert "Examples" in result.stdout
    for type_name in ("<str>", "<path>", "<list", "<int", "{"):
        assert type_name not in result.stdout
    assert tailtrim("help", name, columns=200).stdout == result.stdout


@pytest.mark.parametrize("name", sorted(BY_AGENT))
def test_a_command_of_the_agent_says_tailtrim(name: str) -> None:
    result = tailtrim(name, "--help")
    assert result.returncode == 0
    assert f"Usage: tailtrim {name}" in result.stdout
    assert "tailtrim-agent" not in result.stdout


@pytest.mark.parametrize("words", [("tailtrim", "run"), ("tailtrim-agent", "tune", "apply")])
def test_a_reader_of_the_help_may_go(words: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [str(BIN / words[0]), *words[1:], "--help"]
    result = subprocess.run(command, check=False, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_misspelt_command_is_guessed() -> None:
    result = tailtrim("analize")
    assert result.returncode == 2
    assert "'analize'. Did you mean analyze?" in result.stderr


def test_the_version_is_short() -> None:
    assert tailtrim("-V").stdout == tailtrim("--version").stdout == "tailtrim 0.1.0\n"


def test_the_version_loads_none_of_the_libraries_that_take_long() -> None:
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    run = "from tailtrim.cli import main; sys.argv[1:] = ['--version']; main()"
    ended = subprocess.run(
        [sys.executable, "-c", f"{told}; {run}"], check=True, capture_output=True, text=True
    )
    assert ended.stdout == "tailtrim 0.1.0\n"
    slow = {"numpy", "pyarrow", "pydantic", "typer", "rich", "matplotlib", "asyncio"}
    assert slow & set(ended.stderr.split()) == set()


def test_ctrl_c_while_a_command_is_loaded_is_no_traceback() -> None:
    kill = "os.kill(os.getpid(), signal.SIGINT) if name == 'typer' else None"
    interrupt = f"lambda name, *_: {kill}"
    finder = f"sys.meta_path.insert(0, type('', (), {{'find_spec': staticmethod({interrupt})}}))"
    # A shell has programs in the background ignore it.
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = "from tailtrim.cli import main; sys.argv[1:] = ['run', 'demo']; main()"
    ended = subprocess.run(
        [sys.executable, "-c", f"import os, signal, sys; {heard}; {finder}; {run}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == -signal.SIGINT
    assert (ended.stdout, ended.stderr) == ("", "")
