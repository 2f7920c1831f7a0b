"""Outcomes of runs, without a testbed: decisions before and after a measurement."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from itertools import repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from unwired import GENERATED, Nothing, Played, conducted, played_testbed, write_pcap

from tailtrim import units
from tailtrim.errors import HostError, OutputError, PlanError
from tailtrim.laboratory.experiment import Experiment, Listener, conduct
from tailtrim.laboratory.experiment.measure import Measurement
from tailtrim.laboratory.experiment.tap_clocks import TapClocks
from tailtrim.publishing.report.terminal import experiment_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.plan import Run
    from tailtrim.results.experiments import Outcome


COUNTERS = {"trace": {"source": "counters"}, "sources_refused": ["tracefs: none", "perf: refused"]}


def test_a_device_whose_program_is_missing_is_skipped_before_anything_runs(
    experiment: Callable[..., Experiment],
) -> None:
    text = "dut: {preset: $dut}\nloop: {dut: [bridge, suricata, testpmd]}\n"
    first, second, *others = conducted(experiment(text))
    for label, (name, outcome, wired) in zip(("suricata", "testpmd"), (first, second), strict=True):
        assert name == label
        assert outcome.skipped is not None
        assert "is not installed, expected" in outcome.skipped
        assert (outcome.failed, wired) == (None, 0)
    assert [(name, bool(outcome.failed)) for name, outcome, _ in others] == [
        ("wire", True),
        ("bridge", True),
    ]


@pytest.mark.parametrize(
    "dut",
    [
        "dut: {preset: testpmd}",
        "dut: {preset: $dut}\nloop: {dut: [testpmd, suricata]}",
        "dut: {preset: command, command: 'no-such-program {in} {out}'}",
    ],
)
def test_without_any_device_nothing_runs(experiment: Callable[..., Experiment], dut: str) -> None:
    with pytest.raises(HostError, match="is not installed, expected"):
        conducted(experiment(dut + "\n"))
    assert Nothing.wired == 0


def test_frames_that_a_device_does_not_handle_are_skipped_before_anything_runs(
    experiment: Callable[..., Experiment],
) -> None:
    text = """
