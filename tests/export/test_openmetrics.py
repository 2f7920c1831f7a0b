"""OpenMetrics as Prometheus's own readers take it."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from tailtrim.analysis.slo import objectives
from tailtrim.publishing.export import convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tailtrim

    MakeRun = Callable[..., tailtrim.RunDirectory]

SECOND = 10**9
LATENCY = "tailtrim_latency_seconds"


def _texts(run: tailtrim.RunDirectory, place: Path) -> tuple[str, str]:
    text, first, second = convert(run, "openmetrics", place).files
    assert [file.suffix for file in (text, first, second)] == [
        ".prom",
        ".openmetrics",
        ".openmetrics2",
    ]
    return first.read_text(), second.read_text()


def _samples(text: str) -> list[Any]:
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [sample for family in families for sample in family.samples]


def _parsed(text: str) -> dict[tuple[str, str], Any]:
    """Return the values by name and by the label other than that of the run."""
    found = {}
    for sample in _samples(text):
        (label,) = [v for k, v in sample.labels.items() if k != "run"] or [""]
        found[sample.name, label] = sample.value
    return found


def test_the_parser_of_prometheus_reads_what_the_summary_says(
    testpmd: tailtrim.RunDirectory, tmp_path: Path
) -> None:
    text, _ = _texts(testpmd, tmp_path)
    found = _parsed(text)
    summary = testpmd.summary
    assert summary.latency_ns.max is not None
    assert found["tailtrim_latency_max_seconds", ""] == summary.latency_ns.max / SECOND
    for quantile in summary.latency_ns.quantiles:
        assert quantile.value is not None
        value = found["tailtrim_latency_quantile_seconds", quantile.p]
        assert value == quantile.value / SECOND
        bounded = ("tailtrim_latency_quantile_high_seconds", quantile.p) in found
        assert bounded == (quantile.high is not None)
    assert found["tailtrim_ingress_packets", "trimmed"] == 9_283
    assert found[f"{LATENCY}_count", ""] == found[f"{LATENCY}_bucket", "+Inf"] == summary.samples
    latencies = testpmd.table("histogram")
    pairs = list(
        zip(*(latencies[name].to_pylist() for name in ("latency_ns", "count")), strict=True)
    )
    assert found[f"{LATENCY}_sum", ""] == sum(ns * count for ns, count in pairs) / SECOND
    for (name, bound), value in found.items():
        if name == f"{LATENCY}_bucket":
            limit_ns = float(bound) * SECOND
            assert value == sum(count for ns, count in pairs if ns <= limit_ns + 1e-6)


def test_every_value_has_the_time_of_the_run(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run([(1_000 * SECOND, 5), (1_001 * SECOND + 500_000_000, 7)])
    first, _ = _texts(run, tmp_path)
    assert {float(sample.timestamp) for sample in _samples(first)} == {1001.0}
    # promtool refused times with a fraction: "expected integer as timestamp".
    assert "1001." not in first


def test_the_node_exporter_gets_no_times(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    (file, stamped, _) = convert(testpmd, "openmetrics", tmp_path).files
    text = file.read_text()
    assert all(sample.timestamp is None for sample in _samples(text))
    assert _parsed(text) == _parsed(stamped.read_text())
    # The reader of Prometheus's own format takes it, too; to promtool, `quantile` is of summaries.
    families = list(text_families(text))
    assert not [
        sample
        for family in families
        for sample in family.samples
        if "quantile" in sample.labels or (family.type == "gauge" and "le" in sample.labels)
    ]
    assert {family.name for family in families} >= {LATENCY, "tailtrim_latency_quantile_supported"}


def test_what_the_samples_do_not_support_is_marked(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run([(SECOND * number, 5_000 + number % 97) for number in range(400)])
    found = _parsed(_texts(run, tmp_path)[0])
    for quantile in run.summary.latency_ns.quantiles:
        value = found["tailtrim_latency_quantile_supported", quantile.p]
        assert value == float(quantile.supported)
    # The largest of 400 samples was exported as p99.99, without a word.
    assert found["tailtrim_latency_quantile_supported", "0.9999"] == 0


def test_a_series_says_whether_an_objective_holds(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run([(SECOND * number, 5_000 + number % 97) for number in range(400)])
    asked = objectives("max < 1ms, mean < 1us, p99.999 < 1s")
    text = convert(run, "openmetrics", tmp_path, objectives=asked).files[0].read_text()
    found = _parsed(text)
    assert found["tailtrim_objective_met", "max < 1ms"] == 1
    assert found["tailtrim_objective_met", "mean < 1us"] == 0
    assert ("tailtrim_objective_met", "p99.999 < 1s") not in found
    assert found["tailtrim_objective_decided", "p99.999 < 1s"] == 0
    assert found["tailtrim_objective_decided", "mean < 1us"] == 1


def test_what_was_lost_is_infinitely_late(make_run: MakeRun, tmp_path: Path) -> None:
    packets = [(SECOND * number, 5_000 if number % 2 else None) for number in range(20)]
    text, _ = _texts(make_run(packets), tmp_path)
    found = _parsed(text)
    assert found["tailtrim_loss_ratio", ""] == pytest.approx(0.5, abs=0.03)
    assert found["tailtrim_latency_delivery_adjusted_seconds", "0.99"] == math.inf
    assert found["tailtrim_latency_quantile_seconds", "0.99"] == 5e-6


def test_a_name_with_signs_of_the_format_is_escaped(make_run: MakeRun, tmp_path: Path) -> None:
    name = 'a"b\\c\nd'
    text, _ = _texts(make_run([(0, 5)], name=name), tmp_path / "out")
    assert {sample.labels["run"] for sample in _samples(text)} == {name}


def _native(text: str) -> dict[str, Any]:
    """Read the native histogram by the grammar of OpenMetrics 2.0."""
    (line,) = [line for line in text.splitlines() if line.startswith(LATENCY + "{")]
    value = re.fullmatch(r".*\} \{(.*)\} [0-9.]+", line)
    assert value is not None
    found: dict[str, Any] = {}
    for name, listed, single in re.findall(r"([a-z_]+):(?:\[([^]]*)\]|([^,]+))", value[1]):
        found[name] = listed.split(",") if listed else single
    return found


def test_the_parser_of_prometheus_reads_the_native_histogram(
    testpmd: tailtrim.RunDirectory, tmp_path: Path
) -> None:
    first, second = _texts(testpmd, tmp_path)
    (sample,) = [one for one in _samples(second) if one.name == LATENCY]
    found = sample.native_histogram
    told = _native(second)
    assert found.count_value == testpmd.summary.samples == int(told["count"])
    assert found.sum_value == _parsed(first)[f"{LATENCY}_sum", ""]
    assert (found.schema, found.zero_count) == (int(told["schema"]), 0)


def _bounds(found: dict[str, Any], side: str) -> list[tuple[float, float, int]]:
    """Return lower bound, upper bound and count of each bucket."""
    growth = 2.0 ** (2.0 ** -int(found["schema"]))
    counts = iter(map(int, found.get(f"{side}_buckets", ())))
    place, listed = 0, []
    for span in found.get(f"{side}_spans", ()):
        offset, length = map(int, span.split(":"))
        place += offset
        for _ in range(length):
            listed.append((growth ** (place - 1), growth**place, next(counts)))
            place += 1
    assert next(counts, None) is None
    return listed


def test_the_native_histogram_holds_every_sample_in_its_bucket(
    testpmd: tailtrim.RunDirectory, tmp_path: Path
) -> None:
    _, text = _texts(testpmd, tmp_path)
    found = _native(text)
    buckets = _bounds(found, "positive")
    assert int(found["count"]) == sum(count for *_, count in buckets) == testpmd.summary.samples
    # As fine as 160 buckets allow.
    assert 80 < len(buckets) <= 160
    table = testpmd.table("histogram")
    for low, high, count in buckets:
        within = [
            many
            for ns, many in zip(
                *(table[n].to_pylist() for n in ("latency_ns", "count")), strict=True
            )
            if low < ns / SECOND <= high
        ]
        assert count == sum(within)


def test_negative_latencies_have_buckets_of_their_own(make_run: MakeRun, tmp_path: Path) -> None:
    packets = [(SECOND, -3_000), (2 * SECOND, 0), (3 * SECOND, 4_000), (4 * SECOND, 4_000)]
    first, second = _texts(make_run(packets), tmp_path)
    found = _parsed(first)
    assert (f"{LATENCY}_sum", "") not in found
    assert (found[f"{LATENCY}_bucket", "0.0"], found[f"{LATENCY}_bucket", "+Inf"]) == (2, 4)
    native = _native(second)
    assert (native["zero_count"], float(native["sum"])) == ("1", 5e-6)
    ((low, high, count),) = _bounds(native, "negative")
    assert low < 3e-6 <= high
    assert count == 1


@pytest.mark.packages
def test_promtool_puts_a_run_where_it_was(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    (text, file, _) = convert(testpmd, "openmetrics", tmp_path / "out").files
    for one in (text, file):
        with one.open() as read:
            subprocess.run([promtool, "check", "metrics"], stdin=read, check=True)
    blocks = tmp_path / "blocks"
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", file, blocks],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    # Without a log to read, the dump ends with an error.
    (blocks / "wal").mkdir()
    dumped = subprocess.run([promtool, "tsdb", "dump", blocks], capture_output=True, text=True)  # noqa: PLW1510
    assert testpmd.summary.egress_tap.last_ns is not None
    stamp_ms = testpmd.summary.egress_tap.last_ns // SECOND * 1000
    (line,) = [one for one in dumped.stdout.splitlines() if '"tailtrim_latency_max_seconds"' in one]
    assert line.endswith(f" {stamp_ms}")
