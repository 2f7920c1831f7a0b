from __future__ import annotations

import csv
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tailtrim
from tailtrim.publishing.export import convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.publishing.export import Conversion

    MakeRun = Callable[..., tailtrim.RunDirectory]

SECOND = 10**9
KINDS = (
    "percentiles",
    "hist",
    "worst",
    "transferrate",
    "jitterpre",
    "packetratepre",
    "jitterpost",
    "packetratepost",
)
FILTERED = {"percentiles", "hist", "worst", "jitterpre", "jitterpost"}


def by_kind(conversion: Conversion) -> dict[str, Path]:
    """Files by the part of the name between `.pcap.` and `.csv`, without `-filtered`."""
    return {
        path.name.split(".pcap.")[1].removesuffix(".csv").removesuffix("-filtered"): path
        for path in conversion.files
    }


def rows(path: Path) -> list[list[int]]:
    with path.open(newline="") as file:
        return [[int(cell) for cell in row] for row in list(csv.reader(file))[1:]]


@pytest.mark.parametrize(
    ("capture", "skip_s", "name"),
    [
        ("latencies-pre-rate10000-fwd.pcap", 1, "latencies-pre-rate10000-fwd.pcap"),
        ("in.pcap", 0.5, "in.pcap"),
        ("in.pcap", 0, "in.pcap"),
        ("ingress.cap", 0, "synthetic.pcap"),
        (".pcap", 0, "synthetic.pcap"),
    ],
)
def test_names_are_those_of_the_papers(
    make_run: MakeRun, tmp_path: Path, capture: str, skip_s: float, name: str
) -> None:
    packets = [(number * SECOND // 4, 5000) for number in range(12)]
    run = make_run(packets, skip_s=skip_s, capture=capture)
    expected = [
        f"{name}.{kind}{'-filtered' if skip_s and kind in FILTERED else ''}.csv" for kind in KINDS
    ]
    assert [path.name for path in convert(run, "csv", tmp_path).files] == expected


def test_compression_is_no_part_of_the_name(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    files = convert(testpmd, "csv", tmp_path).files
    assert files[0].name == "ingress.pcap.percentiles-filtered.csv"


def test_the_files_of_another_run_stay(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run([(number * SECOND // 4, 5000) for number in range(12)])
    files = convert(run, "csv", tmp_path / "out").files
    assert convert(run, "csv", tmp_path / "out").files == files
    # Captures of one name in different folders give files of one name.
    files[1].write_text("latency_bucket,count\n7000,12\n")
    with pytest.raises(tailtrim.OutputError, match="exists with other values"):
        convert(run, "csv", tmp_path / "out")
    assert "7000,12" in files[1].read_text()


def test_the_bytes(make_run: MakeRun, tmp_path: Path) -> None:
    packets = [(SECOND, 1234), (SECOND + 1050, 99), (3 * SECOND, 1299), (3 * SECOND + 10, None)]
    conversion = convert(make_run(packets), "csv", tmp_path)
    text = {kind: path.read_bytes().decode() for kind, path in by_kind(conversion).items()}
    worst = text.pop("worst").splitlines()
    assert text == {
        "percentiles": "perc_50,perc_90,perc_99,perc_999,perc_9999,perc_99999,perc_999999,maximum\n"
        "1234,1299,1299,1299,1299,1299,1299,1299\n",
        "hist": "latency_bucket,count\n0,1\n1200,2\n",
        "transferrate": "countpre,countpost,transferrate\n4,3,0.75000000000000000000\n",
        "jitterpre": "bucket,count\n0,1\n1000,1\n1999998900,1\n",
        "jitterpost": "bucket,count\n0,1\n2000000000,1\n",
        "packetratepre": "ts,count\n1000000000,2\n3000000000,2\n",
        "packetratepost": "ts,count\n1000000000,2\n3000000000,1\n",
    }
    assert worst[0] == "latency,prets,postts,encode"
    assert [line.rsplit(",", 1)[0] for line in worst[1:]] == [
        "1299,3000000000,3000001299",
        "1234,1000000000,1000001234",
        "99,1000001050,1000001149",
    ]
    signatures = {line.rsplit(",", 1)[1] for line in worst[1:]}
    assert len(signatures) == 3
    assert {len(bytes.fromhex(signature)) for signature in signatures} == {16}


@pytest.mark.parametrize(
    ("sent", "kept", "ratio"),
    [
        (3, 2, "0.66666666666666666667"),
        (3, 1, "0.33333333333333333333"),
        (2, 2, "1.00000000000000000000"),
        (2, 0, "0.00000000000000000000"),
    ],
)
def test_the_transfer_rate_has_twenty_decimals(
    make_run: MakeRun, tmp_path: Path, sent: int, kept: int, ratio: str
) -> None:
    packets = [(number * 10**6, 500 if number < kept else None) for number in range(sent)]
    path = by_kind(convert(make_run(packets), "csv", tmp_path))["transferrate"]
    assert path.read_text().splitlines()[1] == f"{sent},{kept},{ratio}"


def test_against_the_samples(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    files = by_kind(convert(testpmd, "csv", tmp_path))
    samples = testpmd.table("sample")
    latencies = samples["latency_ns"].to_numpy()
    ordered = np.sort(latencies)
    nines = [Fraction(1, 2), *(1 - Fraction(1, 10**count) for count in range(1, 7))]
    ranks = [math.ceil(p * ordered.size) for p in nines]
    expected = [*(int(ordered[rank - 1]) for rank in ranks), int(ordered[-1])]
    assert rows(files["percentiles"]) == [expected]
    distinct, counts = np.unique(latencies // 100 * 100, return_counts=True)
    assert rows(files["hist"]) == np.column_stack([distinct, counts]).tolist()
    triples = zip(
        *(samples[name].to_pylist() for name in ("latency_ns", "ingress_ns", "egress_ns")),
        strict=True,
    )
    worst = sorted(triples, key=lambda row: (-row[0], row[1], row[2]))[:5000]
    lines = files["worst"].read_text().splitlines()[1:]
    assert [tuple(map(int, line.split(",")[:3])) for line in lines] == worst
    summary = testpmd.summary
    # Lossless and in order: the stamps of the samples are those of all packets after the trim.
    for place, column in [("pre", "ingress_ns"), ("post", "egress_ns")]:
        gaps = np.diff(np.sort(samples[column].to_numpy()))
        distinct, counts = np.unique(gaps // 100 * 100, return_counts=True)
        assert rows(files[f"jitter{place}"]) == np.column_stack([distinct, counts]).tolist()
    for place, packets in [("pre", summary.ingress.packets), ("post", summary.egress.packets)]:
        rates = rows(files[f"packetrate{place}"])
        assert sum(count for _, count in rates) == packets
        assert rates[0][0] == summary.ingress_tap.first_ns
        assert np.diff([stamp for stamp, _ in rates]).tolist() == [SECOND] * (len(rates) - 1)


def test_the_width_of_the_buckets(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    fine = rows(by_kind(convert(testpmd, "csv", tmp_path / "1", bucket_ns=1))["hist"])
    coarse = rows(by_kind(convert(testpmd, "csv", tmp_path / "1e6", bucket_ns=10**6))["hist"])
    histogram = testpmd.table("histogram")
    assert fine == np.column_stack([histogram["latency_ns"], histogram["count"]]).tolist()
    assert coarse == [[0, testpmd.summary.samples]]


def test_unbounded_percentiles_are_said(testpmd: tailtrim.RunDirectory, tmp_path: Path) -> None:
    quantiles = testpmd.summary.latency_ns.quantiles
    unsupported = [quantile.p for quantile in quantiles if not quantile.supported]
    (notice,) = convert(testpmd, "csv", tmp_path).notices
    assert (notice.code, notice.count) == ("unsupported", len(unsupported))
    assert f"perc_{unsupported[-1].removeprefix('0.')};" in notice.text
    assert notice.text.count("perc_") == len(unsupported)


def test_latencies_that_are_not_positive_are_kept_and_said(
    make_run: MakeRun, tmp_path: Path
) -> None:
    latencies = [-101, -100, -1, 0, 99, 100]
    packets = [(SECOND + number * 10**6, latency) for number, latency in enumerate(latencies)]
    conversion = convert(make_run(packets), "csv", tmp_path)
    files = by_kind(conversion)
    assert rows(files["hist"]) == [[-200, 1], [-100, 2], [0, 2], [100, 1]]
    assert rows(files["percentiles"]) == [[-1, *[100] * 7]]
    notice = conversion.notices[0]
    assert (notice.code, notice.count) == ("not_positive", 4)
    assert "4 latencies" in notice.text


def test_without_samples(make_run: MakeRun, tmp_path: Path) -> None:
    files = by_kind(convert(make_run([]), "csv", tmp_path))
    text = {kind: path.read_text().splitlines()[1:] for kind, path in files.items()}
    assert text.pop("percentiles") == [",,,,,,,"]
    assert text.pop("transferrate") == ["0,0,"]
    assert set(map(tuple, text.values())) == {()}
