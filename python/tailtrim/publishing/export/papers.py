"""CSV files in the shapes of the TUM papers' measurement scripts.

Users of MoonGen's MoonSniff and of pos have plotting scripts for the files that the published
scripts of "5G QoS: Impact of Security Functions on Latency" leave behind
(https://github.com/gallenmu/low-latency, ``scripts/pcap-analysis.sh`` and ``scripts/sql/``): these
draw the same figures from the files here. All have a header, commas, no quotes, and times as
integers in **ns**:

=========================== =========================================================
``percentiles``             ``perc_50,perc_90,…,perc_999999,maximum``: one row
``hist``                    ``latency_bucket,count``: lower end of the bucket
``worst``                   ``latency,prets,postts,encode``: at most 5000, worst first
``jitterpre, jitterpost``   ``bucket,count``: gaps between packets at a tap
``transferrate``            ``countpre,countpost,transferrate``: egress ÷ ingress packets
``packetratepre, -post``    ``ts,count``: packets in each second
=========================== =========================================================

"Ducked Tails" builds on these scripts. The packet rates are from a later version of them, which
reports one packet rate for each second and the transfer rate of the whole run.

Files are named after the ingress capture, as theirs (``latencies-pre-rate10000.pcap.hist.csv``).
Files without the run's trim are named ``percentiles-filtered``, ``worst-filtered`` as theirs are,
and likewise ``hist-filtered``, ``jitterpre-filtered`` and ``jitterpost-filtered``: their gaps are
always over all packets. A run without a trim (``--skip 0``) has their plain names throughout.
Transfer rate and packet rates are over all packets.

Differences: latencies that are not positive are kept, where the papers' queries leave them out
(buckets are rounded down, also below zero); ``encode`` has the 128-bit signature of the packet in
hex where theirs has its first 64 bytes; seconds of ``packetratepost`` begin with the first ingress
stamp, theirs with the first egress stamp.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.errors import OutputError
from tailtrim.publishing.export import Conversion, tables
from tailtrim.results.drafts import replacing
from tailtrim.results.summary import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tailtrim.publishing.export.tables import Column
    from tailtrim.results import RunDirectory

#: Percentiles of the papers: name of the column, p as numerator and denominator, p as text.
PERCENTILES = (
    ("perc_50", 5, 10, "0.5"),
    ("perc_90", 9, 10, "0.9"),
    ("perc_99", 99, 100, "0.99"),
    ("perc_999", 999, 1_000, "0.999"),
    ("perc_9999", 9_999, 10_000, "0.9999"),
    ("perc_99999", 99_999, 100_000, "0.99999"),
    ("perc_999999", 999_999, 1_000_000, "0.999999"),
)

_MOST_WORST = 5000
_SECOND_NS = 1_000_000_000
_RATE_DECIMALS = 20


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A file: the last part of its name, its header and its rows."""

    kind: str
    header: str
    rows: Iterable[tuple[object, ...]]


def write(run: RunDirectory, out: Path, *, bucket_ns: int) -> Conversion:
    """Write the eight files, named after the ingress capture (see the module).

    A run without samples gives a row of empty percentiles and histograms without rows.

    Raises:
        RunDirectoryError: when a table cannot be read.
        OutputError: when a file cannot be written.

    """
    latencies, counts = tables.histogram(run)
    name = _name(run)
    files = []
    # Everything is read before anything is written.
    contents = {
        out / f"{name}.{sheet.kind}.csv": _text(sheet)
        for sheet in _sheets(run, latencies, counts, bucket_ns)
    }
    for path, text in contents.items():
        # Two runs of captures of one name give files of one name.
        if path.exists() and path.read_bytes() != text:
            raise OutputError(f"{path}: exists with other values: choose another directory")
    for path, text in contents.items():
        with replacing(path) as file:
            file.write(text)
        files.append(path)
    return Conversion(tuple(files), tuple(_notices(run, latencies, counts)))


def _text(sheet: _Sheet) -> bytes:
    lines = (sheet.header, *(",".join(map(str, row)) for row in sheet.rows))
    return "".join(f"{line}\n" for line in lines).encode()


