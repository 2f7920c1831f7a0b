"""Verdicts on the objectives of a run, as far as its packets can tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol
from xml.etree import ElementTree as ET

from tailtrim.results import support
from tailtrim.units import percent, time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from tailtrim.analysis.slo.objective import Objective
    from tailtrim.results.summary import Quantile, Summary


class Decision(StrEnum):
    """Position of an interval relative to a limit."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "not decided"


class Run(Protocol):
    """A run directory, or an analysis that kept its samples."""

    summary: Summary

    def table(self, name: str) -> pa.Table:
        """Return a table by its name."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run that objectives are held against, by name.

    Those of one ``group`` are repetitions of the same combination. ``invalid`` ones take no part in
    verdicts over several runs.
    """

    name: str
    run: Run
    group: str = ""
    invalid: bool = False

    @property
    def summary(self) -> Summary:
        """The numbers of the run."""
        return self.run.summary


@dataclass(frozen=True, slots=True)
class Verdict:
    """An objective and the verdict of a run.

    ``low`` and ``high`` are the interval in the objective's unit; ``None`` where it has no such
    bound. ``value`` is infinite where the quantile lies among lost packets. ``resolution_ps`` is
    that of the stamps.
    """

    objective: Objective
    decision: Decision
    value: float | None
    low: float | None
    high: float | None
    why: str
    resolution_ps: int = 1_000

    @property
    def word(self) -> str:
        """The decision; a promise is met, or it is not."""
        words = {Decision.PASSED: "met", Decision.FAILED: "not met"}
        of_promise = self.objective.promise is not None
        return words.get(self.decision, str(self.decision)) if of_promise else str(self.decision)


def verdicts(summary: Summary, asked: Iterable[Objective]) -> list[Verdict]:
    """Hold a run against its objectives."""
    return [_verdict(summary, objective) for objective in asked]


def of_run(run: JudgedRun, asked: Iterable[Objective]) -> list[Verdict]:
    """Hold a run against its objectives; an invalid one decides nothing."""
    found = verdicts(run.summary, asked)
    if not run.invalid:
        return found
    return [replace(one, decision=Decision.UNDECIDED, why="the run is invalid") for one in found]


def _verdict(summary: Summary, objective: Objective) -> Verdict:
    value, low, high, why = _known(summary, objective)
    limit = float(objective.limit)
    if high is not None and high < limit:
        decision = Decision.PASSED
    elif low is not None and low >= limit:
        decision = Decision.FAILED
    else:
        decision = Decision.UNDECIDED
    return Verdict(objective, decision, value, low, high, why, summary.resolution_ps)


_Known = tuple[float | None, float | None, float | None, str]


def _known(summary: Summary, objective: Objective) -> _Known:
    if objective.what == "loss":
        return _loss(summary)
    if summary.throughput is not None:
        return _unknown("packets were only counted: no latency is known")
    latency = summary.latency_ns
    # Percentiles that were imported come without the number of their samples.
    # Lost packets are among those that delivery-adjusted percentiles count.
    if not summary.samples and not summary.unordered and not objective.adjusted:
        return _unknown("no packet was matched")
    why = _left_out(summary)
    if objective.what == "max" and latency.max is not None:
        return _largest(summary, latency.max)
    if objective.what == "mean" and latency.mean is not None:
        low, high = (None, None) if why else (latency.mean.low, latency.mean.high)
        return latency.mean.value, low, high, why or _sure(summary)
    return _of_quantile(summary, objective)


def _largest(summary: Summary, latency_ns: int) -> _Known:
    if beyond := summary.ingress.beyond_window:
        window_ns = summary.window_ns
        return window_ns, window_ns, None, f"{beyond:,} came after the window of {time(window_ns)}"
    left_out = _left_out(summary)
    high = None if left_out else latency_ns
    return latency_ns, latency_ns, high, left_out or "the largest of this run"


