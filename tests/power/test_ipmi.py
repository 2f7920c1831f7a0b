"""IPMI, with ipmitool against the management controller of pyghmi, on which VirtualBMC is built."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ports import reserved_port
from tools import need

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.power import State
from tailtrim.laboratory.nodes.power import ipmi as ipmi_module
from tailtrim.laboratory.nodes.power.ipmi import IPMITOOL, Ipmi

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("pyghmi", reason="pyghmi is not installed: no management controller")

PASSWORD = "pass word&1"  # noqa: S105 - of an emulator
CONTROLLER = Path(__file__).parent / "support" / "ipmi_controller.py"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    need(IPMITOOL)
    monkeypatch.setenv("BMC_PASSWORD", PASSWORD)


@pytest.fixture
def controller(request: pytest.FixtureRequest) -> Iterator[Ipmi]:
    """Start a controller, which obeys unless it is told otherwise."""
    port = reserved_port()
    manner = getattr(request, "param", "obeys")
    process = subprocess.Popen(
        [sys.executable, str(CONTROLLER), str(port), "admin", PASSWORD, manner],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield made(port)
        process.kill()


def made(port: int, **more: Any) -> Ipmi:
    said = {
        "kind": "ipmi",
        "host": "127.0.0.1",
        "port": port,
        "user": "admin",
        "password": {"environment": "BMC_PASSWORD"},
        "off_s": 0,
        "deadline_s": 5,
    }
    return Ipmi.model_validate(said | more)


def test_a_chassis_is_switched(controller: Ipmi) -> None:
    assert controller.state() is State.OFF
    controller.on()
    assert controller.state() is State.ON
    controller.cycle()
    assert controller.state() is State.ON
    controller.off(hard=True)
    assert controller.state() is State.OFF


@pytest.mark.parametrize("controller", ["ignores the button"], indirect=True)
def test_a_system_that_ignores_the_button_is_told(controller: Ipmi) -> None:
    controller.on()
    late = controller.model_copy(update={"deadline_s": 0.5})
    with pytest.raises(HostError, match=r"expected off within 0\.5 s, .* on\b") as refused:
        late.off()
    (note,) = refused.value.__notes__
    for fact in ("power button", "off hard"):
        assert fact in note
    controller.off(hard=True)
    assert controller.state() is State.OFF


def test_the_boot_source_is_set_and_read_back(controller: Ipmi) -> None:
    for source in ("pxe", "disk"):
        controller.boot_next(source)


@pytest.mark.parametrize("controller", ["forgets the boot source"], indirect=True)
def test_a_boot_source_that_was_not_taken_is_told(controller: Ipmi) -> None:
    with pytest.raises(HostError, match=r"No override, expected Force PXE"):
        controller.boot_next("pxe")


def test_a_wrong_password_is_told(controller: Ipmi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "wrong-one")
    with pytest.raises(HostError, match=r"power status: .*Unable to establish") as refused:
        controller.state()
    assert "wrong-one" not in str(refused.value)


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipmi_module, "_COMMAND_S", 0.5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(HostError, match=r"power status: .* 0\.5 s"):
            made(silent.getsockname()[1]).state()


def test_a_host_without_ipmitool_is_told(controller: Ipmi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_host, "find", lambda _: None)
    with pytest.raises(HostError, match=r"^ipmitool is not installed"):
        controller.state()


def test_the_password_is_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ipmitool"
    program.write_text('#!/bin/sh\necho "$*" >"$0.words"\necho "Chassis Power is on"\n')
    program.chmod(0o755)
    monkeypatch.setattr(local_host, "find", lambda _: str(program))
    assert made(623).state() is State.ON
    assert (tmp_path / "ipmitool.words").read_text() == (
        "-I lanplus -H 127.0.0.1 -p 623 -U admin -E chassis power status\n"
    )
