"""Description of a node's power in a testbed file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.power import AnyPower, Power
from tailtrim.laboratory.nodes.power.access import Secret
from tailtrim.laboratory.nodes.power.command import CommandPower
from tailtrim.laboratory.nodes.power.ipmi import Ipmi
from tailtrim.laboratory.nodes.power.redfish import Redfish

if TYPE_CHECKING:
    from pathlib import Path

POWER: TypeAdapter[Power] = TypeAdapter(AnyPower)
IPMI = {"kind": "ipmi", "host": "bmc", "user": "admin", "password": {"environment": "BMC"}}


COMMAND = {
    "kind": "command",
    "on_command": ["relay", "3", "on"],
    "off_command": ["relay", "3", "off"],
    "state_command": ["relay", "3"],
}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (IPMI, Ipmi),
        (
            {
                "kind": "redfish",
                "url": "https://bmc",
                "user": "admin",
                "password": {"file": "~/.config/bmc"},
            },
            Redfish,
        ),
        (COMMAND, CommandPower),
    ],
)
def test_each_kind_is_read(said: dict[str, Any], kind: type[Power]) -> None:
    assert type(POWER.validate_python(said)) is kind


@pytest.mark.parametrize(
    ("changed", "kind", "told"),
    [
        ({"kind": "wake"}, "union_tag_invalid", "'redfish', 'ipmi', 'command'"),
        ({"secret": "x"}, "extra_forbidden", "secret"),
        ({"port": 0}, "greater_than_equal", "port"),
        ({"host": "-H"}, "string_pattern_mismatch", "host"),
        ({"deadline_s": 0}, "greater_than", "deadline_s"),
        ({"password": {}}, "value_error", "{environment: NAME} or {file: PATH}"),
        (
            {"password": {"environment": "A", "file": "b"}},
            "value_error",
            "{environment: NAME} or {file: PATH}",
        ),
    ],
)
def test_a_mistake_is_told(changed: dict[str, Any], kind: str, told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        POWER.validate_python(IPMI | changed)
    assert [mistake["type"] for mistake in refused.value.errors()] == [kind]
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "changed",
    [
        IPMI | {"password": "hunter2"},
        IPMI | {"password": ["hunter2"]},
        {"kind": "redfish", "url": "https://admin:hunter2@bmc"},
        {"kind": "redfish", "url": "http://hunter2@bmc"},
    ],
)
def test_a_password_in_the_wrong_place_is_not_told(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        POWER.validate_python({"user": "admin", "password": {"environment": "BMC"}} | changed)
    mistakes = refused.value.errors()
    assert not [mistake for mistake in mistakes if "hunter2" in str(mistake["input"])]
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["bmc", "ftp://bmc", "https://", "http://bmc/?x=1", "http://bmc#x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="expected an address"):
        POWER.validate_python(IPMI | {"kind": "redfish", "url": url})


def test_a_password_is_read_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BMC", "of the environment")
    assert Secret(environment="BMC").read() == "of the environment"
    file = tmp_path / "password"
    file.write_text("of the file\n")
    file.chmod(0o600)
    secret = Secret(file=str(file))
    assert secret.read() == "of the file"
    assert "of the file" not in repr(secret) + secret.model_dump_json()


def test_a_password_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BMC", raising=False)
    with pytest.raises(HostError, match=r"^environment variable BMC: "):
        Secret(environment="BMC").read()
    file = tmp_path / "password"
    with pytest.raises(HostError, match=rf"{file}: .*No such file"):
        Secret(file=str(file)).read()
    file.write_text("\n")
    file.chmod(0o600)
    with pytest.raises(HostError, match=rf"{file}: .*in its first line"):
        Secret(file=str(file)).read()
    file.write_bytes(b"\xff\n")
    with pytest.raises(HostError, match=rf"{file}: .*not text"):
        Secret(file=str(file)).read()


def test_a_password_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("said\n")
    file.chmod(0o640)
    with pytest.raises(HostError, match=rf"{file}.* mode 640, expected 600"):
        Secret(file=str(file)).read()
