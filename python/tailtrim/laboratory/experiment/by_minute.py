"""Runs of hours: packets are matched while they come, and results are kept by minute."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.analysis.options import nanoseconds
from tailtrim.errors import HostError, TailtrimError
from tailtrim.laboratory.experiment import failed_runs
from tailtrim.laboratory.experiment.matching import TAPS, fetched, got
from tailtrim.results.layout import AROUND, COUNTERS, EVENTS, MINUTES, around
from tailtrim.results.writing import provenance_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: The taps of a testbed, in the order of matching.
_PORTS = ("tap_in", "tap_out")


@dataclass(frozen=True, slots=True)
class ByMinute:
    """Parameters of the packet matching on the timestamper, while the run lasts."""

    at: Forwarding
    skip_s: float
    quantiles: Sequence[str]
    #: The name of its run directory.
    run: str

    @property
    def _folder(self) -> str:
        return failed_runs.matched(self.run)

    @property
    def node(self) -> Node:
        """The node of both taps.

        Raises:
            HostError: each tap is on another one.

        """
        one, other = self.at.tap_in.node, self.at.tap_out.node
        if one is not other:
            raise apart(one.named, other.named)
        return one

    @property
    def words(self) -> list[str]:
        """Further arguments of the agent of the taps."""
        correction_ns = 0 if self.at.correction is None else self.at.correction.ns
        words = ["--analyze", self.node.path(self._folder), "--by-minute", "--live"]
        words += ["--skip", f"{nanoseconds('skip', self.skip_s)}ns"]
        words += ["--correction", str(correction_ns)]
        return [*words, *(part for p in self.quantiles for part in ("--quantile", p))]

    def counting(self, cpus: Sequence[int]) -> list[str]:
        """Return the arguments of the agent that counts what slows CPUs of the device down."""
        watched = ",".join(map(str, cpus))
        return ["counters", "--cpus", watched, "--out", self.at.dut.path(COUNTERS)]

    def fetch(self, capture: dict[str, Any], result: Path) -> dict[str, Any]:
        """Fetch the result; return where packets were matched.

        Args:
            capture: result of the agent of the taps; its ``around`` are the worst packets.
            result: where the run directory is to be.

        Raises:
            RunError: a file is missing, or the connection was lost.

        """
        worst = [one["ingress_ns"] for one in capture["around"]]
        captures = [f"{AROUND}/{around(ns, f'{tap}.pcap.zst')}" for ns in worst for tap in TAPS]
        traces = [
            f"{AROUND}/{around(one['ingress_ns'], EVENTS)}"
            for one in capture["around"]
            if "trace" in one
        ]
        node, folder = self.node, self._folder
        places = {name: got(node, f"{folder}/{name}") for name in (*MINUTES, *captures)}
        places |= {name: got(self.at.dut, name) for name in (COUNTERS, *traces)}
        names = [f"{node.host_name}:{getattr(self.at, tap).name}" for tap in _PORTS]
        unknown = [None] * len(names)
        fetched(node, folder, result, (), provenance_of(names, unknown, unknown))
        # Not before: a directory without a summary is removed if something fails.
        for name, place in places.items():
            (result / name).parent.mkdir(exist_ok=True)
            shutil.move(place, result / name)
        # Where a device is kept up, the nodes go on.
        node.run("rm", "-rf", node.path(folder))
        dut = self.at.dut.outside
        for name in (COUNTERS, AROUND) if traces else (COUNTERS,):
            dut.run("rm", "-rf", dut.path(name))
        by = node.run(node.agent, "--version").strip()
        return {"matched_on": node.host_name, "by": by, "kept": None}

    def rescue(self) -> None:
        """Fetch what there is of a run that fails, as long as its nodes can be reached."""
        with suppress(TailtrimError, OSError):
            self._rescue_minutes()
        with suppress(TailtrimError, OSError):
            self._rescue_counters()

    def _rescue_minutes(self) -> None:
        node = self.node
        if node.lost:
            return
        for name in (*MINUTES, *_around(node, node.path(f"{self._folder}/{AROUND}"))):
            node.get(f"{self._folder}/{name}")

    def _rescue_counters(self) -> None:
        dut = self.at.dut
        if dut.lost:
            return
        dut.get(COUNTERS)
        for name in _around(dut.outside, dut.path(AROUND)):
            dut.get(name)


def _around(node: Node, folder: str) -> list[str]:
    kept = node.call("ls", folder).stdout.split()
    return [f"{AROUND}/{one}" for one in kept]


def stalled(run: str, generator: dict[str, Any]) -> list[str]:
    """Return what users should know of a run whose generator stood still, from its result.

    Packets behind such a stall are set aside where captures are matched after the run.
    """
    sending = generator["stalls"]["sending"]
    if not sending["count"]:
        return []
    times = "once" if sending["count"] == 1 else f"{sending['count']:,} times"
    told = (
        f"{run}: the generator stood still {times} in the middle of sending, for"
        f" {units.time(sending['longest_ns'])} at most; by_minute does not set the packets behind"
        " it aside, so the highest percentiles, the maximum and around/ may show the generator"
    )
    return [told]


def apart(one: str, other: str) -> HostError:
    """Return why packets of taps on two nodes are not matched by minute."""
    return HostError(
        f"by_minute: the taps are on {one} and {other}, expected one node that has both, since it"
        " matches their packets"
    )


@contextmanager
def rescue_minutes(by_minute: ByMinute | None) -> Iterator[None]:
    """Fetch the minutes of a run that fails within the context, however it does.

    Nodes on other hosts take their files with them.
    """
    try:
        yield
    except BaseException:
        if by_minute is not None:
            by_minute.rescue()
        raise
