"""A person at a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = """
import os, sys
if os.isatty(0):
    os.open(os.ttyname(0), os.O_RDWR)  # the first one of a session is its terminal
from tailtrim.errors import HostError
from tailtrim_power.person import Person
person = Person(kind="person", machine="rack 3", deadline_s=float(sys.argv[2]), off_s=0)
try:
    print("done", eval(sys.argv[1], {"person": person}))
except HostError as error:
    print("refused", error)
"""


class Terminal:
    """A terminal, with a program on it."""

    def __init__(self, does: str, deadline_s: float = 20) -> None:
        self._own, other = pty.openpty()
        self._shown = ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, does, str(deadline_s)],
            stdin=other,
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.close(other)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        os.close(self._own)

    def sees(self, text: str) -> None:
        """Wait until the terminal shows this after what it was seen to show."""
        while text not in self._shown:
            assert select.select([self._own], [], [], 20)[0], self._shown
            self._shown += os.read(self._own, 4_096).decode()
        self._shown = self._shown.partition(text)[2]

    def types(self, text: str) -> None:
        os.write(self._own, text.encode())

    def ends(self) -> str:
        return self._process.communicate(timeout=20)[0].strip()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def on(terminals: list[Terminal], does: str, deadline_s: float = 20) -> Terminal:
    terminals.append(Terminal(does, deadline_s))
    return terminals[-1]


def test_it_waits_for_enter(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.on()")
    for words in ("Switch rack 3 on", "press Enter: "):
        terminal.sees(words)
    terminal.types("\n")
    assert terminal.ends() == "done None"


def test_a_cycle_asks_twice(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.cycle()")
    for words in ("Switch rack 3 off", "taking its power away"):
        terminal.sees(words)
    terminal.types("\n")
    terminal.sees("Switch rack 3 on")
    terminal.types("\n")
    assert terminal.ends() == "done None"


def test_it_asks_for_the_state_until_the_answer_is_one(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.state()")
    terminal.sees("rack 3 on or off?")
    terminal.types("yes\n")
    terminal.sees("rack 3 on or off?")
    terminal.types("OFF\n")
    assert terminal.ends() == "done off"


def test_it_asks_for_the_boot_source(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.boot_next('pxe')")
    for words in ("rack 3", "PXE"):
        terminal.sees(words)
    terminal.types("\n")
    assert terminal.ends() == "done None"


def test_no_answer_ends(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.on()", 0.2)
    told = terminal.ends()
    assert told.startswith("refused person at rack 3: ")
    assert "no answer within 0.2 s" in told


def test_a_closed_terminal_ends(terminals: list[Terminal]) -> None:
    terminal = on(terminals, "person.on()")
    terminal.sees("press Enter: ")
    terminal.types("\x04")
    told = terminal.ends()
    for fact in ("refused person at rack 3: ", "closed", "expected Enter"):
        assert fact in told


def test_no_terminal_is_refused() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "person.on()", "20"],
        start_new_session=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    for fact in ("refused person at rack 3: ", "no terminal", "/dev/tty"):
        assert fact in ended.stdout
