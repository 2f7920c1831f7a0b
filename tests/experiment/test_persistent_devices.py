"""Devices that are kept up between runs, without a testbed: when they are started, and ended."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import pytest
from unwired import GENERATED, Nothing, Played, conducted, played_testbed, write_pcap

from tailtrim.errors import RunError
from tailtrim.laboratory.experiment import persistent_devices
from tailtrim.laboratory.experiment.measure import Measurement
from tailtrim.laboratory.experiment.tap_clocks import TapClocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.experiment.context import InlineRunContext

PLAN = """\
dut: {preset: $dut, lifetime: configuration}
traffic: {rate_pps: $rate, duration_s: 2}
loop: {rate: [1000, 2000], dut: [bridge, router]}
floor: false
"""
STEADY = {
    "steady": True,
    "took_s": 5.5,
    "limit_s": 120.0,
    "windows": [{"page_faults": 0, "shootdowns": 0, "p50_ns": 1, "p99_ns": 2, "changes": []}],
}


class Fake:
    """A device whose starts, ends and deaths are in a list."""

    def __init__(self, events: list[str], name: str) -> None:
        self._events, self._name, self.dead = events, name, False
        events.append(f"{name} started")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.append(f"{self._name} ended")

    def check(self) -> None:
        if self.dead:
            raise RunError("the device under test died")

    def stop(self) -> None:
        pass


class Bench:
    """Fake devices: it records their events, and tests change their behaviour through it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.started: list[Fake] = []
        self.warmed: dict[str, Any] = STEADY
        #: Called with the number of each run while it is measured.
        self.meanwhile: Callable[[int], None] = lambda _: None

    def start(self, device: Any, at: Any, **_: Any) -> Fake:
        del at
        self.started.append(Fake(self.events, device.preset))
        return self.started[-1]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()

    def forwarding(_: Any, folder: Path, __: int) -> Any:
        node = Played(
            lambda name: path if (path := folder / name).exists() else None,
            check=lambda: None,
            call=lambda *_: SimpleNamespace(stdout="kernel\t6.1\n", stderr=""),
        )
        return nullcontext(played_testbed(node, node, node, folder=folder, aside=nullcontext))

    def measured(context: InlineRunContext) -> Measurement:
        at, run = cast("Any", context.at), context.run
        assert context.device is not None
        made.events.append(run.label)
        frames = [(10**9 + number * 100_000, number) for number in range(100)]
        write_pcap(at.folder / "ingress.pcap", frames)
        write_pcap(at.folder / "egress.pcap", [(at + 5_000, number) for at, number in frames])
        (at.folder / "departures.csv").write_text("kind,from_ns,to_ns\n", "utf-8")
        (at.folder / "logs").mkdir(exist_ok=True)
        (at.folder / "logs" / "loadgen-generate.log").write_text(run.folder)
        (at.folder / "logs" / "timestamper-capture.log").touch()
        with (at.folder / "dut.log").open("a") as log:
            log.write(f"{run.folder}\n")
        made.meanwhile(run.number)
        context.device.check()
        tap = {"dropped": 0, "unstamped": 0, "stamps": "kernel"}
        capture = {"taps": {side: tap | {"file": f"{side}.pcap"} for side in ("ingress", "egress")}}
        return Measurement(
            GENERATED, capture, None, None, shares_cpu=False, doubts=(), clocks=TapClocks(at)
        )

    monkeypatch.setattr(Nothing, "forwarding", forwarding)
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["tailtrim.laboratory.experiment.running"], "measure", measured)
    monkeypatch.setattr(persistent_devices, "DeviceUnderTest", made.start)
    monkeypatch.setattr(persistent_devices, "warm_up", lambda _: made.warmed)
    return made


