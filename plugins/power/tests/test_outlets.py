"""Outlets that are switched by HTTP, against emulators written from their documentation."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import certificates
import pytest
from outlet_emulator import FIRST, PASSWORD, USER, Emulator
from pydantic import ValidationError

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.power import State
from tailtrim_power import outlet as outlet_module
from tailtrim_power.outlet import Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=FIRST)
def emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    monkeypatch.setenv("OUTLET_PASSWORD", PASSWORD)
    with Emulator(request.param) as emulator:
        yield emulator


def made(emulator: Emulator, **more: Any) -> Outlet:
    said = {
        "kind": "outlet",
        "model": emulator.model,
        "url": emulator.url,
        "outlet": FIRST[emulator.model] + 1,
        "user": USER,
        "password": {"environment": "OUTLET_PASSWORD"},
        "off_s": 0,
        "deadline_s": 1,
    }
    return Outlet.model_validate(said | more)


def test_it_is_switched_and_its_neighbour_is_not(emulator: Emulator) -> None:
    outlet, first = made(emulator), FIRST[emulator.model]
    assert outlet.state() is State.OFF
    outlet.on()
    assert emulator.states == {first: False, first + 1: True}
    assert outlet.state() is State.ON
    outlet.off(hard=True)
    assert emulator.states == {first: False, first + 1: False}


def test_what_is_there_already_is_not_asked_for(emulator: Emulator) -> None:
    emulator.stuck = True
    made(emulator).off(hard=True)
    made(emulator).off()


def test_a_cycle_ends_on(emulator: Emulator) -> None:
    outlet = made(emulator)
    outlet.on()
    emulator.asked.clear()
    outlet.cycle()
    assert emulator.states[outlet.outlet]
    assert len(emulator.asked) >= 6


def test_a_stuck_relay_is_found(emulator: Emulator) -> None:
    emulator.stuck = True
    outlet = made(emulator)
    with pytest.raises(HostError, match=r"outlet \d: expected on within 1 s, .* off\b"):
        outlet.on()


def test_a_wrong_password_is_told_and_not_repeated(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTLET_PASSWORD", "wrong-one")
    with pytest.raises(HostError, match=r"refused \(HTTP 401\)") as refused:
        made(emulator).state()
    assert "wrong-one" not in str(refused.value)


def test_a_missing_outlet_is_told(emulator: Emulator) -> None:
    with pytest.raises(HostError, match=r"outlet 9: (expected the state|HTTP [45]\d\d)"):
        made(emulator, outlet=9).state()


@pytest.mark.parametrize(
    ("instead", "facts"),
    [
        ((200, "<html>"), ("expected JSON", "not '<html>'")),
        ((200, '{"other": 1}'), ("expected the state", "not {'other': 1}")),
        ((200, "[]"), ("expected the state", "not []")),
        ((200, "null"), ("expected the state", "not None")),
        ((302, "{}"), ("HTTP 302", "expected 200")),
        ((503, "{}"), ("HTTP 503", "expected 200")),
    ],
)
def test_another_answer_is_told(
    emulator: Emulator, instead: tuple[int, str], facts: tuple[str, ...]
) -> None:
    emulator.instead = instead
    with pytest.raises(HostError) as refused:
        made(emulator).state()
    for fact in (f"{made(emulator).place}: ", *facts):
        assert fact in str(refused.value)


def test_silence_ends(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_module, "REQUEST_S", 0.1)
    emulator.late_s = 0.5
    with pytest.raises(HostError, match=r"no answer within 0\.1 s"):
        made(emulator).state()


def test_a_closed_port_is_told_without_the_password(emulator: Emulator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(HostError) as refused:
        made(emulator, url=url).state()
    assert str(refused.value).endswith("Connection refused")
    assert PASSWORD not in str(refused.value)
    assert refused.value.__suppress_context__


def test_it_cannot_shut_a_system_down(emulator: Emulator) -> None:
    outlet = made(emulator)
    outlet.on()
    with pytest.raises(HostError, match=r"cannot shut .*, expected hard"):
        outlet.off()
    assert outlet.state() is State.ON
    with pytest.raises(HostError, match=r"cannot choose .*pxe"):
        outlet.boot_next("pxe")


def test_a_certificate_is_checked_unless_said_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificates.made(tmp_path)
    monkeypatch.setenv("OUTLET_PASSWORD", PASSWORD)
    with Emulator("gude", certificate=files) as emulator:
        with pytest.raises(HostError, match="certificate is not trusted"):
            made(emulator).state()
        assert not emulator.asked
        made(emulator, ca_file=str(files.certificate)).on()
        made(emulator, check_certificate=False).off(hard=True)
    assert {asked.query.get("s") for asked in emulator.asked} == {None, "1", "0"}


def test_user_and_password_come_together() -> None:
    said = {"kind": "outlet", "model": "gude", "url": "http://pdu", "outlet": 1, "user": "admin"}
    with pytest.raises(ValidationError, match="user and password, or neither"):
        Outlet.model_validate(said)


def test_a_password_in_an_address_is_not_told() -> None:
    said = {"kind": "outlet", "model": "netio", "outlet": 1, "url": "http://hunter2@bmc"}
    with pytest.raises(ValidationError) as refused:
        Outlet.model_validate(said)
    assert "hunter2" not in str(refused.value)
