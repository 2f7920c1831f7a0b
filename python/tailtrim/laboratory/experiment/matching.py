"""Captures of a run become its result: here, or on the timestamper where they are.

The rule: captures on two hosts, or of this machine, are matched here. Otherwise the testbed file
says ``captures: fetch | leave | auto``; with ``auto`` captures of more than :data:`FETCHED_BYTES`
are left. The result is the same, byte for byte.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.analysis import analyze
from tailtrim.analysis.options import WELL, Departures, nanoseconds
from tailtrim.errors import CaptureError, RunError
from tailtrim.laboratory.nodes.clocks import BY_NIC
from tailtrim.results import TABLES
from tailtrim.results.layout import SUMMARY
from tailtrim.results.writing import Draft, provenance_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.experiment.measure import Measurement
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: A second of a link of 1 Gbit/s: 1,538 bytes on the line for 1,448 of data (Ethernet, IP, TCP with
#: time stamps) make 117.7 MB/s. To fetch less takes no longer than to set up a run does.
FETCHED_BYTES = 118_000_000
#: The captures of a run, in the order of matching.
TAPS = ("ingress", "egress")
_MATCHED = "matched"
_DEPARTURES = "matching-departures.json"


@dataclass(frozen=True, slots=True)
class Matching:
    """Parameters of the packet matching of a run's captures.

    ``taps`` are the nodes and files of ingress and egress.
    """

    at: Forwarding
    taps: Sequence[tuple[Node, str]]
    skip_s: float
    quantiles: Sequence[str]
    departures: Departures
    keep: bool

    def match(self, result: Path) -> dict[str, Any]:
        """Match, and leave the result; return where that was done, and where the captures are.

        Raises:
            CaptureError: a capture cannot be read, or packets left before they entered.
            RunError: a capture is missing, or the connection was lost.

        """
        sizes = [_bytes(node, name) for node, name in self.taps]
        there = len({node.host_name for node, _ in self.taps}) == 1 and (
            self.at.captures == "leave"
            or (self.at.captures == "auto" and sum(sizes) > FETCHED_BYTES)
        )
        told = self._there(result, sizes) if there else self._here(result)
        return {
            "captures": self.at.captures,
            "bytes": sum(sizes),
            "fetched_up_to_bytes": FETCHED_BYTES if self.at.captures == "auto" else None,
            **told,
        }

    @property
    def _correction_ns(self) -> int:
        return 0 if self.at.correction is None else self.at.correction.ns

    def _here(self, result: Path) -> dict[str, Any]:
        captures = [got(node, name) for node, name in self.taps]
        analyze(
            *captures,
            skip_s=self.skip_s,
            quantiles=self.quantiles,
            departures=self.departures,
            correction_ns=self._correction_ns,
            out=result,
        )
        for capture in captures:
            if self.keep:
                shutil.move(capture, result / capture.name)
        # Where a device is kept up, the next run has the same names for its own.
        for node, name in self.taps:
            node.run("rm", "-f", node.path(name))
        return {
            "matched_on": "here",
            "by": f"tailtrim {VERSION}",
            "kept": [capture.name for capture in captures] if self.keep else None,
        }

    def _there(self, result: Path, sizes: Sequence[int]) -> dict[str, Any]:
        node = self.taps[0][0]
        paths = [node.path(name) for _, name in self.taps]
        departures = node.put(_DEPARTURES, json.dumps(asdict(self.departures)))
        options = ["--skip", f"{nanoseconds('skip', self.skip_s)}ns", "--lateness", departures]
        options += ["--correction", str(self._correction_ns), "--out", node.path(_MATCHED)]
        options += [part for p in self.quantiles for part in ("--quantile", p)]
        ended = node.work(node.agent, "analyze", *paths, *options)
        if not ended.stdout:
            node.check()
            told = ended.stderr.strip().removeprefix("error: ").splitlines()
            raise CaptureError(f"{node.role}: {told[0] if told else 'the agent told nothing'}")
        hashes = [_sha256(node, path) for path in paths]
        names = [f"{node.host_name}:{path}" for path in paths]
        kept = self._kept(node, paths) if self.keep else None
        provenance = provenance_of(kept or names, sizes, hashes)
        fetched(node, _MATCHED, result, ["sample.parquet"], provenance)
        node.run("rm", "-f", *paths)
        return {
            "matched_on": node.host_name,
            "by": node.run(node.agent, "--version").strip(),
            "kept": kept,
        }

    def _kept(self, node: Node, paths: Sequence[str]) -> list[str]:
        """Move captures to where they outlive the run, and return where."""
        folder = node.run("mktemp", "-d", "/var/tmp/tailtrim-captures-XXXXXXXX").strip()  # noqa: S108 - made by mktemp
        node.run("mv", *paths, folder)
        return [f"{node.host_name}:{folder}/{Path(path).name}" for path in paths]


def matching_of(context: InlineRunContext, measured: Measurement, log: Path) -> Matching:
    """Return the matching of the captures of a run, whose generator has left a log."""
    at, capture = context.at, measured.capture
    files = [Path(capture["taps"][tap]["file"]).name for tap in TAPS]
    return Matching(
        at=at,
        taps=list(zip((at.tap_in.node, at.tap_out.node), files, strict=True)),
        skip_s=context.plan.skip_s,
        quantiles=context.experiment.quantiles,
        departures=departures(log, capture, shares_cpu=measured.shares_cpu),
        keep=context.plan.keep_captures,
    )


def departures(log: Path, capture: Mapping[str, Any], *, shares_cpu: bool) -> Departures:
    """Return when the generator was not up to its schedule, on the clock of the stamps.

    Args:
        log: its ``departures.csv``.
        capture: result of the taps, as ``capture.json`` has it.
        shares_cpu: whether generator and device have a CPU in common.

    Raises:
        OSError: the log cannot be read.
        ValueError: it is not such a log.

    """
    if any(tap.get("stamps") == BY_NIC for tap in capture["taps"].values()):
        # The log has times of CLOCK_REALTIME. Behind a NIC no packet waits in the sender's hands.
        return WELL
    read = Departures.read(log)
    return read.without_stalls() if shares_cpu else read


def fetched(
    node: Node,
    folder: str,
    result: Path,
    others: Sequence[str],
    provenance: dict[str, Any],
) -> None:
    """Fetch a result that a node's agent has written.

    Args:
        node: which one.
        folder: where on the node.
        result: where the run directory is to be.
        others: files in addition to the summary and the tables that all results have.
        provenance: where it comes from.

    Raises:
        RunError: a file is missing, or the connection was lost.

    """
    tables = [f"{name}.parquet" for name in TABLES if name != "sample"]
    with Draft(result) as files:
        for name in (*tables, *others):
            place = files.path / name
            place.parent.mkdir(exist_ok=True)
            shutil.move(got(node, f"{folder}/{name}"), place)
        summary = got(node, f"{folder}/{SUMMARY}").read_text("utf-8").removesuffix("\n")
        files.commit(summary, provenance)


def _sha256(node: Node, path: str) -> str:
    told = node.work("sha256sum", path).stdout.split()
    if not told:
        node.check()
        raise RunError(f"{node.role}: {path}: cannot be read")
    return told[0]


def corrected(at: Forwarding) -> dict[str, Any]:
    """Return what was taken off the latencies for cables, as the record of a run has it."""
    if at.correction is None:
        return {"ns": 0, "source": "none: the lengths of the cables are not known"}
    return at.correction.as_json()


def _bytes(node: Node, name: str) -> int:
    return int(node.run("stat", "-c", "%s", node.path(name)))


def got(node: Node, name: str) -> Path:
    """Return a file of a node, which is here then.

    Raises:
        RunError: it is missing, or the connection was lost.

    """
    path = node.get(name)
    if path is None:
        raise RunError(f"{node.role}: {name} is missing")
    return path
