"""Power that commands switch: a relay that is a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.power import State
from tailtrim.laboratory.nodes.power.command import CommandPower

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    (tmp_path / "relay").write_text("Off\n")
    return tmp_path / "relay"


def made(relay: Path, **more: Any) -> CommandPower:
    said = {
        "kind": "command",
        "on_command": ["sh", "-c", f"echo On >{relay}"],
        "off_command": ["sh", "-c", f"echo Off >{relay}"],
        "state_command": ["sh", "-c", f"echo relay 3 is $(cat {relay})"],
        "off_s": 0,
    }
    return CommandPower.model_validate(said | more)


def test_it_is_switched_and_each_change_is_seen(relay: Path) -> None:
    power = made(relay)
    assert power.state() is State.OFF
    power.on()
    assert relay.read_text() == "On\n"
    power.cycle()
    assert power.state() is State.ON
    power.off(hard=True)
    assert power.state() is State.OFF


def test_a_system_is_shut_down_by_a_command_of_its_own(relay: Path) -> None:
    made(relay).on()
    with pytest.raises(HostError, match="no shutdown_command, expected hard"):
        made(relay).off()
    made(relay, shutdown_command=["sh", "-c", f"echo off >{relay}"]).off()
    assert relay.read_text() == "off\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sh", "-c", "echo maybe"], "printed 'maybe', expected on or off"),
        (["true"], "printed '', expected on or off"),
        (["sh", "-c", "echo no bus >&2; exit 7"], "exit code 7: no bus"),
        (["/does/not/exist"], "cannot be started: No such file"),
    ],
)
def test_a_state_that_is_not_told(relay: Path, words: list[str], told: str) -> None:
    with pytest.raises(HostError, match=told):
        made(relay, state_command=words).state()


def test_no_shell_reads_the_words(relay: Path) -> None:
    assert made(relay, state_command=["echo", "$(touch /tmp/x) off"]).state() is State.OFF
