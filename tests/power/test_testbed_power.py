"""``tailtrim testbed power``: read and switch the power of a node that a testbed file describes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from outlet_emulator import PASSWORD, USER, Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator


EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts" / "testbed.yml"


@pytest.fixture
def outlet() -> Iterator[Emulator]:
    with Emulator("netio") as made:
        yield made


def power(
    folder: Path, outlet: Emulator, *words: str, password: str = PASSWORD, **dut: Any
) -> subprocess.CompletedProcess[str]:
    said = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    said["nodes"]["dut"] |= {
        "may": ["reboot"],
        # No host is there.
        "ssh": {"host": "127.0.0.1", "port": 9},
        "power": {
            "kind": "outlet",
            "model": "netio",
            "url": outlet.url,
            "outlet": 1,
            "user": USER,
            "password": {"environment": "OUTLET_PASSWORD"},
            "off_s": 0,
        },
    } | dut
    file = folder / "testbed.yml"
    file.write_text(yaml.safe_dump(said), "utf-8")
    return subprocess.run(
        [Path(sys.executable).with_name("tailtrim"), "testbed", "power", str(file), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OUTLET_PASSWORD": password},
    )


def test_a_node_is_switched(tmp_path: Path, outlet: Emulator) -> None:
    for words, told, on in (
        (("dut", "state"), "dut is off", False),
        (("dut", "on"), "dut is on", True),
        (("dut", "cycle"), "dut was off .* on", True),
        (("dut", "off", "--hard"), "dut is off", False),
    ):
        ended = power(tmp_path, outlet, *words)
        assert ended.returncode == 0, ended.stderr
        assert re.fullmatch(told, ended.stdout.strip())
        assert outlet.states[1] is on
    assert [one.body["Outputs"][0]["Action"] for one in outlet.asked if one.body] == [1, 0, 1, 0]


@pytest.mark.parametrize("words", [["off", "--hard"], ["cycle"], ["next", "pxe"]])
def test_what_the_testbed_file_does_not_allow(
    tmp_path: Path, outlet: Emulator, words: list[str]
) -> None:
    outlet.states[1] = True
    ended = power(tmp_path, outlet, "dut", *words, may=["bootline", "tune"])
    assert ended.returncode == 2
    for fact in ("node dut may not", "add reboot to nodes.dut"):
        assert fact in ended.stderr
    assert outlet.asked == []


def test_reading_the_state_takes_no_permission(tmp_path: Path, outlet: Emulator) -> None:
    assert power(tmp_path, outlet, "dut", "state", may=[]).stdout == "dut is off\n"


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ([], ("NODE", "state, on, off, cycle,", "next pxe", "next disk")),
        (["dut", "reset"], ("next pxe", "next disk", "not 'dut reset'")),
        (["dut", "cycle", "--hard"], ("--hard belongs to off",)),
        (["gen", "state"], ("node gen has no power", "add nodes.gen.power")),
        (["dot", "state"], ("unknown node 'dot'", "dut")),
    ],
)
def test_words_that_are_wrong(
    tmp_path: Path, outlet: Emulator, words: list[str], facts: tuple[str, ...]
) -> None:
    ended = power(tmp_path, outlet, *words)
    assert ended.returncode == 2
    told = " ".join(ended.stderr.split())
    for fact in facts:
        assert fact in told


@pytest.mark.parametrize("words", [["off"], ["next", "disk"]])
def test_what_an_outlet_cannot_do_is_told(
    tmp_path: Path, outlet: Emulator, words: list[str]
) -> None:
    outlet.states[1] = True
    ended = power(tmp_path, outlet, "dut", *words)
    assert ended.returncode == 3
    assert "Traceback" not in ended.stderr
    assert outlet.states[1]


def test_a_password_is_not_told(tmp_path: Path, outlet: Emulator) -> None:
    ended = power(tmp_path, outlet, "dut", "state", password="hunter2")  # noqa: S106 - a wrong one
    assert ended.returncode == 3
    assert "refused (HTTP 401)" in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout
