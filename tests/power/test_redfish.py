"""Redfish, against the emulator of sushy-tools with its fake systems."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import certificates
import pytest
from ports import reserved_port

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.power import State
from tailtrim.laboratory.nodes.power.redfish import Redfish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("sushy", reason="the extra tailtrim[redfish] is not installed: sushy")
pytest.importorskip("sushy_tools", reason="sushy-tools is not installed: no Redfish emulator")
bcrypt = pytest.importorskip("bcrypt", reason="sushy-tools is not installed: no Redfish emulator")

PASSWORD = "pass word&1"  # noqa: S105 - of an emulator
SYSTEM = "/redfish/v1/Systems/11111111-1111-1111-1111-111111111111"
_START_S = 30.0
# Its fake systems change their state after up to 11 s; here within 1 s, or when they are told to.
_CONFIGURATION = """
import random
random.randint = lambda first, last: {changes_after_s}
SUSHY_EMULATOR_AUTH_FILE = {users!r}
SUSHY_EMULATOR_STATE_DIR = {folder!r}
SUSHY_EMULATOR_FAKE_SYSTEMS = [
    {{"uuid": f"{{number}}" * 8 + f"-{{number * 4}}" * 3 + f"-{{number * 12}}",
      "name": f"node{{number}}", "power_state": "Off", "nics": []}}
    for number in {systems!r}
]
"""


@contextmanager
def emulator(
    folder: Path,
    systems: str,
    certificate: certificates.Files | None = None,
    changes_after_s: int = 1,
) -> Iterator[str]:
    """Start it, and give its address."""
    users = folder / "users"
    users.write_text(f"admin:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    told = _CONFIGURATION.format(
        users=str(users), folder=str(folder), systems=systems, changes_after_s=changes_after_s
    )
    (folder / "configuration.py").write_text(told)
    port = reserved_port()
    command = [sys.executable, "-m", "sushy_tools.emulator.main", "--fake", "--port", str(port)]
    command += ["--interface", "127.0.0.1", "--config", str(folder / "configuration.py")]
    if certificate:
        command += ["--ssl-certificate", str(certificate.certificate)]
        command += ["--ssl-key", str(certificate.key)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        ends = time.monotonic() + _START_S
        while time.monotonic() < ends and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        else:
            pytest.fail((folder / "log").read_text())
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def made(url: str, **more: Any) -> Redfish:
    said = {
        "kind": "redfish",
        "url": url,
        "user": "admin",
        "password": {"environment": "BMC_PASSWORD"},
        "off_s": 0,
        "deadline_s": 20,
    }
    return Redfish.model_validate(said | more)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", PASSWORD)


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with emulator(tmp_path_factory.mktemp("redfish"), "1") as url:
        yield url


@pytest.fixture(scope="module")
def chassis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with emulator(tmp_path_factory.mktemp("redfish"), "12") as url:
        yield url


def test_a_system_is_switched(bmc: str) -> None:
    redfish = made(bmc)
    redfish.off(hard=True)
    assert redfish.state() is State.OFF
    redfish.on()
    assert redfish.state() is State.ON
    redfish.cycle()
    assert redfish.state() is State.ON
    redfish.off()
    assert redfish.state() is State.OFF


def test_questions_leave_no_handler_of_messages_behind(bmc: str) -> None:
    # A hang of 48 hours asks some 100,000 times.
    power = made(bmc)
    power.state()
    before = list(logging.getLogger("sushy").handlers)
    power.state()
    assert logging.getLogger("sushy").handlers == before


def test_a_state_that_comes_too_late_is_told(tmp_path: Path) -> None:
    with (
        emulator(tmp_path, "1", changes_after_s=3_600) as slow,
        pytest.raises(HostError, match=r"expected on within 0\.01 s, .* off\b"),
    ):
        made(slow, deadline_s=0.01).on()


def test_the_boot_source_is_set(bmc: str) -> None:
    redfish = made(bmc)
    for source in ("pxe", "disk"):
        redfish.boot_next(source)


def test_a_wrong_password_is_told(bmc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "wrong-one")
    with pytest.raises(HostError, match="user admin was refused") as refused:
        made(bmc).state()
    assert "wrong-one" not in str(refused.value)


def test_one_of_several_systems_has_to_be_named(chassis: str) -> None:
    with pytest.raises(HostError, match="not exactly one") as refused:
        made(chassis).state()
    (note,) = refused.value.__notes__
    for fact in ("system", "/redfish/v1/Systems/1"):
        assert fact in note
    named, other = made(chassis, system=SYSTEM), made(chassis, system=SYSTEM.replace("1", "2", 1))
    assert other.place != named.place
    named.on()
    second = made(chassis, system=SYSTEM.replace("1111-", "2222-").replace("1111", "2222"))
    assert second.state() is State.OFF
    assert named.state() is State.ON


def test_a_system_that_is_not_there_is_told(bmc: str) -> None:
    with pytest.raises(HostError, match=r"Systems/none: .*not found"):
        made(bmc, system="/redfish/v1/Systems/none").state()


def test_a_controller_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(HostError, match=r"Connection refused") as refused:
        made(url).state()
    assert PASSWORD not in str(refused.value)


def test_a_certificate_is_checked_unless_said_otherwise(tmp_path: Path) -> None:
    files = certificates.made(tmp_path)
    with emulator(tmp_path, "1", files) as url:
        with pytest.raises(HostError, match="CERTIFICATE_VERIFY_FAILED") as refused:
            made(url).state()
        assert refused.value.__notes__
        assert made(url, ca_file=str(files.certificate)).state() is State.OFF
        assert made(url, check_certificate=False).state() is State.OFF
