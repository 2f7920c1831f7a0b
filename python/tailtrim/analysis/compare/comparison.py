"""The comparison of two sides: :func:`compare`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.compare.configuration import Difference, compared, differences
from tailtrim.analysis.compare.energy import Energy, EnergyRow, Tail, energy_of
from tailtrim.analysis.compare.energy import P as PRICED
from tailtrim.analysis.compare.rows import CurvePoint, Losses, Pairing, Rates, Row, SentRow
from tailtrim.analysis.compare.sources import (
    LOST_NS,
    Group,
    Repetition,
    groups_of,
    named_apart,
    paired,
)
from tailtrim.analysis.options import confidence_level, probabilities
from tailtrim.results.summary import Ingress
from tailtrim.results.tabular import Tabular, of_rows
from tailtrim.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDED, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.analysis.compare.sources import Source

SCHEMA = "tailtrim.comparison/2"

QUANTILES = ("0.5", "0.9", "0.99", "0.999", "0.9999", "0.99999", "0.999999")
_OUTCOMES = tuple(field.name for field in fields(Ingress) if field.name != "packets")
_TEN = Decimal(10)
#: Fewer packets of a run do not say where its quantile is.
_BEYOND = 10


@dataclass(frozen=True)
class Comparison(Tabular):
    """B compared with A.

    ``resampling`` is ``repetitions`` where both sides have several runs, otherwise ``blocks``: then
    the spread of runs is not in the intervals. ``drifts`` where a run changes over its own length;
    then only a difference larger than the possible drift until the next run is shown.
    ``sent`` has the quantiles of all packets sent where any was lost: those of delivered ones say
    little where a side loses its latest. ``resolution_ps`` is that of the coarser stamps of both
    sides. ``rates`` are those of sides whose packets were only counted. ``settings`` is how many
    settings of host, device and traffic both sides record; ``differences`` has those that differ.
    """

    label: str
    a: Pairing
    b: Pairing
    floor: bool
    confidence: str
    margin: float
    power: float
    resampling: str
    drifts: bool
    seed: int
    quantiles: tuple[Row, ...]
    sent: tuple[SentRow, ...]
    curve: tuple[CurvePoint, ...]
    losses: Losses | None
    resolution_ps: int
    energy: Energy
    settings: int
    differences: tuple[Difference, ...]
    groups: tuple[Group, Group]
    rates: Rates | None = None

    def __repr__(self) -> str:
        """Name the sides and the verdict."""
        return f"<Comparison of {self.b.name!r} with {self.a.name!r}: {self.verdict}>"

    @property
    def verdict(self) -> str:
        """``worse`` where anything is, else ``better`` where anything is.

        Otherwise ``not_decided`` where a supported quantile, or the loss, is not decided.
        """
        lost = self.losses and self.losses.a_lost + self.losses.b_lost
        return _worst(
            [self.latency_verdict, *([self.losses.verdict] if self.losses and lost else [])]
        )

    @property
    def latency_verdict(self) -> str:
        """The verdict of the supported quantiles alone."""
        return _worst([row.verdict for row in self.quantiles if row.supported])

    @property
    def most_changed(self) -> Row | None:
        """The quantile that changed most: of those with a difference that is shown, if any.

        Beyond quantiles that are not supported there are ten packets in each run at least.
        """
        known = [
            (abs(math.log(row.ratio)), row)
            for row in self.quantiles
            if row.ratio and (row.supported or self._reaches(row))
        ]
        shown = [one for one in known if one[1].differs]
        return max(shown or known, key=lambda one: one[0], default=(0.0, None))[1]

    def _reaches(self, row: Row) -> bool:
        each = min(side.samples / max(len(side.runs), 1) for side in (self.a, self.b))
        return each * (1 - float(row.p)) >= _BEYOND

    @property
    def tables(self) -> tuple[str, ...]:
        """``quantiles`` with the verdicts, ``sent`` of all packets sent, ``curve``, ``energy``."""
        return ("quantiles", "sent", "curve", "energy")

    def table(self, name: str) -> pa.Table:
        """Return a table by its name: the fields of :class:`Row` and its siblings."""
        if name == "energy":
            return of_rows(EnergyRow, self.energy.rows)
        kind = {"quantiles": Row, "sent": SentRow, "curve": CurvePoint}[name]
        return of_rows(kind, getattr(self, name))

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        del told["groups"]
        for name in ("a", "b", "losses", "energy", "rates"):
            told[name] = told[name] and asdict(told[name])
        for name in ("quantiles", "sent", "curve", "differences"):
            told[name] = [asdict(row) for row in told[name]]
        return {"schema": SCHEMA, "verdict": self.verdict, **told}


class Comparisons(list[Comparison], Tabular):
    """Comparisons, one for each combination of loop variables.

    Its tables are those of :class:`Comparison` with ``a`` and ``b``, the names of the sides.
    """

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return ("quantiles", "sent", "curve", "energy")

    def table(self, name: str) -> pa.Table:
        """Return a table of all comparisons."""
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

        parts = []
        for one in self:
            part = one.table(name)
            for side in (one.b, one.a):
                column = pa.array([side.name] * part.num_rows, pa.string())
                part = part.add_column(0, "a" if side is one.a else "b", column)
            parts.append(part)
        # A column without any value has no type of its own.
        return pa.concat_tables(parts, promote_options="permissive")


def compare(  # noqa: PLR0913 - keyword-only options, each with a default
    a: Source,
    b: Source,
    *,
    quantiles: str | float | Sequence[str | float] = (),
    confidence: str | float = "0.95",
    margin: float = 0.01,
    seed: int = 1,
) -> Comparisons:
    """Compare B with A: one comparison for each combination of loop variables that both have.

    Args:
        a: the baseline: a run directory, an experiment, a folder of run directories, captures as
            ``INGRESS,EGRESS``, or an analysis that kept its samples or left a run directory.
        b: the other side.
        quantiles: quantiles in addition to 0.5, 0.9, 0.99 …, as decimal text or percent.
        confidence: of each interval, and of all verdicts of a comparison together.
        margin: by how much, relatively, a quantile must be better or worse to be called so. Runs
            of one setup drift, and with many packets the smallest drift is shown.
        seed: of the draws.

    Raises:
        RunDirectoryError: a side cannot be read, or nothing is in both.
        CaptureError: a capture cannot be read.
        ValueError: an option makes no sense.

    """
    quantiles, confidence = probabilities(quantiles), confidence_level(confidence)
    sides = named_apart(groups_of(a, quantiles), groups_of(b, quantiles), (a, b))
    return Comparisons(
        compare_groups(*pair, quantiles=quantiles, confidence=confidence, margin=margin, seed=seed)
        for pair in paired(*sides)
    )


def compare_halves(source: Source, **options: Any) -> Comparisons:
    """Compare the second half of each run with its first: differences by chance alone.

    The options and errors are those of :func:`compare_groups`.
    """
    return Comparisons(
        compare_groups(
            *(
                Group(
                    f"{group.name}, {word} half",
                    tuple(_half(run, late) for run in group.repetitions),
                )
                for late, word in enumerate(("first", "second"))
            ),
            **options,
        )
        for group in groups_of(source)
        if group.repetitions
    )


def _half(run: Repetition, late: int) -> Repetition:
    half = run.summary.samples // 2
    return Repetition(f"{run.name}/{late + 1}", run.run, (late * half, half))


def compare_groups(  # noqa: PLR0913 - as compare
    a: Group,
    b: Group,
    *,
    quantiles: Sequence[str] = (),
    confidence: str = "0.95",
    margin: float = 0.01,
    seed: int = 1,
    draws: int | None = None,
) -> Comparison:
    """Compare two groups of runs, as :func:`compare` does those of two sources.

    More ``draws`` of what chance would do tell smaller errors than 0.02 %.
    """
    asked = dict.fromkeys((*QUANTILES, *quantiles))
    runs = [[run.native for run in group.repetitions] for group in (a, b)]
    fewest = min(sum(run.summary.samples for run in group.repetitions) for group in (a, b))

    def found_of(sides: list[list[_native.NativeRepetition]], curve: list[str]) -> dict[str, Any]:
        text = _native.compare_runs(
            *sides,
            quantiles=sorted(asked, key=_share),
            curve=curve,
            confidence=confidence,
            margin=margin,
            seed=seed,
            draws=draws,
        )
        return dict(json.loads(text))

    found = found_of(runs, _curve(fewest))
    lost = _losses(a, b, confidence)
    sent: tuple[SentRow, ...] = ()
    if lost is not None and lost.a_lost + lost.b_lost:
        all_sent = [[run.native_sent for run in group.repetitions] for group in (a, b)]
        sent = tuple(_sent_row(row) for row in found_of(all_sent, [])["quantiles"])
    rows = tuple(_row(row) for row in found["quantiles"])
    return Comparison(
        label=a.key if a.key == b.key else "",
        a=_side(a, found["a"]),
        b=_side(b, found["b"]),
        floor=a.floor and b.floor,
        confidence=confidence,
        margin=found["margin"],
        power=found["power"],
        resampling=found["resampling"],
        drifts=found["drifts"],
        seed=seed,
        quantiles=rows,
        sent=sent,
        curve=tuple(CurvePoint(**point) for point in found["curve"]),
        losses=lost,
        resolution_ps=max(a.resolution_ps, b.resolution_ps),
        energy=energy_of(a, b, _tail(rows)),
        settings=compared(a, b),
        differences=differences(a, b),
        groups=(a, b),
        rates=_rates(a, b),
    )


def _rates(*groups: Group) -> Rates | None:
    means: list[float] = []
    for group in groups:
        whole = [run.summary.throughput for run in group.repetitions if run.part is None]
        known = [one for one in whole if one is not None]
        if not known or len(known) < len(group.repetitions):
            return None
        means += [fmean(one.sent_pps for one in known), fmean(one.received_pps for one in known)]
    return Rates(*means)


def _share(text: str) -> Decimal:
    try:
        return Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ArithmeticError as error:
        raise ValueError(f"invalid quantile {text!r}, expected 0.9999 or 99.99%") from error


def _curve(samples: int) -> list[str]:
    """Return nine quantiles a decade as far as there are samples: 0.1 … 0.9, 0.91 … 0.99, …."""
    texts: list[str] = []
    decade = 1
    while _TEN**decade <= samples * 10:
        shares = [1 - tenths * _TEN**-decade for tenths in range(9, 0, -1)]
        texts += [f"{p:f}" for p in shares if samples * (1 - p) >= 1]
        decade += 1
    return texts


def _row(row: dict[str, Any]) -> Row:
    sides = {}
    for side in ("a", "b"):
        told = row.pop(side)
        sides[f"{side}_ns"] = told["value_ns"]
        sides[f"{side}_effective"] = told["effective_samples"]
    return Row(**row, **sides)


def _tail(rows: Sequence[Row]) -> Tail | None:
    row = next((row for row in rows if row.p == PRICED), None)
    if row is None:
        return None
    return Tail(row.a_ns, row.b_ns, row.low, row.high, row.differs)


def _sent_row(row: dict[str, Any]) -> SentRow:
    told = {field.name: row[field.name] for field in fields(SentRow) if field.name in row}
    for side in ("a", "b"):
        value_ns = row[side]["value_ns"]
        told[f"{side}_ns"] = None if value_ns == LOST_NS else value_ns
    return SentRow(**told)


def _worst(verdicts: Sequence[str]) -> str:
    every = (WORSE, BETTER, NOT_DECIDED, NO_DIFFERENCE)
    return next((verdict for verdict in every if verdict in verdicts), NOT_DECIDED)


def _side(group: Group, found: dict[str, Any]) -> Pairing:
    # Of a part of a run, only the samples are known.
    sides = [run.summary.ingress for run in group.repetitions if run.part is None]
    return Pairing(
        name=group.name,
        runs=tuple(run.name for run in group.repetitions),
        **{name: found[name] for name in ("samples", "units", "min_ns", "max_ns")},
        outcomes={name: sum(getattr(side, name) for side in sides) for name in _OUTCOMES},
        left_out=group.left_out,
    )


def _losses(a: Group, b: Group, confidence: str) -> Losses | None:
    counted = [[run.losses() for run in group.repetitions] for group in (a, b)]
    if not all(any(side) for side in counted):
        return None
    found = json.loads(_native.compare_losses(*counted, confidence=confidence))
    sides = {f"{side}_{name}": found[side][name] for side in "ab" for name in ("lost", "known")}
    told = {field.name: found[field.name] for field in fields(Verdict) if field.name in found}
    return Losses(**sides, p_value=found["p_value"], **told)
