"""Completion in bash, as `tailtrim --show-completion` sets it up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
BASH = "/bin/bash"

#: Completes a line as readline does, and prints what it offers.
COMPLETE = """
eval "$(_TAILTRIM_COMPLETE=source_bash tailtrim)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_tailtrim_completion tailtrim
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    done = subprocess.run(
        [BASH, "--norc", "-c", COMPLETE, "bash", *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tailtrim", "ana"), ["analyze"]),
        (("tailtrim", "analyze", "--sal"), ["--salvage"]),
        # These the agent knows.
        (("tailtrim", "audit", "--house"), ["--housekeeping"]),
        (("tailtrim", "audit", "--format", "j"), ["json", "junit"]),
        (("tailtrim", "tune", "ver"), ["verify"]),
        (("tailtrim", "tune", "plan", "--prof"), ["--profile"]),
        (("tailtrim", "tune", "plan", "--profile", "nfv-"), ["nfv-host", "nfv-guest"]),
        (("tailtrim", "ping", "--o"), ["--out"]),
        (("tailtrim", "ping", "--ass"), ["--assert"]),
    ],
)
def test_options_of_all_commands_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_the_agent_alone_completes_itself() -> None:
    agent = BIN / "tailtrim-agent"
    done = subprocess.run(
        [agent, "--", "tailtrim-agent", "noise", "--thr"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COMPLETE": "fish"},
    )
    assert done.stdout.startswith("--threshold\t")
