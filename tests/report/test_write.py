from __future__ import annotations

import json
import re
import resource
import signal
from typing import TYPE_CHECKING, Any

import pytest
from report_page import Page, page_of

from tailtrim import OutputError, RunDirectoryError, units
from tailtrim.publishing.report import ReportError, names_of, wording, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory

EVIL = "<script>alert(1)<!--"


def test_everything_is_written_and_named(testpmd: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report"
    for formats, pdf in ((("svg", "pdf", "csv"), True), (("svg", "csv"), False)):
        files = write([testpmd], out, pdf=pdf)
        assert files[0] == out / "report.html"
        keys = ["hdr", "worst", "histogram", "cdf", "gaps", "seconds"]
        expected = [f"{key}.{suffix}" for key in keys for suffix in formats]
        assert [file.name for file in files[1:]] == expected
        assert all(file.stat().st_size for file in files)
        linked = [attributes["href"] for tag, attributes in page_of(out).tags if tag == "a"]
        assert linked == ["figures/", "#why-1", *(f"figures/{name}" for name in expected)]
        # PDFs of an earlier report do not stay.
        assert {file.name for file in (out / "figures").iterdir()} == set(expected)


def test_the_same_input_gives_the_same_bytes(testpmd: RunDirectory, tmp_path: Path) -> None:
    first = write([testpmd, testpmd], tmp_path / "a", names=["one", "two"])
    second = write([testpmd, testpmd], tmp_path / "b", names=["one", "two"])
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_the_page_needs_nothing_else(report: Path) -> None:
    page = page_of(report)
    assert not [tag for tag, attributes in page.tags if attributes.get("src")]
    assert "link" not in [tag for tag, _ in page.tags]
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert all(link and link.startswith(("figures/", "#")) for link in links)
    assert (report / "report.html").stat().st_size < 3_000_000


def test_the_numbers_are_those_of_the_summary(testpmd: RunDirectory, report: Path) -> None:
    page = page_of(report)
    rows = [[" ".join(cell.split()) for cell in row] for row in page.rows]
    latency = next(row for row in rows if row[0] == "testpmd" and len(row) > 3)
    quantiles = testpmd.summary.latency_ns.quantiles
    style = wording.times(testpmd.summary)
    for cell, quantile in zip(latency[5:-1], quantiles, strict=False):
        assert quantile.value is not None
        value, *interval = cell.split(" ", 1)
        assert value == style.number(quantile.value) + "*" * (not quantile.supported)
        low, high = style.bound(quantile.low), style.bound(quantile.high)
        assert interval == [f"{low} {units.NONE} {high}"]
    assert testpmd.summary.latency_ns.max is not None
    assert latency[-1] == style.number(testpmd.summary.latency_ns.max)
    counts = [row for row in rows if row and row[-1] == f"{testpmd.summary.ingress.packets:,}"]
    assert len(counts) == 2
    for row in counts:
        numbers = [int(cell.replace(",", "")) for cell in row[1:]]
        assert sum(numbers[:-1]) == numbers[-1]
    for entry in testpmd.provenance()["inputs"]:
        assert entry["sha256"] in page.text


def test_copies_by_the_device_are_in_the_table_where_there_are_any(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    write([make_run([5_000] * 50, copied=3)], tmp_path / "out")
    rows = page_of(tmp_path / "out").rows
    head = next(row for row in rows if row and row[0] == "Run" and "Copies" in row)
    run = next(row for row in rows if row and row[0] == "synthetic" and len(row) > len(head) - 2)
    assert run[head.index("Copies")] == "3"
    write([make_run([5_000] * 50, name="other")], tmp_path / "none")
    assert not any("Copies" in row for row in page_of(tmp_path / "none").rows)


def test_drops_that_the_taps_of_a_run_recorded_are_told(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run([5_000] * 50)
    write([run], tmp_path / "unknown")
    assert page_of(tmp_path / "unknown").text.count("drops not recorded") == 2
    taps = {"ingress": {"dropped": 0}, "egress": {"dropped": 1_234}}
    (run.path / "capture.json").write_text(json.dumps({"taps": taps}))
    write([run], tmp_path / "known")
    text = page_of(tmp_path / "known").text
    assert "drops not recorded" not in text
    assert "0 dropped by the tap" in text
    assert "1,234 dropped by the tap" in text


def panel_of(out: Path, key: str) -> dict[str, Any]:
    data = json.loads(page_of(out).data)
    (panel,) = next(figure for figure in data["figures"] if figure["key"] == key)["panels"]
    assert isinstance(panel, dict)
    return panel


def test_the_page_has_every_worst_packet(testpmd: RunDirectory, report: Path) -> None:
    assert json.loads(page_of(report).data)["names"] == ["testpmd"]
    (points,) = panel_of(report, "worst")["lines"]
    assert len(points["x"]) == testpmd.summary.worst.count


def test_the_page_has_the_band_and_where_it_is_open(testpmd: RunDirectory, report: Path) -> None:
    panel = panel_of(report, "hdr")
    (band,) = panel["bands"]
    rows = testpmd.table("quantile").to_pylist()
    assert len(band["x"]) == len(band["value"]) == len(rows) + 2
    high = [None if us is None else round(us * 1000) for us in band["high"]]
    assert high == [*(row["high_ns"] for row in rows), None]
    low = [None if us is None else round(us * 1000) for us in band["low"]]
    assert low == [None, *(row["low_ns"] for row in rows)]
    assert not any(mark["bars"] for mark in panel["intervals"])
    assert panel["y"]["unit"] == "µs"


def test_a_page_without_the_table_of_the_curve_has_bars(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run([5_000 + n for n in range(500)])
    (run.path / "quantile.parquet").unlink()
    write([run], tmp_path / "out")
    panel = panel_of(tmp_path / "out", "hdr")
    assert panel["bands"] == []
    assert all(mark["bars"] for mark in panel["intervals"])
    assert re.search("Bars .*95 % confidence intervals", page_of(tmp_path / "out").text)


def test_a_percentile_without_a_column_is_explained_once(
    testpmd: RunDirectory, report: Path
) -> None:
    # 30,717 samples: 99.99 is a column, though it is not supported.
    assert testpmd.summary.samples < 100_000
    text = page_of(report).text
    assert "p99.999, p99.9999: too few" in text
    assert "p99.999 is not supported" not in text
    assert "p99.9999 is not supported" not in text
    assert "p99.99: not supported" not in text
    assert "support no percentile (p50: 3 independent episodes" in text
    assert units.UNSUPPORTED_LEGEND in text


def test_foreign_text_stays_text(make_run: Callable[..., RunDirectory], tmp_path: Path) -> None:
    run = make_run([5_000] * 50 + [None] + [5_000] * 50, name=EVIL, capture=f"{EVIL} & 'in'.pcap")
    summary = json.loads((run.path / "summary.json").read_text())
    summary["warnings"] = [{"code": "x", "count": 1, "text": f"{EVIL} warned\x1b[0m"}]
    summary["taps"]["egress"]["damage"] = f"{EVIL} damaged"
    (run.path / "summary.json").write_text(json.dumps(summary))
    write([type(run)(run.path)], tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert EVIL not in html
    assert "\x1b" not in html
    page = Page(html)
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 7
    for text in (f"{EVIL} & 'in'.pcap", f"{EVIL} warned\\x1b[0m", f"{EVIL} damaged"):
        assert text in page.text
    assert json.loads(page.data)["names"] == [EVIL]


def test_warnings_of_one_kind_are_told_once(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    runs = []
    for number in range(3):
        run = make_run([5_000] * 100, name=f"run{number}")
        summary = json.loads((run.path / "summary.json").read_text())
        summary["warnings"] = [{"code": "x", "count": number, "text": f"{number} went astray"}]
        if number == 2:
            # The same code, but of something else.
            warning = {"code": "x", "count": 1, "text": "1 of egress went astray"}
            summary["warnings"].append(warning)
        (run.path / "summary.json").write_text(json.dumps(summary))
        runs.append(type(run)(run.path))
    write(runs, tmp_path / "three")
    text = page_of(tmp_path / "three").text
    assert "1 of egress went astray" in text
    assert re.search(r"0 went astray \(.*first run.*summary\.json", text)
    assert "1 went astray" not in text
    assert "2 warnings" in text
    same = {"code": "y", "count": 1, "text": "the clock was coarse"}
    for run in runs[:2]:
        summary = json.loads((run.path / "summary.json").read_text())
        summary["warnings"].append(same)
        (run.path / "summary.json").write_text(json.dumps(summary))
    runs[:2] = [type(run)(run.path) for run in runs[:2]]
    write(runs[:2], tmp_path / "two")
    assert "all runs: the clock was coarse" in " ".join(page_of(tmp_path / "two").text.split())
    text = page_of(tmp_path / "two").text
    assert "0 went astray" in text
    assert "1 went astray" in text


def test_the_policy_admits_only_what_the_page_carries(report: Path) -> None:
    page = page_of(report)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv"))
    assert policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not [tag for tag, attributes in page.tags if "style" in attributes]
    assert not [tag for tag, a in page.tags if any(name.startswith("on") for name in a)]


def test_a_directory_without_provenance_is_reported(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run([5_000] * 50)
    (run.path / "provenance.json").write_text('{"inputs": [3], "versions": "?", "command": 5}')
    write([run], tmp_path / "a")
    (run.path / "provenance.json").unlink()
    write([run], tmp_path / "b")
    assert "Directory" in page_of(tmp_path / "b").text


def test_figures_of_an_earlier_report_do_not_stay(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    stale = tmp_path / "out" / "figures" / "burst.svg"
    own = tmp_path / "out" / "figures" / "own.svg"
    stale.parent.mkdir(parents=True)
    stale.touch()
    own.touch()
    write([make_run([5_000] * 50)], tmp_path / "out")
    assert not stale.exists()
    assert own.exists()


def test_directories_of_one_name_are_called_by_their_paths(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    runs = [make_run([5_000], name="run"), make_run([5_000], name="a/run"), make_run([5], name="b")]
    assert names_of(runs) == [str(tmp_path / "run"), str(tmp_path / "a" / "run"), "b"]


def test_nothing_to_report_on_is_an_error(testpmd: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no run to report"):
        write([], tmp_path)
    with pytest.raises(ReportError, match=r"2 names .*1 run"):
        write([testpmd], tmp_path, names=["a", "b"])


def test_a_missing_table_is_an_error_and_leaves_nothing(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run([5_000] * 50)
    (run.path / "worst.parquet").unlink()
    with pytest.raises(RunDirectoryError, match=r"worst\.parquet: the table cannot"):
        write([run], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_an_error(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"file.*: cannot be written: "):
        write([make_run([5_000] * 50)], tmp_path / "file")


def test_a_report_that_fails_leaves_the_earlier_one(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    # A full disk left half of a page in the place of the earlier one.
    page = write([make_run([5_000] * 50)], tmp_path / "out")[0]
    before = page.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limit[1]))
    try:
        with pytest.raises(OutputError, match=r"report\.html: cannot be written"):
            write([make_run([7_000] * 50)], tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert page.read_bytes() == before
    assert not [path for path in page.parent.iterdir() if path.name.startswith(".")]