def _of_quantile(summary: Summary, objective: Objective) -> _Known:
    if objective.adjusted and summary.loss is None:
        return _unknown("no packet has a known outcome")
    latency = summary.latency_ns
    among = summary.delivery_adjusted_ns if objective.adjusted else latency.quantiles
    found = next((quantile for quantile in among if quantile.p == objective.p), None)
    if found is None or (found.value is None and not objective.adjusted):
        asked = objective.what if objective.p is None else f"p{percent(objective.p)}"
        return _unknown(f"its summary lacks {asked}: analyse the captures again")
    return _quantile(found, summary)


def _unknown(why: str) -> _Known:
    return None, None, None, why


def _quantile(quantile: Quantile, summary: Summary) -> _Known:
    lost = quantile.value is None
    value = math.inf if lost else quantile.value
    low = math.inf if quantile.low is None and quantile.supported and lost else quantile.low
    if support.is_doubtful(quantile, summary) and (left_out := _left_out(summary)):
        why = left_out
    elif not quantile.supported and not summary.unordered:
        why = f"not supported: {support.shortage(quantile, summary)}"
    else:
        why = _sure(summary)
    return value, low, quantile.high if quantile.supported else None, why


def _sure(summary: Summary) -> str:
    if summary.unordered:
        return "the order of the packets is unknown, so there is no interval"
    return f"{float(summary.latency_ns.confidence) * 100:g} % confidence"


def _loss(summary: Summary) -> _Known:
    """Return the loss with Wilson's interval, whose packets are taken as independent.

    Duplicates may all have left, or have all been lost: the interval holds both.
    """
    ingress = summary.ingress
    undelivered = ingress.lost + ingress.beyond_window
    known = ingress.matched + undelivered
    if not known:
        return _unknown("no packet has a known outcome")
    packets, most = known + ingress.duplicate, undelivered + ingress.duplicate
    confidence = float(summary.latency_ns.confidence)
    low, _ = _share(undelivered, packets, confidence)
    _, high = _share(most, packets, confidence)
    told = f"{undelivered:,}" if most == undelivered else f"{undelivered:,} to {most:,}"
    why = f"{told} of {packets:,} packets, {_sure(summary)} if they were lost independently"
    return undelivered / known, low, high, why


def _share(some: int, packets: int, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a share of packets."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, z2 = some / packets, z * z
    middle = (share + z2 / (2 * packets)) / (1 + z2 / packets)
    spread = math.sqrt(share * (1 - share) / packets + z2 / (4 * packets * packets))
    reach = z / (1 + z2 / packets) * spread
    # At the ends, the interval begins at the share itself; computed, it would miss it by rounding.
    return middle - reach if some else 0.0, middle + reach if some < packets else 1.0


def _left_out(summary: Summary) -> str | None:
    """Say that packets are in no latency, so that they may have any; ``None`` if none."""
    count = summary.ingress.duplicate
    return f"{count:,} duplicates are in no latency" if count else None


def junit(found: Mapping[str, Sequence[Verdict]]) -> str:
    """Return the XML: a test suite for each run, a test case for each objective.

    An undecided objective is an error there, not a skipped test: CI systems ignore skipped ones.
    """
    root = ET.Element("testsuites", name="tailtrim")
    for run, of_run in found.items():
        counts = dict.fromkeys(Decision, 0)
        for verdict in of_run:
            counts[verdict.decision] += 1
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_text(run),
            tests=str(len(of_run)),
            failures=str(counts[Decision.FAILED]),
            errors=str(counts[Decision.UNDECIDED]),
        )
        for verdict in of_run:
            name = str(verdict.objective)
            case = ET.SubElement(suite, "testcase", classname=_text(run), name=name)
            told = f"{verdict.word}: {verdict.why}"
            if verdict.decision is Decision.FAILED:
                ET.SubElement(case, "failure", message=told)
            elif verdict.decision is Decision.UNDECIDED:
                ET.SubElement(case, "error", message=told)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _text(name: str) -> str:
    """Leave out characters that XML cannot have."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