dut: {preset: $dut}
traffic: {rate_pps: 1000, duration_s: 2, frame_bytes: $size}
loop: {dut: [xdp, bridge], size: [64, 9018]}
floor: false
"""
    (name, outcome, wired), *others = conducted(experiment(text))
    assert (name, wired) == ("xdp size=9018", 0)
    assert re.match(r"traffic\.frame_bytes: .*xdp .* 3524", str(outcome.skipped))
    assert [name for name, _, _ in others] == ["xdp size=64", "bridge size=64", "bridge size=9018"]


def test_a_plan_of_nothing_but_frames_that_are_too_large_is_wrong(
    experiment: Callable[..., Experiment],
) -> None:
    text = "dut: {preset: xdp}\ntraffic: {rate_pps: 1000, frame_bytes: '64,9018'}\n"
    with pytest.raises(PlanError, match=r"traffic\.frame_bytes: .*xdp .* 3524"):
        experiment(text)


def measuring(  # noqa: PLR0913 - keyword-only, each with a default
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    copied: int = 0,
    trace: Any = None,
    kernel: Iterable[str] = repeat("6.1"),
    departures: str = "",
    shares_cpu: bool = False,
) -> None:
    """Have runs find the captures of 100 packets; the device sends some of them twice.

    ``kernel`` is that of the node in one run after the other.
    """
    sent = [(10**9 + n * 100_000, n) for n in range(100)]
    left = [(at + 5_000, n) for at, n in sent] + [(at + 9_000, n) for at, n in sent[:copied]]
    files = {name: folder / name for name in ("ingress.pcap", "egress.pcap")}

    def measured(context: InlineRunContext) -> Measurement:
        write_pcap(files["ingress.pcap"], sent)
        write_pcap(files["egress.pcap"], sorted(left))
        tap = {"dropped": 0, "unstamped": 0, "stamps": "kernel"}
        capture = {"taps": {side: tap | {"file": f"{side}.pcap"} for side in ("ingress", "egress")}}
        traced = trace if context.run.traced else None
        clocks = TapClocks(context.at)
        return Measurement(GENERATED, capture, None, traced, shares_cpu, (), clocks)

    def call(*words: str) -> Any:
        of_port = "ethtool" in words[0] or len(words) > 3
        told = "" if of_port else f"kernel\t{next(kernels)}\n"
        return SimpleNamespace(stdout=told, stderr="")

    def of_generator(name: str) -> Path | None:
        if name != "departures.csv":
            return None
        log = folder / name
        log.write_text(f"kind,from_ns,to_ns\n{departures}", encoding="utf-8")
        return log

    kernels = iter(kernel)
    node = Played(files.get, call=call)
    at = played_testbed(Played(of_generator, call=call), node, Played(lambda _: None, call=call))
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["tailtrim.laboratory.experiment.running"], "measure", measured)
    monkeypatch.setattr(Nothing, "forwarding", lambda *_: nullcontext(at))


def test_a_run_on_a_node_that_was_changed_is_invalid(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path, kernel=["6.1", "6.12", "6.1"])
    text = "dut: {preset: bridge}\nfloor: false\nrepeat: 3\n"
    first, second, third = [outcome for _, outcome, _ in conducted(experiment(text))]
    assert first.invalid == third.invalid == ()
    (why,) = second.invalid
    for fact in ("environment changed", "lab: kernel was 6.1, is 6.12"):
        assert fact in why
    told = json.loads((tmp_path / "out" / "run-001" / "nodes.json").read_text())
    assert told["nodes"] == {"lab": {"kernel": "6.12"}}
    assert told["numbers"]["summary"]["clocks"]["ingress"] == "CLOCK_REALTIME"


def test_a_directory_is_locked_until_its_context_ends(
    experiment: Callable[..., Experiment],
) -> None:
    with (
        experiment("dut: {preset: bridge}\n") as made,
        pytest.raises(OutputError, match="another process is running it"),
    ):
        Experiment(made.path, made.plan, made.runs, resume=True)
    with Experiment(made.path, made.plan, made.runs, resume=True) as again:
        assert again.missing() == made.runs


class Heard(Listener):
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def progress(self, run: Run, what: str) -> None:
        self.events.append((run.folder, what))

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        self.events.append((run.folder, outcome.failed or "done"))


def test_a_listener_hears_what_each_run_does_and_its_outcome(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path)
    heard = Heard()
    conduct(experiment("dut: {preset: bridge}\nfloor: false\nrepeat: 2\n"), heard)
    assert heard.events == [
        (run, what) for run in ("run-000", "run-001") for what in ("setting up", "matching", "done")
    ]


def printed(experiment: Experiment) -> str:
    from rich.console import Console  # noqa: PLC0415

    console = Console(width=100, no_color=True)
    with console.capture() as captured:
        console.print(experiment_text.render(experiment.complete()))
    return captured.get()


def test_a_trace_of_interrupt_counters_alone_is_not_called_a_trace(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path, trace=COUNTERS)
    made = experiment("dut: {preset: bridge}\ntrace: both\nfloor: false\n")
    (_, plain, _), (_, counted, _) = conducted(made)
    assert (plain.label, plain.untraced) == ("bridge", None)
    assert counted.label == "bridge (interrupt counters only)"
    assert counted.untraced == "tracefs: none; perf: refused"
    text = printed(made)
    assert "bridge (interrupt counters only)" in text
    assert "traced" not in text
    assert "Tracing adds" not in text


def test_a_real_trace_is_called_one(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = {"trace": {"source": "perf"}, "sources_refused": ["tracefs: none"]}
    measuring(monkeypatch, tmp_path, trace=trace)
    made = experiment("dut: {preset: bridge}\ntrace: true\nfloor: false\n")
    ((_, outcome, _),) = conducted(made)
    assert (outcome.label, outcome.untraced) == ("bridge (traced)", None)
    assert "bridge (traced)" in printed(made)


def test_duplicates_by_the_device_are_in_the_table_where_there_are_any(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path, copied=7)
    made = experiment("dut: {preset: bridge}\n")
    conducted(made)
    head, *rows = printed(made).splitlines()
    assert head.split()[:4] == ["kpkt/s", "loss", "%", "copies"]
    assert next(row for row in rows if row.startswith("bridge")).split()[1:4] == ["10.0", "0", "7"]


def test_without_duplicates_there_is_no_column_and_the_floor_has_its_own_name(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path)
    made = experiment("dut: {preset: $dut}\nloop: {dut: [wire, bridge]}\n")
    conducted(made)
    text = printed(made)
    assert "copies" not in text
    names = [row.split("  ")[0].strip() for row in text.splitlines() if "10.0" in row]
    assert sorted(names) == ["bridge", "wire", "wire (floor)"]


#: The generator stood still while it sent the second packet, and the fourth was late.
DEPARTED = "stalled,1000090000,1000110000\nlate,1000290000,1000310000\n"


def test_packets_behind_a_stall_of_the_generator_are_set_aside_and_told(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path, departures=DEPARTED)
    made = experiment("dut: {preset: bridge}\nfloor: false\n")
    conducted(made)
    ((_, _, result),) = made.complete()
    ingress, late = result.summary.ingress, result.summary.departed_late
    assert (ingress.matched, ingress.stalled, ingress.packets) == (99, 1, 100)
    assert late is not None
    assert (late.samples, late.without_ns["0.5"]) == (1, 5_000)
    text = printed(made)
    assert "Departures" in text
    # Lateness (p99, maximum), share that was late, latency with and without these, set aside.
    assert next(
        row for row in text.splitlines() if row.startswith("bridge") and "30.0" in row
    ).split()[1:] == [units.NONE, "1.00", "30.0", "4.0", "p50", "5.00", "5.00", "1"]
    assert "1 time in the middle" in " ".join(text.split())
    assert (result.path / "departures.csv").read_text("utf-8").count("stalled") == 1


def test_stalls_that_are_the_devices_too_set_nothing_aside(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measuring(monkeypatch, tmp_path, departures=DEPARTED, shares_cpu=True)
    made = experiment("dut: {preset: bridge}\nfloor: false\n")
    conducted(made)
    ((_, _, result),) = made.complete()
    assert (result.summary.ingress.matched, result.summary.ingress.stalled) == (100, 0)
    assert "no packet is set" in " ".join(printed(made).split())
