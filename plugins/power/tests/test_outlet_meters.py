"""Meters of outlets, against emulators written from their documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from outlet_emulator import FIRST, PASSWORD, USER, Emulator

from tailtrim.errors import HostError
from tailtrim_power.outlet import OutletMeter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def nothing(command: Sequence[str]) -> Any:
    raise AssertionError(command)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METER_PASSWORD", PASSWORD)


@pytest.fixture(params=FIRST)
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    with Emulator(request.param) as emulator:
        yield emulator


def outlet(emulator: Emulator, **more: Any) -> OutletMeter:
    said: dict[str, Any] = {"kind": "outlet", "model": emulator.model, "url": emulator.url}
    said |= {"outlet": FIRST[emulator.model] + 1, "user": USER}
    return OutletMeter.model_validate(said | {"password": {"environment": "METER_PASSWORD"}} | more)


def test_an_outlet_tells_its_power_and_not_that_of_its_neighbour(emulator: Emulator) -> None:
    with outlet(emulator).opened(nothing) as reader:
        (value,) = reader.read()
        assert value.power_w == 42.0
        emulator.watts = 61.0
        (value,) = reader.read()
        assert value.power_w == 61.0
        steps = {"shelly-gen1": 0.01, "shelly-gen2": 0.1}
        assert reader.channels[0].resolution == steps.get(emulator.model, 1.0)
    with outlet(emulator, outlet=FIRST[emulator.model], resolution_w=0.5).opened(nothing) as reader:
        assert reader.read()[0].power_w == 0.0
        assert reader.channels[0].resolution == 0.5


def test_what_an_outlet_tells_beside_its_power(emulator: Emulator) -> None:
    with outlet(emulator).opened(nothing) as reader:
        (value,) = reader.read()
    only_power = {"shelly-gen1"}
    if emulator.model not in only_power:
        assert value.voltage_v == pytest.approx(230.4, abs=0.5)
        assert value.current_a == pytest.approx(0.183, abs=0.001)
    if emulator.model == "tasmota":
        assert value.energy_wh is None  # its counter is that of both outlets
    else:
        assert value.energy_wh == pytest.approx(1071)


def test_an_outlet_without_a_meter_is_told(emulator: Emulator) -> None:
    emulator.watts = None
    with pytest.raises(HostError, match=r"expected the power|HTTP 404") as refused:
        outlet(emulator).opened(nothing)
    assert PASSWORD not in str(refused.value)


def test_an_outlet_that_is_not_there_is_told(emulator: Emulator) -> None:
    with pytest.raises(HostError, match=r"outlet 9: (expected the power|HTTP [45]\d\d)"):
        outlet(emulator, outlet=9).opened(nothing)


def test_a_value_that_a_shelly_does_not_trust_is_refused() -> None:
    told = '{"power": 5000, "is_valid": false}'
    with (
        Emulator("shelly-gen1", instead=(200, told)) as emulator,
        pytest.raises(HostError, match="expected the power"),
    ):
        outlet(emulator).opened(nothing)
