"""pos_energy on a node with a meter and without one, as the controller answers the node."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from outlet_emulator import Emulator
from pydantic import TypeAdapter

from tailtrim.laboratory.energy import pos_csv
from tailtrim.laboratory.nodes.meters import AnyMeter, Meter, Reader
from tailtrim_pos.allocation import Allocation
from tailtrim_pos.layout import Layout
from tailtrim_pos.node_registry import Machine
from tailtrim_pos.tools import Reply, Request, answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METER: TypeAdapter[Meter] = TypeAdapter(AnyMeter)
NO_METER = "400 Bad Request: Node does not provide energy measurements\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine("tartu", tmp_path / "shared")
    machine.allocation = Allocation(1, ["tartu"], Layout(tmp_path / "results"), lambda _: "booted")
    machine.run = 3, {"pkt_rate": 1_000}, "_run03"
    return machine


@pytest.fixture
def outlet(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    monkeypatch.setenv("METER_PASSWORD", "pass word&1")
    with Emulator("gude") as emulator:
        said: dict[str, Any] = {"kind": "outlet", "model": "gude", "url": emulator.url, "outlet": 2}
        login = {"user": "admin", "password": {"environment": "METER_PASSWORD"}}
        meter = METER.validate_python(said | login)

        def opened() -> Reader:
            return meter.opened(_nothing)

        machine.meter = opened
        yield emulator


def _nothing(command: Any) -> Any:
    raise AssertionError(command)


def tool(machine: Machine, name: str, *words: str) -> Reply:
    return asyncio.run(answer(machine, Request(f"pos_energy_{name}", list(words))))


@pytest.mark.parametrize("name", ["start", "stop"])
def test_a_node_without_a_meter_says_what_pos_says(machine: Machine, name: str) -> None:
    reply = tool(machine, name)
    assert (reply.stderr, reply.code) == (NO_METER, 1)


@pytest.mark.usefixtures("outlet")
def test_a_run_leaves_a_file_where_pos_leaves_it(machine: Machine, tmp_path: Path) -> None:
    left: list[Path] = []
    machine.left = left.append
    assert tool(machine, "start", "--loop", "--filename", "measurement").code == 0
    assert tool(machine, "stop") == Reply()
    place = tmp_path / "results" / "energy" / "tartu" / "measurement_run03.csv"
    assert left == [place]
    found = pos_csv.read(place)
    assert found
    assert {row.power_w for row in found} == {(42.0,)}
    assert place.read_text().splitlines()[1].endswith(",1071")


@pytest.mark.usefixtures("outlet")
def test_without_loop_the_file_is_of_no_run(machine: Machine, tmp_path: Path) -> None:
    for _ in range(2):
        assert tool(machine, "start").code == 0
        assert tool(machine, "stop").code == 0
    assert (tmp_path / "results" / "energy" / "tartu" / "energy.csv").is_file()


@pytest.mark.usefixtures("outlet")
def test_what_is_begun_twice_or_never_is_told(machine: Machine) -> None:
    reply = tool(machine, "stop")
    assert (reply.code, "energy is not measured" in reply.stderr) == (1, True)
    assert tool(machine, "start", "--filename", "one").code == 0
    reply = tool(machine, "start", "--filename", "two")
    assert (reply.code, "already, for one.csv" in reply.stderr) == (1, True)
    tool(machine, "stop")


@pytest.mark.usefixtures("outlet")
def test_a_name_must_not_leave_the_results(machine: Machine) -> None:
    reply = tool(machine, "start", "--filename", "../../measurement")
    assert (reply.code, "out of the results" in reply.stderr) == (1, True)
    assert machine.measuring is None


@pytest.mark.usefixtures("outlet")
def test_a_script_that_does_not_stop_loses_nothing(machine: Machine, tmp_path: Path) -> None:
    tool(machine, "start", "--filename", "forgotten")
    # As when the node is freed.
    machine.measured()
    assert pos_csv.read(tmp_path / "results" / "energy" / "tartu" / "forgotten.csv")


def test_a_meter_that_does_not_answer_is_an_error_of_the_tool(
    machine: Machine, outlet: Emulator
) -> None:
    outlet.instead = (503, "{}")
    reply = tool(machine, "start")
    assert reply.code == 1
    assert "pos_energy_start: gude http://127.0.0.1:" in reply.stderr
    assert "HTTP 503, expected 200" in reply.stderr


def test_readings_that_fail_are_told(machine: Machine, outlet: Emulator) -> None:
    tool(machine, "start")
    outlet.instead = (503, "{}")
    reply = tool(machine, "stop")
    assert reply.code == 0
    assert re.match(r"WARNING  \d readings .*gude .* HTTP 503", reply.stderr)
