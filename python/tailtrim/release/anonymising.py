"""The captures of a release anonymised, and what of its results depends on them made anew.

Packets are matched by their bytes, which anonymisation changes. Numbers may not change by it: each
run is matched again, and a release is not made where the summary differs from that of the original.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ReleaseError, Remedy
from tailtrim.experiment import recorded
from tailtrim.release import captures, tree
from tailtrim.release.anonymous import Anonymous
from tailtrim.release.derivation import captures_of, derive
from tailtrim.release.differences import of_json
from tailtrim.rundir.layout import AROUND, EVENTS

if TYPE_CHECKING:
    from tailtrim.release.withheld import Withheld
    from tailtrim.rundir import RunDirectory

_WORST = "worst.parquet"
_SIGNATURE = ("signature_high", "signature_low")


def prepared(experiment: Path, withheld: Withheld) -> Anonymous:
    """Return what anonymises; MAC addresses of the nodes are withheld from then on.

    Raises:
        MissingPackageError: the extra ``release`` is not installed.

    """
    anonymous = Anonymous()
    macs = {mac for place in experiment.glob("run-*/nodes.json") for mac in _macs(place)}
    macs |= {mac for entry in _ports(withheld.testbed) if (mac := entry.get("mac"))}
    if macs:
        withheld.also({mac: anonymous.mac(mac) for mac in sorted(macs)})
    return anonymous


def _macs(place: Path) -> set[str]:
    ports = tree.record(place).get("ports")
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
    captures.rewrite(place, draft, anonymous.packet)
    draft.replace(place)


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
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    place = run / _WORST
    if not place.is_file():
        return
    table = pq.read_table(place)
    for name in _SIGNATURE:
        at = table.column_names.index(name)
        zeros = pa.array([0] * table.num_rows, table.schema.field(name).type)
        table = table.set_column(at, table.schema.field(name), zeros)
    pq.write_table(table, place, compression="zstd")
