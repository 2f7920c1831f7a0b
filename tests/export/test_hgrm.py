from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tailtrim.publishing.export import convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tailtrim

    MakeRun = Callable[..., tailtrim.RunDirectory]

LATENCIES = [*[0] * 2, *[1500] * 3, 1501, *[250_000] * 4, 5_000_001]

# Output of HdrHistogram 2.2.2 (Java), outputPercentileDistribution, for these latencies.
JAVA = """\
       Value     Percentile TotalCount 1/(1-Percentile)

       0.000 0.000000000000          2           1.00
       0.000 0.100000000000          2           1.11
       1.500 0.200000000000          5           1.25
       1.500 0.300000000000          5           1.43
       1.500 0.400000000000          5           1.67
       1.501 0.500000000000          6           2.00
     250.111 0.550000000000         10           2.22
     250.111 0.600000000000         10           2.50
     250.111 0.650000000000         10           2.86
     250.111 0.700000000000         10           3.33
     250.111 0.750000000000         10           4.00
     250.111 0.775000000000         10           4.44
     250.111 0.800000000000         10           5.00
     250.111 0.825000000000         10           5.71
     250.111 0.850000000000         10           6.67
     250.111 0.875000000000         10           8.00
     250.111 0.887500000000         10           8.89
     250.111 0.900000000000         10          10.00
    5001.215 0.912500000000         11          11.43
    5001.215 1.000000000000         11
#[Mean    =      545.942, StdDeviation   =     1413.031]
#[Max     =     5001.215, Total count    =           11]
#[Buckets =           13, SubBuckets     =         2048]
"""


def spaced(latencies: list[int]) -> list[tuple[int, int]]:
    return [(10**9 + 10**7 * number, latency) for number, latency in enumerate(latencies)]


def test_the_text_is_that_of_the_java_original(make_run: MakeRun, tmp_path: Path) -> None:
    conversion = convert(make_run(spaced(LATENCIES)), "hgrm", tmp_path)
    (path,) = conversion.files
    assert path == tmp_path / "synthetic.hgrm"
    assert path.read_text() == JAVA + "# tailtrim: values in microseconds\n"
    assert conversion.notices == ()


def test_negative_latencies_are_counted_and_said(make_run: MakeRun, tmp_path: Path) -> None:
    conversion = convert(make_run(spaced([*LATENCIES, -1, -1, -70_000])), "hgrm", tmp_path)
    comments = (
        "# tailtrim: values in microseconds\n# tailtrim: 3 negative latencies are not in here\n"
    )
    assert conversion.files[0].read_text() == JAVA + comments
    (notice,) = conversion.notices
    assert (notice.code, notice.count) == ("negative", 3)
    assert all(fact in notice.text for fact in ("3 latencies", "synthetic.hgrm"))


def test_all_negative(make_run: MakeRun, tmp_path: Path) -> None:
    conversion = convert(make_run(spaced([-5, -6])), "hgrm", tmp_path)
    assert "Total count    =            0]" in conversion.files[0].read_text()
    assert [notice.count for notice in conversion.notices] == [2]


def test_without_samples_there_are_header_and_footer(make_run: MakeRun, tmp_path: Path) -> None:
    conversion = convert(make_run([(0, None)]), "hgrm", tmp_path)
    header, blank, mean, maximum, *_ = conversion.files[0].read_text().split("\n")
    assert header.split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert not blank
    assert mean == "#[Mean    =        0.000, StdDeviation   =        0.000]"
    assert maximum == "#[Max     =        0.000, Total count    =            0]"


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
def test_the_rows_against_the_sorted_samples(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, digits: int
) -> None:
    (path,) = convert(testpmd, "hgrm", tmp_path, significant_digits=digits).files
    latencies = np.sort(testpmd.table("sample")["latency_ns"].to_numpy())
    # As HdrHistogram's plotter reads it, and the last row, which has no fourth column.
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = [line for line in lines if len(line) in (3, 4)][1:]
    assert [len(row) for row in rows] == [4] * (len(rows) - 1) + [3]
    assert len(rows) > 50
    for value, percentile, count, *rest in rows:
        p = Fraction(percentile)
        exact = int(latencies[max(math.ceil(p * latencies.size), 1) - 1])
        upper_ns = float(value) * 1000
        # Printed with as many decimals as digits: with one, 0.05 µs may be lost.
        slack_ns = 500 / 10**digits + 1e-6
        assert exact - slack_ns <= upper_ns <= exact * (1 + 10**-digits) + 1 + slack_ns
        assert int(count) >= p * latencies.size - 1
        if digits >= 3:
            assert int(count) == np.searchsorted(latencies, upper_ns + slack_ns, side="right")
        if rest:
            assert float(rest[0]) == pytest.approx(float(1 / (1 - p)), rel=0.01)
    assert rows[-1][1:] == ["1.000000000000", str(latencies.size)]
    footer = path.read_text().splitlines()[-4:-1]
    mean, deviation = (float(part.split("=")[1].strip(" ]")) for part in footer[0].split(","))
    assert mean == pytest.approx(latencies.mean() / 1000, rel=10**-digits)
    assert deviation == pytest.approx(latencies.std() / 1000, rel=10 ** -(digits - 1))
    assert f"Total count    = {latencies.size:>12}]" in footer[1]