def _sheets(
    run: RunDirectory, latencies: Column, counts: Column, bucket_ns: int
) -> Iterator[_Sheet]:
    filtered = "-filtered" if run.summary.trim_ns else ""
    header = ",".join([*(name for name, *_ in PERCENTILES), "maximum"])
    yield _Sheet(f"percentiles{filtered}", header, [_percentiles(latencies, counts)])
    bucketed = _bucketed(latencies, counts, bucket_ns)
    yield _Sheet(f"hist{filtered}", "latency_bucket,count", bucketed)
    yield _Sheet(f"worst{filtered}", "latency,prets,postts,encode", _worst(run))
    yield _Sheet("transferrate", "countpre,countpost,transferrate", [_transfer_rate(run)])
    tap, gap_ns, gap_counts = tables.columns(run, "gap", "tap", "gap_ns", "count")
    second, *packets = tables.columns(run, "second", "second", "ingress_packets", "egress_packets")
    start_ns = run.summary.ingress_tap.first_ns or 0
    for side, place, packet_counts in zip(
        ("ingress", "egress"), ("pre", "post"), packets, strict=True
    ):
        at_tap = tap == side
        gaps = _bucketed(gap_ns[at_tap], gap_counts[at_tap], bucket_ns)
        yield _Sheet(f"jitter{place}{filtered}", "bucket,count", gaps)
        # Their query groups packets: a second without any has no row.
        seen = packet_counts > 0
        stamps = (start_ns + second[seen] * _SECOND_NS).tolist()
        rates = zip(stamps, packet_counts[seen].tolist(), strict=True)
        yield _Sheet(f"packetrate{place}", "ts,count", rates)


def _name(run: RunDirectory) -> str:
    """Name the files after the ingress capture without what compressed it.

    The papers' plotting scripts look for ``.pcap.``, so a capture of another name takes that of the
    run directory.
    """
    before, pcap, _ = PurePath(run.summary.ingress_tap.capture).name.partition(".pcap")
    return f"{before}.pcap" if before and pcap else f"{run.name}.pcap"


def _percentiles(latencies: Column, counts: Column) -> tuple[object, ...]:
    """Take the latency at rank ⌈p·N⌉ for each percentile, and the maximum."""
    if not latencies.size:
        return ("",) * (len(PERCENTILES) + 1)
    up_to = np.cumsum(counts)
    total = int(up_to[-1])
    ranks = [-(-numerator * total // denominator) for _, numerator, denominator, _ in PERCENTILES]
    return (*latencies[np.searchsorted(up_to, ranks)].tolist(), int(latencies[-1]))


def _bucketed(values: Column, counts: Column, bucket_ns: int) -> list[tuple[int, int]]:
    """Add up the counts by bucket."""
    distinct, bucket = np.unique(values // bucket_ns * bucket_ns, return_inverse=True)
    sums = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sums, bucket, counts)
    return list(zip(distinct.tolist(), sums.tolist(), strict=True))


def _worst(run: RunDirectory) -> list[tuple[int, int, int, str]]:
    rows = zip(
        *(
            column.tolist()
            for column in tables.columns(
                run,
                "worst",
                *("latency_ns", "ingress_ns", "egress_ns", "signature_high", "signature_low"),
            )
        ),
        strict=True,
    )
    ordered = sorted(rows, key=lambda row: (-row[0], row[1], row[2]))
    return [
        (latency, ingress, egress, f"{high % 2**64:016x}{low % 2**64:016x}")
        for latency, ingress, egress, high, low in ordered[:_MOST_WORST]
    ]


def _transfer_rate(run: RunDirectory) -> tuple[object, ...]:
    """Divide the packets behind the device by those before it, to 20 decimals.

    PostgreSQL prints as many for ratios just below one.
    """
    before, behind = run.summary.ingress.packets, run.summary.egress.packets
    if not before:
        return before, behind, ""
    scale: int = 10**_RATE_DECIMALS
    whole, rest = divmod((2 * behind * scale + before) // (2 * before), scale)
    return before, behind, f"{whole}.{rest:0{_RATE_DECIMALS}d}"


def _notices(run: RunDirectory, latencies: Column, counts: Column) -> Iterator[Notice]:
    not_positive = int(counts[latencies <= 0].sum())
    if not_positive:
        text = (
            f"{not_positive} latencies are not positive; they are in the CSV files, "
            "where the papers' queries leave them out"
        )
        yield Notice("not_positive", not_positive, text)
    supported = {quantile.p: quantile.supported for quantile in run.summary.latency_ns.quantiles}
    weak = [name for name, *_, p in PERCENTILES if not supported.get(p, True)]
    if weak and latencies.size:
        text = (
            f"too few samples ({run.summary.samples:,}) to support {', '.join(weak)}; "
            "as in the papers the columns have the sample at that rank all the same"
        )
        yield Notice("unsupported", len(weak), text)
