"""Causes of late packets: in published captures, made-up traces, and simulated interrupts."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from made_up import HEADER, traced
from typer.testing import CliRunner, Result

import tailtrim
from tailtrim import _native, units
from tailtrim.analysis.explain import Interrupt, explain, read_interrupts, simulate
from tailtrim.analysis.explain.traced import _SHIFTS_NS
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Analysed = Callable[[str], Path]


SECOND = 10**9


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def analysed(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Analysed:
    def analyse(mode: str) -> Path:
        folder = published / "low-latency" / "dpdk-l2fwd" / mode
        out = tmp_path_factory.mktemp("published") / mode
        ingress = folder / "latencies-pre-rate10000-dpdk-l2fwd.pcap.zst"
        egress = folder / "latencies-post-rate10000-dpdk-l2fwd.pcap.zst"
        tailtrim.analyze(ingress, egress, out=out)
        return out

    return analyse


def counters(published: Path, mode: str) -> Path:
    folder = published / "low-latency" / "dpdk-l2fwd" / mode
    return folder / "irq-rate10000-dpdk-l2fwd.csv"


def level(cause: dict[str, Any]) -> tuple[int, float, int]:
    return round(cause["frequency_hz"]), cause["height_ns"] // 100 / 10, cause["every"]


@pytest.mark.published
def test_the_paper_found_a_tick_and_something_every_third_time(
    analysed: Analysed, published: Path
) -> None:
    directory = analysed("hw")
    result = run("explain", directory, "--interrupts", counters(published, "hw"), "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    tick, longer = found["periodic"]
    # Section V-C: 250 Hz, 10.9 and 13.6 µs read off a figure; 8.2 less 5.5 µs of work between them.
    assert tick["frequency_hz"] == pytest.approx(250, rel=1e-3)
    assert longer["frequency_hz"] == pytest.approx(250 / 3, rel=1e-3)
    assert tick["height_ns"] == pytest.approx(10_900, rel=0.03)
    assert longer["height_ns"] == pytest.approx(13_600, rel=0.01)
    assert longer["height_ns"] - tick["height_ns"] == pytest.approx(8_200 - 5_500, abs=300)
    assert (tick["every"], longer["every"]) == (1, 3)
    assert (tick["vectors"], longer["vectors"]) == (["LOC"], ["IWI"])
    assert tick["events"] + longer["events"] > 490
    assert found["unexplained"] < 10
    # Figure 4: the interplay of the two clocks.
    assert tick["undersampled"]
    assert tick["beat_hz"] == pytest.approx(8.32, abs=0.05)
    assert found["basis"] == "statistics"
    assert "Poisson" in found["warnings"][0]


@pytest.mark.published
def test_a_virtual_machine_has_the_ticks_of_two_systems(
    analysed: Analysed, published: Path
) -> None:
    directory = analysed("vm")
    host = counters(published, "vm").with_name("irqvmhost-rate10000-dpdk-l2fwd.csv")
    found = explain(directory, interrupts=[counters(published, "vm"), host]).as_json()
    levels = sorted(level(cause) for cause in found["periodic"])
    assert levels == [(83, 19.1, 3), (250, 16.3, 1), (250, 16.5, 1)]
    assert len({cause["source"] for cause in found["periodic"]}) == 2
    assert all(
        cause["frequency_hz"] * cause["every"] == pytest.approx(250, rel=1e-3)
        for cause in found["periodic"]
    )
    assert found["unexplained"] < 20
    (apart,) = found["phase_differences"]
    first, second = (found["periodic"][place] for place in apart["causes"])
    assert first["source"] != second["source"]
    assert first["width"]["high_ns"] < apart["apart_ns"] < 4e6 - second["width"]["high_ns"]
    told = run("explain", directory).stdout
    assert "Two clocks have 250.0 Hz: the second one ends" in told


@pytest.mark.published
def test_a_tick_is_found_among_many_late_packets_and_told_once(
    published: Path, tmp_path: Path
) -> None:
    folder = published / "low-latency" / "snort-fwd" / "hw"
    tailtrim.analyze(
        folder / "latencies-pre-rate10000-snort-fwd.pcap.zst",
        folder / "latencies-post-rate10000-snort-fwd.pcap.zst",
        out=tmp_path / "run",
    )
    found = explain(tmp_path / "run")
    rates = [cause.frequency_hz for cause in found.periodic if cause.every == 1]
    (tick,) = [cause for cause in found.periodic if abs(cause.frequency_hz - 249.988) < 0.01]
    # Folded at this frequency, packets in the window before the end wait 5.1 µs longer on average.
    assert tick.excess.value_ns == pytest.approx(5_100, rel=0.35)
    assert all(
        abs(one / other - 1) > 1e-4
        for number, one in enumerate(rates)
        for other in rates[number + 1 :]
    )
    # Folded in twelve parts of the run, the other one's phase moves from 196 to 248 and to 112 µs.
    (other,) = [cause for cause in found.periodic if cause is not tick]
    assert other.wanders
    assert abs(other.frequency_hz - 945.25) < other.error_hz
    assert len(found.warnings) == 1
    # The first third told 945.23 and 945.24 Hz.
    third = tailtrim.RunDirectory(tmp_path / "run").table("sample").slice(0, 100_000)
    causes = json.loads(_native.periodic_causes(third))["causes"]
    assert sorted(round(cause["frequency_hz"]) for cause in causes) == [250, 945]


@pytest.mark.long
@pytest.mark.published
@pytest.mark.parametrize("batch", ["4", "32"])
def test_ticks_are_found_in_bursts_of_four(published: Path, tmp_path: Path, batch: str) -> None:
    folder = published / "low-latency" / f"burst-{batch}batch" / "vm"
    tailtrim.analyze(
        folder / "04-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
        folder / "04-burst-latencies-post-rate10000-snort-filter.pcap.zst",
        out=tmp_path / "run",
    )
    found = explain(tmp_path / "run")
    rates = sorted(cause.frequency_hz for cause in found.periodic if cause.every == 1)
    # Folding shows the ticks of the host and of the guest, at two phases, and 15 events each 16 ms.
    assert rates == pytest.approx([249.988, 249.988, 937.454], abs=0.01)
    assert not found.batches


@pytest.mark.published
def test_the_explanation_is_told_in_words(analysed: Analysed, published: Path) -> None:
    directory = analysed("hw")
    result = run("explain", directory, "--interrupts", counters(published, "hw"))
    assert re.search(r"250\.0 Hz \(LOC .*10\.6 µs", result.stdout)
    assert re.search(r"third .*83\.3 Hz \(IWI .*13\.6 µs", result.stdout)
    assert "statistical" in result.stdout


def test_the_published_counters_are_rates(published: Path) -> None:
    rates = {(r.vector, r.cpu): r for r in read_interrupts(counters(published, "hw"))}
    assert rates["LOC", 1].frequency_hz == pytest.approx(250, rel=1e-2)
    assert rates["IWI", 1].frequency_hz == pytest.approx(250 / 3, rel=1e-2)
    assert rates["LOC", 1].what == "Local timer interrupts"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;b\n1;2\n", "expected columns"),
        ("LOC_CPU0;timestamp_us\n1;5\n2;5\n", "not in increasing order"),
        ("LOC_CPU0;timestamp_us\n1;x\n2;5\n", "invalid time"),
        ("", "expected columns"),
    ],
)
def test_counters_that_are_none_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "irq.csv").write_text(text)
    with pytest.raises(RunDirectoryError, match=message):
        read_interrupts(tmp_path / "irq.csv")


def test_a_capture_without_causes_says_so(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    tailtrim.analyze(*testpmd, out=tmp_path / "run")
    result = run("explain", tmp_path / "run", "--json")
    assert result.exit_code == 0
    assert isinstance(json.loads(result.stdout)["periodic"], list)
    assert run("explain", tmp_path).exit_code == 2
    # Without a trace, these were accepted whatever they said.
    assert run("explain", tmp_path / "run", "--late-from", "abc").exit_code == 2
    assert run("explain", tmp_path / "run", "--cpu", "1").exit_code == 2


def test_rows_add_up_to_all_late_packets(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    tailtrim.analyze(*testpmd, out=tmp_path / "run")
    found = json.loads(run("explain", tmp_path / "run", "--json").stdout)
    rows = found["rows"]
    for of_rows, whole in (("packets", "late_packets"), ("stalls",) * 2, ("excess_ns",) * 2):
        assert sum(row[of_rows] for row in rows) == found[whole]
    assert found["unexplained"] == rows[-1]["stalls"]
    late_share = sum(cause["late_share"] for cause in found["periodic"])
    of_causes = [row["packets"] for row in rows if row["kind"] in {"cause", "behind"}]
    assert late_share == pytest.approx(sum(of_causes) / found["late_packets"])
    samples = tailtrim.RunDirectory(tmp_path / "run").table("sample")
    latencies = np.subtract(*(samples[name].to_numpy() for name in ("egress_ns", "ingress_ns")))
    late = latencies[latencies > found["late_above_ns"]] - found["median_ns"]
    assert (found["late_packets"], found["excess_ns"]) == (late.size, late.sum())
    # The same on the terminal, where rounded numbers and shares add up, too.
    told = run("explain", tmp_path / "run").stdout
    table = told.partition("\ncause ")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [re.split(r" {2,}", line.replace(",", "").replace(" %", "")) for line in table]
    *parts, whole_row = [[float(cell) for cell in row[1:]] for row in cells]
    assert [sum(column) for column in zip(*parts, strict=True)] == pytest.approx(whole_row)
    assert whole_row[0] == found["late_packets"]
    assert cells[-1][0] == "all late packets"
    assert [row[0] for row in cells[:-1]] == [
        row["name"] for row in rows if row["packets"] or row["kind"] in {"cause", "not_periodic"}
    ]


def test_a_trace_names_the_cause_of_late_packets(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    traced(tmp_path / "run", testpmd, HEADER)
    found = explain(tmp_path / "run", late_from="0.99")
    assert found.basis == "trace"
    assert found.host is not None
    verdict = found.host.verdict
    shootdown, tick = verdict["causes"]
    assert shootdown["signature"]["name"] == "TLB shootdown"
    assert shootdown["sender"] == [{"pid": 812, "comm": "stress", "function": "munmap"}, 100]
    assert tick["signature"]["name"] == "tick"
    assert "ISO-003" in tick["signature"]["checks"]
    assert verdict["explained_ppm"] > 950_000
    assert verdict["null_ppm"] < 300_000
    shares = sum(cause["excess_ns"] for cause in verdict["causes"])
    assert shares + verdict["queue_ns"] + verdict["unknown_ns"] == verdict["excess_ns"]
    result = run("explain", tmp_path / "run", "--late-from", "0.99")
    assert re.search(r"TLB shootdown .*stress \(812\)", result.stdout)
    told = dict(zip(found.host.quantiles, shootdown["without_ns"], strict=True))
    assert told["0.5"] < told["0.99"] <= told["0.999"] <= told["0.9999"]
    (line,) = [line for line in result.stdout.splitlines() if line.endswith("MEM-013")]
    assert f" {units.time(told['0.999'])} " in line
    assert "lacks the events csd" in result.stdout


def test_a_trace_of_several_cpus_needs_one(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    traced(tmp_path / "run", testpmd, {**HEADER, "cpus": "0-1"})
    assert "which of them" in run("explain", tmp_path / "run").stderr
    assert run("explain", tmp_path / "run", "--cpu", "1").exit_code == 0
    # Most packets leave while this thread has the CPU: it serves them.
    thread = {"cpu": 1, "start_ns": 0, "end_ns": 2**40, "kind": "thread", "name": "dut"}
    traced(tmp_path / "run", testpmd, {**HEADER, "cpus": "0-1"}, thread)
    host = explain(tmp_path / "run").host
    assert host is not None
    assert host.cpu == 1
    traced(tmp_path / "run", testpmd, {**HEADER, "schema": "else"})
    assert "the schema is 'else'" in run("explain", tmp_path / "run").stderr


def test_a_trace_that_was_made_apart_has_to_be_of_the_time_of_the_run(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    place, apart = tmp_path / "run", tmp_path / "apart.jsonl.zst"

    def explained(**times_ns: int) -> Any:
        traced(place, testpmd, {**HEADER, **times_ns})
        (place / "events.jsonl.zst").rename(apart)
        return run("explain", place, "--trace", apart)

    late = {"armed_ns": 67 * 86_400 * SECOND, "disarmed_ns": 68 * 86_400 * SECOND}
    refused = explained(**late)
    # Copied into the run, it was believed: 67 days apart.
    assert refused.exit_code == 2
    assert "1970-03-09 00:00:00.000000 UTC" in refused.stderr
    assert "the run 1970-01-01 00:00:00" in refused.stderr
    shutil.copyfile(apart, place / "events.jsonl.zst")
    assert run("explain", place).exit_code == 2
    half = explained(armed_ns=0, disarmed_ns=40_000_000)
    assert half.exit_code == 0, half.stderr
    assert re.search(r"TLB shootdown .*stress \(812\)", half.stdout)
    assert re.search(r"The trace covers 50\.\d % of the run's packets: only these", half.stdout)
    assert "covers" not in explained(armed_ns=0, disarmed_ns=SECOND).stdout


def test_counters_of_interrupts_have_to_be_of_the_time_of_the_run(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    place, counted = tmp_path / "run", tmp_path / "events.interrupts.csv"
    traced(place, testpmd, HEADER)

    def explained(begin_ns: int) -> Any:
        rows = [f"{at // 1_000};{begin_ns + at};{at // 4_000_000}" for at in (0, SECOND)]
        header = "timestamp_us;realtime_ns;LOC_Local_timer_interrupts_CPU1"
        counted.write_text("\n".join([header, *rows]))
        return run("explain", place, "--interrupts", counted)

    refused = explained(67 * 86_400 * SECOND)
    assert refused.exit_code == 2
    assert "is not of the time of the run: it covers 1970-03-09" in refused.stderr
    assert explained(0).exit_code == 0


def test_a_trace_without_events_is_no_evidence(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    traced(tmp_path / "run", testpmd, {**HEADER, "source": "counters"})
    found = explain(tmp_path / "run")
    assert found.basis == "statistics"
    asked = run("explain", tmp_path / "run", "--trace", tmp_path / "run" / "events.jsonl.zst")
    assert "has no events" in asked.stderr


TICK = Interrupt("249.9878", (7_500, 7_500, 10_400))


def test_figure_4_is_simulated() -> None:
    seen = simulate(rate_pps="10007.84", interrupts=[TICK], latency_ns=3_137)
    assert max(seen.latencies_ns) == pytest.approx(13_550, rel=0.01)
    assert seen.sampling[0]["beat_hz"] == pytest.approx(8.32, abs=0.05)
    # The beat: delayed packets come in groups, 8.3 a second.
    groups = np.diff(np.array(seen.sent_ns)) > 60_000_000
    assert groups.sum() / 30 == pytest.approx(8.32, rel=0.05)


def test_the_schedule_decides_what_is_seen() -> None:
    standing = simulate(rate_pps=10_000, interrupts=[Interrupt(250, (7_500,), 50_000)])
    assert standing.delayed == 0
    assert standing.sampling[0]["aliased"]
    poisson = simulate(
        rate_pps=10_000, interrupts=[Interrupt(250, (7_500,), 50_000)], schedule="poisson"
    )
    assert poisson.delayed / poisson.packets == pytest.approx(250 * 7.5e-6, rel=0.15)


@pytest.mark.parametrize(
    ("frequency", "stall_ns", "changed"),
    [
        ("250", 7_500, {"rate_pps": "0"}),
        ("250", 7_500, {"rate_pps": "1e300"}),
        ("250", 7_500, {"drift_ppm": "-1000000"}),
        ("250", 7_500, {"schedule": "often"}),
        ("x", 7_500, {}),
        ("250", 5_000_000, {}),
    ],
)
def test_what_makes_no_sense_is_refused(
    frequency: str, stall_ns: int, changed: dict[str, Any]
) -> None:
    asked = {"rate_pps": "10000"} | changed
    with pytest.raises(ValueError, match=r"expected|longer than its period"):
        simulate(interrupts=[Interrupt(frequency, (stall_ns,))], **asked)


@pytest.mark.parametrize("tick_hz", [100, 250, 300, 1000])
def test_the_trace_is_never_shifted_by_near_a_multiple_of_a_tick(tick_hz: int) -> None:
    for shift_ns in _SHIFTS_NS:
        periods = shift_ns * tick_hz / 1e9
        assert abs(periods - round(periods)) >= 0.1
