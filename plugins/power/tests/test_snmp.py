"""Meters that are read by SNMP, against an agent made of scapy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from snmp_agent import COMMUNITY, OID, Agent

from tailtrim.errors import HostError
from tailtrim_power.snmp import SnmpMeter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def nothing(command: Sequence[str]) -> Any:
    raise AssertionError(command)


def made(port: int, **more: Any) -> SnmpMeter:
    said = {"kind": "snmp", "host": "127.0.0.1", "port": port, "oid": OID}
    return SnmpMeter.model_validate(said | {"community": {"environment": "COMMUNITY"}} | more)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("COMMUNITY", COMMUNITY)
    with Agent() as agent:
        yield agent


def test_an_object_is_read_in_its_unit(agent: Any) -> None:
    with made(agent.port).opened(nothing) as reader:
        assert reader.read()[0].power_w == 42.0
    agent.value = 425
    with made(agent.port, unit_w=0.1).opened(nothing) as reader:
        assert reader.read()[0].power_w == pytest.approx(42.5)
        assert reader.channels[0].resolution == 0.1


def test_another_community_is_told_and_not_repeated(
    agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMUNITY", "wrong-one")
    with pytest.raises(HostError, match="No SNMP response") as refused:
        made(agent.port).opened(nothing)
    assert "wrong-one" not in str(refused.value)


def test_an_object_that_is_not_there_is_told(agent: Any) -> None:
    with pytest.raises(HostError, match="expected a whole number"):
        made(agent.port, oid="1.3.6.1.2.1.1.1.0").opened(nothing)


def test_text_is_not_a_power(agent: Any) -> None:
    agent.value = "42 W"
    with pytest.raises(HostError, match="whole number, not 42 W"):
        made(agent.port).opened(nothing)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"oid": "power", "community": {"file": "c"}}, "oid"),
        ({"oid": "1.3", "community": "public"}, "not a password"),
    ],
)
def test_a_mistake_is_told(said: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told) as refused:
        SnmpMeter.model_validate({"kind": "snmp", "host": "pdu"} | said)
    assert "public" not in str(refused.value)


def test_nothing_of_a_meter_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITY", "hunter2")
    said = {"kind": "snmp", "host": "pdu", "oid": "1.3", "community": {"environment": "COMMUNITY"}}
    assert "hunter2" not in SnmpMeter.model_validate(said).model_dump_json()
