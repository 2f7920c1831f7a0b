"""The command line as a user meets it: real processes, their output and exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

BIN = Path(sys.executable).parent


def tailtrim(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "tailtrim", *arguments],
        check=False,
        text=True,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
    )


def test_analyze_prints_a_table(testpmd: tuple[Path, Path]) -> None:
    result = tailtrim("analyze", *testpmd, "--skip", "1s")
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "40,000 = 30,717 matched + 0 lost + 9,283 trimmed" in result.stdout
    for fact in ("not supported", "30,717 samples", "1,000,000 are needed"):
        assert fact in result.stdout


def test_json_has_the_promised_form(testpmd: tuple[Path, Path]) -> None:
    result = tailtrim("analyze", *testpmd, "--json", "--skip", "1s", "--quantile", "99.95%")
    summary = json.loads(result.stdout)
    assert summary["schema"] == "tailtrim.summary/1"
    assert summary["samples"] == 30_717
    assert summary["trim_ns"] == 1_000_000_000
    for side in ("ingress", "egress"):
        counts = dict(summary[side])
        assert counts.pop("packets") == sum(counts.values())
    quantiles = summary["latency_ns"]["quantiles"]
    assert "0.9995" in [quantile["p"] for quantile in quantiles]
    assert {"p", "value", "low", "high", "supported"} <= set(quantiles[0])
    assert [q["p"] for q in summary["delivery_adjusted_ns"]] == [q["p"] for q in quantiles]
    # A few changes of level are all that these captures hold.
    assert not any(quantile["supported"] for quantile in quantiles)
    assert all(quantile["episodes"] < 10 for quantile in quantiles)


def test_agent_and_package_print_the_same_bytes(testpmd: tuple[Path, Path]) -> None:
    agent = subprocess.run([BIN / "tailtrim-agent", "analyze", *testpmd], capture_output=True)  # noqa: PLW1510
    assert agent.returncode == 0
    assert agent.stdout.decode() == tailtrim("analyze", *testpmd, "--json").stdout


def test_the_agent_is_static() -> None:
    # A dynamically linked binary names its interpreter; a static one has none.
    assert b"/ld-linux" not in (BIN / "tailtrim-agent").read_bytes()
    assert b"/ld-musl" not in (BIN / "tailtrim-agent").read_bytes()


def test_standard_input(testpmd: tuple[Path, Path]) -> None:
    ingress, egress = testpmd
    with ingress.open("rb") as file:
        result = subprocess.run(  # noqa: PLW1510
            [BIN / "tailtrim", "analyze", "-", egress, "--json"], stdin=file, capture_output=True
        )
    assert json.loads(result.stdout)["samples"] == 40_000


@pytest.mark.parametrize("program", ["tailtrim", "tailtrim-agent"])
def test_swapped_captures_are_an_error(program: str, testpmd: tuple[Path, Path]) -> None:
    command: list[str | Path] = [BIN / program, "analyze", *reversed(testpmd)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    told = " ".join(result.stderr.split())
    for fact in (
        "median latency \N{MINUS SIGN}",
        "hint: ",
        "ingress capture first",
        "--allow-negative",
    ):
        assert fact in told
    allowed = subprocess.run([*command, "--allow-negative"], capture_output=True, check=False)
    assert allowed.returncode == 0


def test_one_capture_twice_is_an_error(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    ingress, _ = testpmd
    result = tailtrim("analyze", ingress, ingress, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert "copies of one capture" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_behind_a_dead_device_everything_is_lost(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    ingress, egress = testpmd
    (tmp_path / "dead.pcap").write_bytes(_pcap_header(egress))
    result = tailtrim("analyze", ingress, tmp_path / "dead.pcap")
    assert result.returncode == 1
    told = " ".join(result.stdout.split())
    for fact in ("40,000 of 40,000 packets (100.0 %)", "not delivered", "egress capture has no"):
        assert fact in told


def _pcap_header(capture: Path) -> bytes:
    with pa.input_stream(str(capture), compression="zstd") as packets:
        return bytes(packets.read(24))


def test_an_objective_decides_the_exit_code(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    report = tmp_path / "slo.xml"
    for limit, code in (("1s", 0), ("1ns", 1)):
        asserted = ("--assert", f"max < {limit}", "--junit", report)
        result = tailtrim("analyze", *testpmd, *asserted)
        assert result.returncode == code
        assert ("failed: max < 1ns" in result.stderr) == (code == 1)
        assert report.read_text().count("<failure") == code
    undecided = tailtrim("analyze", *testpmd, "--assert", "p99.9999 < 1s")
    assert (undecided.returncode, undecided.stderr.split(":")[0]) == (5, "not decided")
    wrong = tailtrim("analyze", *testpmd, "--assert", "p99 > 1s")
    assert wrong.returncode == 2
    assert "'p99 > 1s' is not" in wrong.stderr


@pytest.mark.parametrize("command", ["analyze", "compare", "report", "ping"])
def test_promises_are_listed_without_captures(command: str) -> None:
    result = tailtrim(command, "--assert", "list")
    assert (result.returncode, result.stderr) == (0, "")
    assert "urllc-1ms" in result.stdout


def test_percentiles_are_read_as_people_write_them(testpmd: tuple[Path, Path]) -> None:
    for text in ("99.95", "p99.95", "99.95%", "0.9995"):
        result = tailtrim("analyze", *testpmd, "--json", "--quantile", text)
        quantiles = json.loads(result.stdout)["latency_ns"]["quantiles"]
        assert "0.9995" in [quantile["p"] for quantile in quantiles]


@pytest.mark.parametrize(
    "words", [("--lost",), ("--assert", "max < 1s", "--junit")], ids=lambda words: words[-1]
)
def test_no_result_takes_the_place_of_a_capture(
    testpmd: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...]
) -> None:
    capture = tmp_path / "ingress.pcap.zst"
    shutil.copy(testpmd[0], capture)
    result = tailtrim("analyze", capture, testpmd[1], *words, capture)
    assert (result.returncode, result.stdout) == (2, "")
    assert "ingress.pcap.zst: is a capture, or compressed, so it is not replaced" in result.stderr
    assert capture.read_bytes() == testpmd[0].read_bytes()


def test_nothing_matched_is_a_negative_answer(testpmd: tuple[Path, Path]) -> None:
    router = Path(__file__).parents[1] / "data" / "router"
    result = tailtrim("analyze", testpmd[0], router / "egress.pcap.zst")
    assert result.returncode == 1
    assert "do not overlap" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.pcap", "missing.pcap"], "missing.pcap: .*No such file"),
        (["text", "text"], "text: byte 0: text, .*pcap.*tcpdump -w"),
        (["empty", "empty"], r"empty: .*is empty, .*\(pcap, pcapng, ERF or mscap\)"),
        (["cut", "cut"], "cut: byte 24: .*ends 4 bytes .*record header"),
        (["text", "text", "--skip", "soon"], ".*skip 'soon', .*5s"),
        (["text", "text", "--quantile", "2"], ".*`2` .*probability: .*more than 0"),
        (["text", "text", "--signature", "x"], 'signature "x": no colon .*OFFSET'),
    ],
)
def test_bad_input_gets_one_clear_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    header = bytes.fromhex("4d3cb2a1 02000400 00000000 00000000 00000400 01000000")
    (tmp_path / "text").write_text("hello, this is no capture")
    (tmp_path / "empty").touch()
    (tmp_path / "cut").write_bytes(header + bytes(4))
    result = tailtrim("analyze", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    first, *rest = result.stderr.splitlines()
    assert re.match(f"error: {message}", first)
    assert all(line.startswith("hint: ") for line in rest)


def test_the_former_name_of_skip_works_with_a_note(testpmd: tuple[Path, Path]) -> None:
    ingress, egress = map(str, testpmd)
    former = tailtrim("analyze", ingress, egress, "--trim", "100ms", "--json")
    skipped = tailtrim("analyze", ingress, egress, "--skip", "100ms", "--json")
    assert former.stderr == "note: --trim is called --skip now\n"
    assert (former.stdout, skipped.stderr) == (skipped.stdout, "")


def test_salvage_uses_what_precedes_damage(tmp_path: Path, testpmd: tuple[Path, Path]) -> None:
    cut = tmp_path / "cut.pcap.zst"
    cut.write_bytes(testpmd[0].read_bytes()[:200_000])
    refused = tailtrim("analyze", cut, testpmd[1])
    assert refused.returncode == 2
    assert "hint: use --salvage" in refused.stderr
    salvaged = json.loads(tailtrim("analyze", cut, testpmd[1], "--salvage", "--json").stdout)
    assert 0 < salvaged["ingress"]["packets"] < 40_000
    assert next(warning["code"] for warning in salvaged["warnings"]) == "damaged"


def test_out_report_and_convert(tmp_path: Path, testpmd: tuple[Path, Path]) -> None:
    run = tmp_path / "run"
    assert tailtrim("analyze", *testpmd, "--out", run).returncode == 0
    page = tailtrim("report", run)
    assert page.returncode == 0
    assert (run / "report" / "report.html").is_file()
    for form in ("hgrm", "hlog", "csv"):
        converted = tailtrim("convert", run, "--format", form, "--out", tmp_path / form)
        assert converted.returncode == 0
        assert converted.stdout.splitlines()
        assert all(Path(line).is_file() for line in converted.stdout.splitlines())
    no_ping = tailtrim("convert", run, "--format", "hpct")
    assert no_ping.returncode == 2
    assert no_ping.stderr.splitlines()[-1].startswith("hint: tailtrim ping --out DIR")


def test_what_is_no_run_directory_is_not_replaced(
    tmp_path: Path, testpmd: tuple[Path, Path]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = tailtrim("analyze", *testpmd, "--out", tmp_path)
    assert result.returncode == 2
    for fact in (str(tmp_path), "not a run directory", "not replaced"):
        assert fact in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_failed_analysis_leaves_nothing(tmp_path: Path, testpmd: tuple[Path, Path]) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"\x00" * 100)
    result = tailtrim("analyze", testpmd[0], broken, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.pcap"]


def test_help_has_examples() -> None:
    for verb in ("analyze", "report", "convert"):
        result = tailtrim(verb, "--help")
        assert result.returncode == 0
        assert f"  tailtrim {verb} " in result.stdout


def test_a_closed_pipe_is_no_error(testpmd: tuple[Path, Path]) -> None:
    command = f"'{BIN}/tailtrim' analyze '{testpmd[0]}' '{testpmd[1]}' --json | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)  # noqa: PLW1510
    assert result.stdout == "{\n"
    assert result.stderr == ""


def test_a_closed_pipe_is_no_negative_result(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    assert tailtrim("analyze", *testpmd, "--out", tmp_path / "run").returncode == 0
    rows = f"'{BIN}/tailtrim' query 'SELECT * FROM sample' '{tmp_path}/run' --format csv | head -1"  # noqa: S608
    result = subprocess.run(  # noqa: PLW1510
        ["bash", "-c", f"set -o pipefail; {rows}"],
        capture_output=True,
        text=True,
    )
    assert result.stdout.startswith('"run",')
    assert (result.returncode, result.stderr) == (0, "")
