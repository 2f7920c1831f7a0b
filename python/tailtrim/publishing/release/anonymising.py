"""Anonymised captures of a release, and the parts of its results that depend on them made anew.

Packets are matched by their bytes, which anonymisation changes. Numbers may not change by it: each
run is matched again, and a release is not made where the summary differs from that of the original.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailtrim.errors import ReleaseError, Remedy
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.anonymous import Anonymous
from tailtrim.publishing.release.derivation import captures_of, derive
from tailtrim.publishing.release.differences import of_json
from tailtrim.results.experiments import recorded
from tailtrim.results.layout import AROUND, EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.publishing.release.redaction import Redaction
    from tailtrim.results import RunDirectory

_WORST = "worst.parquet"
_SIGNATURE = ("signature_high", "signature_low")
_MAGICS = {b"\x4d\x3c\xb2\xa1": "<", b"\xd4\xc3\xb2\xa1": "<"}
_MAGICS |= {magic[::-1]: ">" for magic in list(_MAGICS)}
_FILE_HEADER, _PACKET_HEADER = 24, 16
_ETHERNET = 1
_READ_BYTES = 1 << 20
#: Beyond this the length of a packet is damage.
_LONGEST = 1 << 18


def prepared(experiment: Path, redaction: Redaction) -> Anonymous:
    """Return what anonymises; MAC addresses of the nodes are withheld from then on.

    Raises:
        MissingPackageError: the extra ``release`` is not installed.

    """
    anonymous = Anonymous()
    macs = {mac for place in experiment.glob("run-*/nodes.json") for mac in _macs(place)}
    macs |= {mac for entry in _ports(redaction.testbed) if (mac := entry.get("mac"))}
    if macs:
        redaction.also({mac: anonymous.mac(mac) for mac in sorted(macs)})
    return anonymous


def _macs(place: Path) -> set[str]:
    ports = safe_files.record(place).get("ports")
    return {port["mac"] for port in ports.values()} if isinstance(ports, dict) else set()


def _ports(testbed: Any) -> list[dict[str, Any]]:
    nodes = testbed.get("nodes", {}) if isinstance(testbed, dict) else {}
    return [port for node in nodes.values() for port in node["ports"].values()]


def anonymise(experiment: Path, anonymous: Anonymous) -> None:
    """Anonymise the captures of all runs, and the signatures of their worst packets.

    Runs by minute have captures around those packets, also where they did not end.

    Raises:
        ReleaseError: a capture cannot be anonymised, or gives other numbers then.

    """
    for place in sorted(experiment.rglob(f"{AROUND}/*")):
        if not place.name.endswith(EVENTS):
            _rewrite(place, anonymous)
    for recorded_run, run in recorded(experiment).complete:
        names = captures_of(run.path)
        if names is None:
            _without_signatures(run.path)
            continue
        for name in names:
            _rewrite(run.path / name, anonymous)
        with tempfile.TemporaryDirectory() as folder:
            derived = derive(run, Path(folder) / run.name)
            _same(run, derived.run, recorded_run.name)
            shutil.copyfile(derived.run.path / _WORST, run.path / _WORST)


def _rewrite(place: Path, anonymous: Anonymous) -> None:
    draft = place.with_name(f"anonymous-{place.name}")
    _rewritten(place, draft, anonymous.packet)
    draft.replace(place)


def _rewritten(source: Path, target: Path, rewritten: Callable[[bytes], bytes]) -> None:
    """Write a capture with other packets of the same lengths.

    Args:
        source: a pcap file, plain or compressed (``.zst``, ``.gz``), of Ethernet.
        target: where to; compressed as the source is.
        rewritten: returns what takes the place of a packet's captured bytes.

    Raises:
        ReleaseError: it is another format, or damaged.

    """
    compression = {".zst": "zstd", ".gz": "gzip"}.get(source.suffix)
    try:
        with (
            pa.input_stream(str(source), compression=compression) as reading,
            pa.output_stream(str(target), compression=compression) as writing,
        ):
            header = reading.read(_FILE_HEADER)
            order = _MAGICS.get(header[:4])
            kind = f"{source}: only pcap files of Ethernet can be anonymised"
            if order is None or len(header) < _FILE_HEADER:
                raise ReleaseError(kind)
            if struct.unpack(f"{order}I", header[20:])[0] & 0xFFFF != _ETHERNET:
                raise ReleaseError(kind)
            writing.write(header)
            _packets(source, order, reading, writing, rewritten)
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(f"{source}: cannot be anonymised: {error}") from error


def _packets(
    source: Path,
    order: str,
    reading: pa.NativeFile,
    writing: pa.NativeFile,
    rewritten: Callable[[bytes], bytes],
) -> None:
    length_at = struct.Struct(f"{order}8xI4x")
    held, at = b"", 0
    while True:
        more = reading.read(_READ_BYTES)
        held, at = held[at:] + more, 0
        done: list[bytes] = []
        while len(held) - at >= _PACKET_HEADER:
            (length,) = length_at.unpack_from(held, at)
            if length > _LONGEST:
                raise ReleaseError(f"{source}: damaged: a packet of {length:,} bytes")
            end = at + _PACKET_HEADER + length
            if end > len(held):
                break
            done += [held[at : at + _PACKET_HEADER], rewritten(held[at + _PACKET_HEADER : end])]
            at = end
        writing.write(b"".join(done))
        if not more:
            break
    if at != len(held):
        raise ReleaseError(f"{source}: damaged: it ends within a packet")


def _same(run: RunDirectory, derived: RunDirectory, name: str) -> None:
    one, other = json.loads(run.summary.text), json.loads(derived.summary.text)
    found = of_json(one, other, "")
    if found is not None:
        told = f"{run.path.name} ({name}): anonymised captures give other numbers: {found}"
        error = ReleaseError(told)
        error.add_note(Remedy("{captures} releases the samples instead"))
        raise error


def _without_signatures(run: Path) -> None:
    """Remove the signatures, which are hashes of headers, from the worst packets."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

    place = run / _WORST
    if not place.is_file():
        return
    table = pq.read_table(place)
    for name in _SIGNATURE:
        at = table.column_names.index(name)
        zeros = pa.array([0] * table.num_rows, table.schema.field(name).type)
        table = table.set_column(at, table.schema.field(name), zeros)
    pq.write_table(table, place, compression="zstd")