def recorded(experiment: Experiment, name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads((experiment.path / name).read_text("utf-8"))
    return parsed


def test_a_device_is_started_once_for_its_runs_and_ends_before_the_next(
    experiment: Callable[..., Experiment], bench: Bench
) -> None:
    made = experiment(PLAN)
    ended = conducted(made)
    assert [(outcome.failed, outcome.invalid) for _, outcome, _ in ended] == [(None, ())] * 4
    assert bench.events == [
        event
        for device in ("bridge", "router")
        for event in (
            f"{device} started",
            f"{device} rate=1000",
            f"{device} rate=2000",
            f"{device} ended",
        )
    ]
    # Each run has what was printed meanwhile; the device has all of it.
    assert (made.path / "run-001" / "dut.log").read_text() == "run-001\n"
    assert (made.path / "devices" / "device-000" / "dut.log").read_text() == "run-000\nrun-001\n"
    assert recorded(made, "run-001/device.json")["runs_before"] == 1
    assert not list(made.path.glob(".run-*"))
    assert made.notices == []
    # Programs that had nothing to say have no log.
    logs = made.path / "run-001" / "logs"
    assert [(path.name, path.read_text()) for path in logs.iterdir()] == [
        ("loadgen-generate.log", "run-001")
    ]
    assert not (made.path / "failed").exists()


def test_the_wire_is_measured_without_the_device(
    experiment: Callable[..., Experiment], bench: Bench
) -> None:
    conducted(experiment(PLAN.replace("[bridge, router]", "[wire, bridge]") + "order: plan\n"))
    assert bench.events.index("wire ended") < bench.events.index("bridge started")


def test_a_device_that_died_between_runs_is_started_again_for_the_next(
    experiment: Callable[..., Experiment], bench: Bench
) -> None:
    made = experiment(PLAN.replace("[bridge, router]", "[bridge]"))

    def dies(run: int) -> None:
        # After the run has looked for it.
        bench.started[-1].check = check if run == 0 else bench.started[-1].check  # type: ignore[method-assign]

    looks = iter([None])

    def check() -> None:
        if next(looks, "dead") == "dead":
            raise RunError("the device under test (bridge) died: killed")

    bench.meanwhile = dies
    first, second = [outcome for _, outcome, _ in conducted(made)]
    assert (first.failed, second.failed) == (None, None)
    assert bench.events.count("bridge started") == bench.events.count("bridge ended") == 2
    told = "the device under test (bridge) died: killed"
    (notice,) = made.notices
    assert re.match(f"device-000 .*started again: {re.escape(told)}", notice)
    assert recorded(made, "devices/device-000/device.json")["failed"] == told
    assert recorded(made, "run-001/device.json")["device"] == "device-001"


def test_a_device_that_died_in_a_run_fails_that_run_alone(
    experiment: Callable[..., Experiment], bench: Bench
) -> None:
    made = experiment(PLAN.replace("[bridge, router]", "[bridge]"))

    def dies(run: int) -> None:
        bench.started[-1].dead = run == 0

    bench.meanwhile = dies
    first, second = [outcome for _, outcome, _ in conducted(made)]
    assert "device under test died" in str(first.failed)
    assert second.failed is None
    assert recorded(made, "run-001/device.json")["device"] == "device-001"
    assert [run.folder for run in made.missing()] == ["run-000"]
    # The files that are left of it show why.
    place = made.path / "failed" / "run-000"
    assert {path.relative_to(place).as_posix() for path in place.rglob("*.log")} == {
        "dut.log",
        "logs/loadgen-generate.log",
    }
    assert not (made.path / "run-000").exists()


def test_a_device_that_does_not_start_fails_its_runs_and_no_others(
    experiment: Callable[..., Experiment], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(device: Any, at: Any, **more: Any) -> Fake:
        if device.preset == "bridge":
            bench.events.append("bridge tried")
            raise RunError("nothing passes")
        return bench.start(device, at, **more)

    monkeypatch.setattr(persistent_devices, "DeviceUnderTest", start)
    failed = [outcome.failed for _, outcome, _ in conducted(experiment(PLAN))]
    assert failed == ["nothing passes", "nothing passes", None, None]
    assert bench.events.count("bridge tried") == 1


def test_runs_of_a_device_that_is_not_steady_are_invalid_and_say_why(
    experiment: Callable[..., Experiment], bench: Bench
) -> None:
    last = STEADY["windows"][0] | {"changes": ["page faults", "latency (p99)"]}  # type: ignore[index]
    bench.warmed = STEADY | {"steady": False, "windows": [last]}
    made = experiment(PLAN.replace("[bridge, router]", "[bridge]"))
    told = [why for _, outcome, _ in conducted(made) for why in outcome.invalid]
    assert len(told) == 2
    for why in told:
        assert re.search(r"not steady within 120 s: .*page faults, latency \(p99\)", why)


def test_minutes_of_a_run_with_a_kept_device_are_those_of_the_run(
    experiment: Callable[..., Experiment], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the folder of the device, which goes with it."""
    made = experiment(PLAN.replace("[bridge, router]", "[bridge]") + "by_minute: true\n")
    conduct = sys.modules["tailtrim.laboratory.experiment.running"]
    measured = conduct.measure

    def measure(context: InlineRunContext) -> Measurement:
        at, by_minute = cast("Any", context.at), context.by_minute
        assert by_minute is not None
        matched = at.folder / f"matched-{by_minute.run}"
        matched.mkdir()
        (matched / "minute.jsonl").write_text(f"{by_minute.run}\n")
        (at.folder / "counter.jsonl").write_text(f"{by_minute.run}\n")
        done: Measurement = measured(context)
        return done

    monkeypatch.setattr(conduct, "measure", measure)

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    bench.meanwhile = interrupted
    with pytest.raises(KeyboardInterrupt):
        conducted(made)
    bench.meanwhile = lambda _: setattr(bench.started[-1], "dead", True)
    conducted(made)
    for run in ("run-000", "run-000.2", "run-001"):
        for name in ("minute.jsonl", "counter.jsonl"):
            assert (made.path / "failed" / run / name).read_text() == f"{run[:7]}\n"
    assert not list(made.path.glob(".run-*"))
