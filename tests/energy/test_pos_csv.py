"""The CSV files of pos_energy, as published ones are."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import ResultsError
from tailtrim.laboratory.energy import pos_csv
from tailtrim.laboratory.energy.series import Reading
from tailtrim.laboratory.nodes.meters import Channel, Value

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "timestamp,current_mA,voltage_V,power_active_W,energy_counter_Wh"
#: In the form of pos: the counter at first, then what was added.
PUBLISHED = f"""{HEAD}
20250318120435045016,301,234,56,750
20250318120436042964,301,234,56,0
20250318120437044253,282,234,51,1
"""
OUTLET = Channel("power", counts=False, resolution=1.0)
BEGAN = datetime(2026, 11, 23, 4, 5, 6, 789_000, tzinfo=UTC)


def outlet(*watts: float) -> list[Reading]:
    return [
        Reading(
            float(number),
            BEGAN + timedelta(seconds=number),
            [Value(power_w=one, voltage_v=230.0, current_a=one / 230, energy_wh=1071.0 + number)],
        )
        for number, one in enumerate(watts)
    ]


def test_a_file_of_pos_is_read(tmp_path: Path) -> None:
    place = tmp_path / "measurement_run0.csv"
    place.write_text(PUBLISHED)
    found = pos_csv.read(place)
    assert [row.power_w for row in found] == [(56,), (56,), (51,)]
    assert [row.energy_wh for row in found] == [(0,), (0,), (1,)]
    assert found[0].time.replace(tzinfo=None) == datetime(2025, 3, 18, 12, 4, 35, 45_016)  # noqa: DTZ001
    assert pos_csv.joules(found) == pytest.approx(0.997948 * 56 + 1.001289 * 53.5)


def test_what_is_written_is_in_that_form_and_read_again(tmp_path: Path) -> None:
    place = tmp_path / "energy" / "tartu" / "measurement_run0.csv"
    pos_csv.write(place, [OUTLET], outlet(42, 61, 61.5))
    head, *lines = place.read_text().splitlines()
    assert head == HEAD
    assert [line.split(",")[1:] for line in lines] == [
        ["182.608696", "230", "42", "1071"],
        ["265.217391", "230", "61", "1"],
        ["267.391304", "230", "61.5", "2"],
    ]
    assert all(len(line.split(",")[0]) == len("20250318120435045016") for line in lines)
    found = pos_csv.read(place)
    assert found[0].time == BEGAN
    assert [row.energy_wh for row in found] == [(0,), (1,), (2,)]


def test_several_channels_have_a_column_for_each_quantity(tmp_path: Path) -> None:
    channels = [
        Channel("package-0", counts=True, resolution=1e-6, wraps_j=100.0),
        Channel("package-0 core", counts=True, resolution=1e-6, whole=False),
        Channel("package-0 dram", counts=True, resolution=1e-6, wraps_j=100.0),
    ]
    joules = [(10.0, 5.0, 80.0), (20.0, 6.0, 99.0), (40.0, 7.0, 18.0)]
    readings = [
        Reading(float(at), BEGAN + timedelta(seconds=at), [Value(energy_j=one) for one in told])
        for at, told in enumerate(joules)
    ]
    place = tmp_path / "energy.csv"
    pos_csv.write(place, channels, readings)
    assert place.read_text().splitlines()[0] == (
        "timestamp,current_mA_0,current_mA_1,voltage_V_0,voltage_V_1,"
        "power_active_W_0,power_active_W_1,energy_counter_Wh_0,energy_counter_Wh_1"
    )
    found = pos_csv.read(place)
    assert [row.power_w for row in found[1:]] == [(10, 19), (20, 19)]
    assert found[2].energy_wh == pytest.approx((30 / 3600, 38 / 3600), abs=1e-6)
    assert all(math.isnan(one) for one in (*found[0].power_w, *found[1].voltage_v))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: expected timestamp,current_mA"),
        ("time,watts\n", "line 1: expected timestamp,current_mA"),
        (f"{HEAD}\n20250318120435045016,1,2,3\n", "line 2: 4 values, expected 5"),
        (f"{HEAD}\nyesterday,1,2,3,4\n", "line 2: "),
        (f"{HEAD}\n20250318120435045016,1,2,x,4\n", "line 2: "),
        (f"{HEAD}\n\n", "line 2: "),
    ],
)
def test_another_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    place = tmp_path / "energy.csv"
    place.write_text(text)
    with pytest.raises(ResultsError) as refused:
        pos_csv.read(place)
    assert str(refused.value).startswith(f"{place}: {told}")
