"""Published results of pos become experiments: both layouts, all kinds of data, hostile folders."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from pos_folders import NODES, PosFolder, each
from swept_experiment import latencies
from typer.testing import CliRunner, Result

from tailtrim.analysis.slo import objectives, verdicts
from tailtrim.cli.application import app
from tailtrim.errors import OutputError, ResultsError, RunDirectoryError
from tailtrim.results.experiments import RecordedExperiment, recorded
from tailtrim_pos.results import import_pos

if TYPE_CHECKING:
    from pathlib import Path

LOOP = {"pkt_rate": [10_000, 20_000], "pkt_sz": [64, 1500]}


def tailtrim(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def of_rate(loop: dict[str, Any]) -> list[int | None]:
    return latencies(3_000 + loop.get("pkt_rate", 0) // 10, 3_000)


def imported(folder: PosFolder, out: Path, **options: Any) -> RecordedExperiment:
    import_pos(folder.path, out, skip_s=0, **options)
    return recorded(out)


@pytest.mark.parametrize("layout", [2020, 2026])
def test_captures_of_both_layouts_become_runs(tmp_path: Path, layout: int) -> None:
    folder = PosFolder(tmp_path / "2020-10-07_23-22-39_868017", LOOP, layout=layout)
    each(folder, of_rate)
    experiment = imported(folder, tmp_path / "out")
    assert experiment.name == "2020-10-07_23-22-39_868017"
    # The shorter key first, the last one fastest: not the order of the file.
    assert [run.loop for run in experiment.runs] == [
        {"pkt_sz": 64, "pkt_rate": 10_000},
        {"pkt_sz": 64, "pkt_rate": 20_000},
        {"pkt_sz": 1500, "pkt_rate": 10_000},
        {"pkt_sz": 1500, "pkt_rate": 20_000},
    ]
    assert experiment.runs[0].name == "pkt_sz=64, pkt_rate=10000"
    assert [directory.summary.samples for _, directory in experiment.complete] == [3_000] * 4
    medians = [one.summary.latency_ns.quantiles[0].value for _, one in experiment.complete]
    assert medians == [4_250, 5_250, 4_250, 5_250]
    record = json.loads((tmp_path / "out" / "experiment.json").read_text())
    assert record["imported"]["layout"] == layout
    assert sorted(record["imported"]["nodes"]) == sorted(NODES)


def test_other_commands_work_on_an_imported_experiment(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000, 20_000]})
    each(folder, of_rate)
    out = tmp_path / "out"
    done = tailtrim("import", "pos", folder.path, "--out", out, "--skip", "0s")
    assert done.exit_code == 0, done.output
    assert "pkt_rate=20000" in done.stdout
    report = tailtrim("report", out, "--out", tmp_path / "report", "--assert", "p90 < 50us")
    assert report.exit_code == 0, report.output
    assert (tmp_path / "report" / "figures" / "sweep-pkt_rate.csv").exists()
    compared = tailtrim("compare", out / "run-000", out / "run-001")
    assert (compared.exit_code, "worse" in compared.stdout) == (0, True)
    assert tailtrim("compare", out, out).exit_code == 0
    explained = tailtrim("explain", out)
    assert (explained.exit_code, "run-001 (pkt_rate=20000)" in explained.stdout) == (0, True)


def test_repetitions_are_not_a_loop_variable(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"repetition": [1, 2], "pkt_rate": [10_000]})
    each(folder, of_rate)
    experiment = imported(folder, tmp_path / "out")
    told = [(run.name, run.loop, run.repetition) for run in experiment.runs]
    assert told == [
        ("pkt_rate=10000", {"pkt_rate": 10_000}, 0),
        ("pkt_rate=10000 #2", {"pkt_rate": 10_000}, 1),
    ]
    other = imported(folder, tmp_path / "other", repetition="pkt_rate")
    assert [run.loop for run in other.runs] == [{"repetition": 1}, {"repetition": 2}]
    with pytest.raises(ValueError, match=r"'rate'.* pkt_rate"):
        imported(folder, tmp_path / "none", repetition="rate")


def test_captures_are_kept_on_request(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000]})
    each(folder, of_rate)
    imported(folder, tmp_path / "out", keep_captures=True)
    name = "latencies-post_run0.pcap"
    kept = tmp_path / "out" / "run-000" / name
    assert kept.read_bytes() == (folder.uploads(NODES[0]) / name).read_bytes()
    imported(folder, tmp_path / "without")
    assert not list((tmp_path / "without" / "run-000").glob("*.pcap"))


def test_counters_of_interrupts_are_kept_for_explain(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000]})
    each(folder, of_rate)
    counters = b"timestamp_us;LOC_Local_timer_interrupts_CPU2\n0;0\n1000000;250\n"
    folder.upload(0, "irqrecorder.csv", counters)
    folder.upload(0, "irqrecorder.csv", counters, node=NODES[1])
    folder.upload(0, "irq evil.csv", counters)
    imported(folder, tmp_path / "out")
    run = tmp_path / "out" / "run-000"
    kept = sorted(place.name for place in run.glob("irq*"))
    assert kept == ["irqrecorder-2.csv", "irqrecorder.csv"]
    explained = tailtrim("explain", run, "--interrupts", run / "irqrecorder.csv", "--json")
    assert explained.exit_code == 0, explained.output
    assert json.loads(explained.stdout)["interrupts"][0]["frequency_hz"] == 250


MOONGEN = b"1024,3\n1036.8,6\n2048,1\n"


def test_a_histogram_of_moongen_becomes_a_run_without_intervals(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000, 20_000]})
    for number in range(2):
        folder.upload(number, "histogram.csv", MOONGEN)
    experiment = imported(folder, tmp_path / "out")
    (_, run), _ = experiment.complete
    latency = run.summary.latency_ns
    assert (run.summary.samples, latency.min, latency.max) == (10, 1_024, 2_048)
    assert latency.mean is not None
    assert (latency.mean.value, latency.mean.low) == (1_134, None)
    values = {one.p: (one.value, one.low, one.high, one.supported) for one in latency.quantiles}
    assert values["0.5"] == (1_037, None, None, False)
    assert values["0.99"] == (2_048, None, None, False)
    assert run.table("histogram").to_pydict() == {
        "latency_ns": [1_024, 1_037, 2_048],
        "count": [3, 6, 1],
    }
    curve = dict(
        zip(*run.table("quantile").select(["p", "value_ns"]).to_pydict().values(), strict=True)
    )
    assert (curve["0.3"], curve["0.4"], curve["0.9"]) == (1_024, 1_037, 1_037)
    assert run.summary.loss is None


def test_what_a_histogram_cannot_say_is_told(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000, 20_000]})
    for number in range(2):
        folder.upload(number, "histogram.csv", MOONGEN)
    out = tmp_path / "out"
    (_, run), _ = imported(folder, out).complete
    asked = objectives("p90 < 50us, adjusted p90 < 50us, mean < 5us, max < 5us, loss < 1%")
    found = verdicts(run.summary, asked)
    undecided = "not decided"
    decisions = [undecided, undecided, undecided, "passed", undecided]
    assert [str(one.decision) for one in found] == decisions
    for verdict, reason in zip(
        found, ("order", "outcome", "order", "largest", "outcome"), strict=True
    ):
        assert reason in verdict.why
    with pytest.raises(RunDirectoryError, match=r"sample\.parquet: .* missing: .* hist"):
        run.table("sample")
    for command in ("compare", out / "run-000", out / "run-001"), ("explain", out):
        done = tailtrim(*command)
        assert done.exit_code == 2
        assert "order of the packets" in done.stderr
    report = tailtrim("report", out, "--out", tmp_path / "report")
    assert report.exit_code == 0, report.output
    page = (tmp_path / "report" / "report.html").read_text()
    assert "imported from a histogram" in page


def test_csv_files_of_the_papers_scripts_become_runs(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000]})
    place = folder.uploads(NODES[1]) / "data"
    place.mkdir()
    name = "latencies-pre.pcap_run0.zst.bucket_size100.trim_ms0"
    (place / f"{name}.hist.csv").write_text("latency_bucket,count\n3100,98\n3300,1\n12100,1\n")
    percentiles = "percentile,value,onefraconeminuspercentile\n0,3101,1\n0.5,3137,2\n"
    percentiles += "0.9730,3140,37\n0.99,3362,100\n0.999,12162,1000\n"
    (place / f"{name}.percentiles.csv").write_text(percentiles)
    ((_, run),) = imported(folder, tmp_path / "out").complete
    latency = run.summary.latency_ns
    values = {one.p: one.value for one in latency.quantiles}
    # Percentiles are exact where buckets are not.
    assert (values["0.5"], values["0.9"], values["0.999"]) == (3_137, None, 12_162)
    assert (run.summary.samples, latency.min, latency.max) == (100, 3_100, 12_100)
    assert [one.code for one in run.summary.warnings] == ["no_order", "buckets"]
    assert "buckets of 100 ns" in run.summary.warnings[1].text
    assert run.table("quantile")["p"].to_pylist() == ["0.5", "0.973", "0.99", "0.999"]


def test_percentiles_alone_become_a_run(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000]})
    row = "perc_50,perc_90,perc_99,perc_999,perc_9999,perc_99999,perc_999999,maximum\n"
    row += "3137,3174,3362,7712,12162,13412,13550,13550\n"
    folder.upload(0, "latencies-pre.pcap.percentiles-filtered.csv", row.encode())
    folder.upload(0, "latencies-pre.pcap.percentiles.csv", row.replace("7712", "9").encode())
    out = tmp_path / "out"
    done = tailtrim("import", "pos", folder.path, "--out", out)
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stdout.splitlines() if "7.7" in line)
    assert [number in line for number in ("3.1", "3.4", "12.2", "13.6")] == [True] * 4
    ((_, run),) = recorded(out).complete
    assert (run.summary.samples, run.summary.latency_ns.max) == (0, 13_550)
    report = tailtrim("report", out, "--out", tmp_path / "report")
    assert report.exit_code == 0, report.output


def test_captures_come_before_histograms(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"pkt_rate": [10_000]})
    each(folder, of_rate)
    folder.upload(0, "histogram.csv", MOONGEN)
    ((_, run),) = imported(folder, tmp_path / "out").complete
    assert run.summary.samples == 3_000


def test_runs_that_went_wrong_are_in_the_record_with_the_reason(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"n": list(range(7))})
    for number in (0, 2, 3, 6):
        folder.capture(number, of_rate({}))
    folder.command(NODES[0], 2, ".status", "error")
    folder.command(NODES[1], 3, ".loop", '{"n": 99}')
    folder.upload(4, "histogram.csv", b"1024,three\n")
    for place in folder.path.glob("*/*_run1.*"):
        place.unlink()
    (folder.uploads(NODES[0]) / "latencies-post_run6.pcap").write_bytes(b"\0" * 100)
    experiment = imported(folder, tmp_path / "out")
    problems = {run.outcome.run: run.problem for run in experiment.runs}
    assert problems["run-000"] is None
    for number, facts in {
        1: ("failed: ", "no such run"),
        2: ("invalid: ", NODES[0], "'error'", "'finished'"),
        3: ("invalid: ", "other loop variables"),
        4: ("line 1: ", "2^53", "'three'"),
        5: ("skipped: ", "histogram"),
        6: ("failed: ", "latencies-post_run6.pcap"),
    }.items():
        problem = str(problems[f"run-{number:03}"])
        assert all(fact in problem for fact in facts), problem


def test_loop_variables_are_those_of_their_number(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", LOOP)
    each(folder, of_rate)
    for node in NODES:
        folder.command(node, 1, ".loop", json.dumps(folder.loops[2]))
    problems = [run.problem for run in imported(folder, tmp_path / "out").runs]
    assert problems[0] is None
    assert "its number" in str(problems[1])


def test_nested_loop_variables_have_names_with_dots(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"vm": [{"cpus": 2, "nics": ["a", "b"]}]})
    each(folder, of_rate)
    (run,) = imported(folder, tmp_path / "out").runs
    assert run.loop == {"vm.cpus": 2, "vm.nics": '["a", "b"]'}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("other-pre.pcap", "several pairs of captures"),
        ("other-post.pcap", None),
    ],
)
def test_of_several_pairs_of_captures_none_is_taken(
    tmp_path: Path, name: str, told: str | None
) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1, 2]})
    each(folder, of_rate)
    folder.upload(0, name, b"")
    if told:
        folder.upload(0, "other-post.pcap", b"")
    problem = imported(folder, tmp_path / "out").runs[0].problem
    assert (told or "") in str(problem)
    assert (problem is None) == (told is None)


def test_a_capture_without_the_one_behind_the_device_is_told(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    each(folder, of_rate)
    (folder.uploads(NODES[0]) / "latencies-post_run0.pcap").unlink()
    with pytest.raises(ResultsError, match=r"latencies-pre\.pcap: .* behind the device"):
        imported(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_symbolic_links_and_special_files_are_left_out_and_counted(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "histogram_run0.csv").write_bytes(MOONGEN)
    folder = PosFolder(tmp_path / "results", {"n": [1, 2]})
    folder.upload(1, "histogram.csv", MOONGEN)
    uploads = folder.uploads(NODES[0])
    (uploads / "histogram_run0.csv").symlink_to(secret / "histogram_run0.csv")
    (uploads / "logs_run0").symlink_to(secret)
    (folder.path / "other").symlink_to(secret)
    os.mkfifo(uploads / "percentiles_run0.csv")
    done = tailtrim("import", "pos", folder.path, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "4 symbolic links" in done.stderr
    assert recorded(tmp_path / "out").runs[0].problem is not None
    assert recorded(tmp_path / "out").runs[1].problem is None


@pytest.mark.parametrize(
    ("suffix", "content", "told"),
    [
        (".loop", b"not json", "not JSON"),
        (".loop", b"[1]", "expected a JSON object"),
        (".loop", b"[" * 500_000, "not JSON"),
        (".loop", b'{"n": "' + b"x" * (1 << 20) + b'"}', "longer than 1,048,576 bytes"),
        (".loop", b"\xff", "not UTF-8"),
        (".status", b"x" * 2_000, "longer than 1,024 bytes"),
    ],
)
def test_damaged_files_of_pos_are_one_error(
    tmp_path: Path, suffix: str, content: bytes, told: str
) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    folder.upload(0, "histogram.csv", MOONGEN)
    folder.command(NODES[0], 0, suffix, "").write_bytes(content)
    done = tailtrim("import", "pos", folder.path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no latency"),
        (b"latency,packets\n1,2\n", "expected the columns latency and count"),
        (b"1,2\n1,2,3\n", "line 2: expected latency,count"),
        (b"1,2\n-5,2\n", "line 2: expected a number from 0"),
        (b"1,nan\n", "line 1: expected a number from 0"),
        (b"1,1e999999999\n", "line 1: expected a number from 0"),
        (b"1," + b"9" * 10_000 + b"\n", "line 1: expected a number from 0"),
    ],
)
def test_damaged_histograms_are_told_with_their_line(
    tmp_path: Path, content: bytes, told: str
) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1, 2]})
    folder.upload(0, "histogram.csv", content)
    folder.upload(1, "histogram.csv", MOONGEN)
    assert told in str(imported(folder, tmp_path / "out").runs[0].problem)


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        done = tailtrim("import", "pos", place, "--out", tmp_path / "out")
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    folder.upload(0, "throughput.log", b"1 Mpps")
    with pytest.raises(ResultsError, match=r"no run has latencies or rates: .* no rates of Moon"):
        imported(folder, tmp_path / "out")
    done = tailtrim("import", "pos", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "RESULTS" in done.stderr


def test_nothing_is_written_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    folder.upload(0, "histogram.csv", MOONGEN)
    with pytest.raises(OutputError, match="is not empty"):
        imported(folder, folder.path)


def test_options_of_pos_are_of_pos_alone(tmp_path: Path) -> None:
    done = tailtrim("import", tmp_path / "x.json", "--out", tmp_path, "--repetition", "n")
    assert (done.exit_code, "No such option: --repetition" in done.stderr) == (2, True)
