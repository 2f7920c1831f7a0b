"""Meters: files of a kernel, and devices asked over the network, each as its documents say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redfish_chassis
import sensor_tree
from ports import reserved_port
from pydantic import TypeAdapter, ValidationError
from tools import need

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters import AnyMeter, Meter
from tailtrim.laboratory.nodes.power.ipmi import IPMITOOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

METER: TypeAdapter[Meter] = TypeAdapter(AnyMeter)
_CONTROLLER = Path(__file__).parents[1] / "power/support/ipmi_controller.py"
PASSWORD = "pass word&1"  # noqa: S105 - of emulators
_CREDENTIALS = {"user": "admin", "password": {"environment": "METER_PASSWORD"}}


def nothing(command: Sequence[str]) -> Any:
    raise AssertionError(command)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METER_PASSWORD", PASSWORD)


@pytest.fixture
def tree(tmp_path: Path) -> sensor_tree.Tree:
    return sensor_tree.two_packages(tmp_path)


def test_zones_are_named_and_only_packages_and_dram_are_the_whole(tree: sensor_tree.Tree) -> None:
    with METER.validate_python({"kind": "powercap"}).opened(tree.start) as reader:
        found = {one.name: one for one in reader.channels}
        assert [name for name, one in found.items() if one.whole] == [
            "package-0",
            "package-0 dram",
            "package-1",
            "package-1 dram",
        ]
        assert found["package-0 core"].wraps_j == pytest.approx(262_143.328850)
        assert found["psys"].whole is False
        tree.zone("1", "package-1", 3_500_000)
        values = dict(zip(found, reader.read(), strict=True))
    assert values["package-1"].energy_j == pytest.approx(3.5)
    assert values["package-0"].energy_j == pytest.approx(1.0)


def test_a_reading_on_a_measured_cpu_is_as_seldom_as_wraps_allow(tree: sensor_tree.Tree) -> None:
    meter = METER.validate_python({"kind": "powercap"})
    with meter.opened(tree.start, busy=[1, 3]) as reader:
        assert reader.every_s == 1.0
        assert reader.why is None
    with meter.opened(tree.start, busy=[2]) as reader:
        # Half of what DRAM's counter takes to wrap at 3,680 W.
        assert reader.every_s == pytest.approx(65_712.999613 / (2 * 3_680))
        assert "CPU 2" in (reader.why or "")


def test_a_machine_without_zones_is_told(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    with pytest.raises(HostError, match="no zones in /sys/class/powercap") as refused:
        METER.validate_python({"kind": "powercap"}).opened(sensor_tree.Tree(tmp_path).start)
    assert "virtual machines have none" in refused.value.__notes__[0]


def test_counters_that_only_root_may_read_are_told(tree: sensor_tree.Tree) -> None:
    (file,) = tree.root.glob("sys/class/powercap/intel-rapl:1/energy_uj")
    # As root every file can be read: one that says nothing stands for it.
    file.write_text("")
    with pytest.raises(HostError, match="intel-rapl:1/energy_uj cannot be read") as refused:
        METER.validate_python({"kind": "powercap"}).opened(tree.start)
    assert "only root may read" in refused.value.__notes__[0]


def test_a_zone_that_goes_is_told(tree: sensor_tree.Tree) -> None:
    with METER.validate_python({"kind": "powercap"}).opened(tree.start) as reader:
        (tree.root / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
        with pytest.raises(HostError, match="package-0 cannot be read"):
            reader.read()


def test_a_node_that_goes_is_told(tree: sensor_tree.Tree) -> None:
    started: list[subprocess.Popen[str]] = []

    def start(command: Sequence[str]) -> subprocess.Popen[str]:
        started.append(tree.start(command))
        return started[-1]

    with METER.validate_python({"kind": "powercap"}).opened(start) as reader:
        started[0].kill()
        started[0].wait()
        with pytest.raises(HostError, match="has ended"):
            reader.read()


def test_nothing_runs_on_after_a_meter(tree: sensor_tree.Tree) -> None:
    started: list[subprocess.Popen[str]] = []

    def start(command: Sequence[str]) -> subprocess.Popen[str]:
        started.append(tree.start(command))
        return started[-1]

    with METER.validate_python({"kind": "powercap"}).opened(start):
        assert started[0].poll() is None
    assert started[0].poll() is not None
    with pytest.raises(HostError):
        _hwmon(sensor="power9_average").opened(start)
    assert started[1].poll() is not None


def _hwmon(**more: Any) -> Meter:
    said = {"kind": "hwmon", "chip": "power_meter", "sensor": "power1_average"}
    return METER.validate_python(said | {"resolution_w": 0.5} | more)


def test_a_sensor_of_hwmon_is_found_by_file_or_label(tree: sensor_tree.Tree) -> None:
    tree.sensor(0, "coretemp", "power1_average", 1)
    tree.sensor(3, "power_meter", "power1_average", 143_500_000)
    tree.sensor(4, "ina3221", "energy1_input", 7_000_000, label="VDD_CPU")
    with _hwmon().opened(tree.start) as reader:
        assert [value.power_w for value in reader.read()] == [143.5]
        assert [(one.counts, one.resolution) for one in reader.channels] == [(False, 0.5)]
    with _hwmon(chip="ina3221", sensor="VDD_CPU").opened(tree.start) as reader:
        assert [value.energy_j for value in reader.read()] == [7.0]
        assert reader.channels[0].name == "VDD_CPU"


def test_a_sensor_that_is_not_there_is_told_with_those_that_are(tree: sensor_tree.Tree) -> None:
    tree.sensor(0, "power_meter", "power1_average", 1)
    with pytest.raises(HostError, match=r"expected .*power_meter power1_average"):
        _hwmon(sensor="power2_average").opened(tree.start)


def test_hwmon_does_not_know_the_step_of_a_sensor() -> None:
    with pytest.raises(ValidationError, match="resolution_w"):
        METER.validate_python({"kind": "hwmon", "chip": "a", "sensor": "power1_input"})


@pytest.fixture
def controller(request: pytest.FixtureRequest) -> Iterator[Meter]:
    pytest.importorskip("pyghmi", reason="pyghmi is not installed: no management controller")
    need(IPMITOOL)
    port = reserved_port()
    manner = getattr(request, "param", "obeys")
    words = [sys.executable, str(_CONTROLLER), str(port), "admin", PASSWORD, manner]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        said = {"kind": "ipmi", "host": "127.0.0.1", "port": port}
        yield METER.validate_python(said | _CREDENTIALS)
        process.kill()


def test_dcmi_tells_whole_watts(controller: Meter) -> None:
    with controller.opened(nothing) as reader:
        assert [value.power_w for value in reader.read()] == [214.0]
        assert reader.channels[0].resolution == 1.0


@pytest.mark.parametrize("controller", ["has no DCMI"], indirect=True)
def test_a_controller_without_dcmi_is_told(controller: Meter) -> None:
    with pytest.raises(HostError, match="dcmi power reading"):
        controller.opened(nothing)


def redfish(controller: redfish_chassis.Controller, **more: Any) -> Meter:
    pytest.importorskip("sushy", reason="the extra tailtrim[redfish] is not installed: sushy")
    said = {"kind": "redfish", "url": controller.url}
    return METER.validate_python(said | _CREDENTIALS | more)


@pytest.mark.parametrize("newer", [True, False])
def test_redfish_tells_the_power_of_the_chassis(*, newer: bool) -> None:
    with (
        redfish_chassis.Controller(newer=newer) as controller,
        redfish(controller).opened(nothing) as reader,
    ):
        assert reader.read()[0].power_w == 214.0
        controller.watts = 251.5
        assert reader.read()[0].power_w == 251.5


def test_one_of_several_chassis_has_to_be_named() -> None:
    with redfish_chassis.Controller(chassis=2) as controller:
        with pytest.raises(HostError, match="2 chassis, expected one") as refused:
            redfish(controller).opened(nothing)
        assert "/redfish/v1/Chassis/1" in refused.value.__notes__[0]
        first = redfish(controller, chassis="/redfish/v1/Chassis/1")
        assert first.opened(nothing).read()[0].power_w == 214.0
        with pytest.raises(HostError, match="no chassis /redfish/v1/Chassis/9"):
            redfish(controller, chassis="/redfish/v1/Chassis/9").opened(nothing)


def test_a_chassis_that_tells_no_power_is_told() -> None:
    with (
        redfish_chassis.Controller(watts=None) as controller,
        pytest.raises(HostError, match="no power, expected PowerWatts"),
    ):
        redfish(controller).opened(nothing)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"kind": "perf"}, "'perf'.*union_tag_invalid"),
        ({"kind": "powercap", "accuracy_percent": 0}, "greater than 0"),
        ({"kind": "powercap", "resolution_w": 1}, "should be None"),
        ({"kind": "command", "watts_command": ["true"]}, "resolution_w"),
    ],
)
def test_a_mistake_is_told(said: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        METER.validate_python(said)


def printing(words: str) -> Meter:
    said = {"kind": "command", "watts_command": ["sh", "-c", words], "resolution_w": 0.5}
    return METER.validate_python(said)


def test_a_command_prints_watts() -> None:
    with printing("echo power: 42.5").opened(nothing) as reader:
        assert [value.power_w for value in reader.read()] == [42.5]
        assert reader.channels[0].resolution == 0.5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("echo 42 W", "'42 W', expected watts"),
        ("true", "expected watts"),
        ("echo -1", "expected watts"),
        ("echo nan", "expected watts"),
        ("echo no relay >&2; exit 3", "exit code 3: no relay"),
    ],
)
def test_a_command_that_prints_no_watts_is_told(words: str, told: str) -> None:
    with pytest.raises(HostError, match=told):
        printing(words).opened(nothing)
