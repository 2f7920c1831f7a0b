"""From decoded captures to the tail on an engine: :func:`analyze`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tailtrim import _native
from tailtrim.analysis import Analysis
from tailtrim.analysis.engines.sorted_pairs import SortedPairs
from tailtrim.analysis.one_pass import leave
from tailtrim.analysis.options import confidence_level, nanoseconds, probabilities
from tailtrim.errors import DecodedError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import ibis.expr.types as ir
    import pyarrow as pa

    from tailtrim._native import NativeAnalysis
    from tailtrim.analysis.decode import Captured, Decoded
    from tailtrim.analysis.engines.engine import Engine
    from tailtrim.analysis.engines.expressions import Ends, Rules


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    engine: Engine,
    decoded: Decoded,
    *,
    ingress: int | None = None,
    egress: int | None = None,
    skip_s: str | float = 0,
    window_s: str | float = 5,
    quantiles: str | float | Sequence[str | float] = (),
    confidence: str | float = "0.95",
    allow_negative: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
) -> Analysis:
    """Match two decoded captures on an engine.

    Args:
        engine: where; see :func:`tailtrim.analysis.engines.connect`.
        decoded: the directory that holds both captures.
        ingress: the number of the capture of what enters; the first of two by default.
        egress: the number of the capture of what leaves; the second of two by default.
        skip_s: see :func:`tailtrim.analyze`.
        window_s: see :func:`tailtrim.analyze`.
        quantiles: see :func:`tailtrim.analyze`.
        confidence: see :func:`tailtrim.analyze`.
        allow_negative: see :func:`tailtrim.analyze`.
        out: where to leave a run directory.
        keep_samples: see :func:`tailtrim.analyze`.

    Returns:
        The same as :func:`tailtrim.analyze` of the captures.

    Raises:
        CaptureError: many packets left before they entered.
        EngineError: the engine broke.
        OutputError: ``out`` cannot be written.

    """
    if ingress is None or egress is None:
        sides = decoded.pair()
    else:
        sides = (decoded.capture(ingress), decoded.capture(egress))
    if sides[0].number == sides[1].number:
        raise DecodedError(f"{decoded.path}: ingress and egress are the same capture")
    options = {
        "trim_ns": nanoseconds("skip", skip_s),
        "window_ns": nanoseconds("window", window_s),
        "quantiles": probabilities(quantiles),
        "confidence": confidence_level(confidence),
        "watched_to_the_end": False,
        "keep_samples": keep_samples,
    }

    def run(directory: Path | None) -> NativeAnalysis:
        native = Matching(engine, decoded, sides, options, directory).run()
        if not allow_negative:
            native.check_order()
        return native

    if out is None:
        return Analysis(run(None))
    origin = {"engine": engine.name, "decoded": str(decoded.path)}
    paths = [Path(side.name) for side in sides]
    return Analysis(leave(run, paths, out, **origin), directory=out)


class Matching:
    """One analysis on an engine."""

    def __init__(
        self,
        engine: Engine,
        decoded: Decoded,
        sides: tuple[Captured, Captured],
        options: dict[str, Any],
        directory: Path | None,
    ) -> None:
        """Make the books and look at the packets; the options are those of the ledger."""
        from tailtrim.analysis.engines import expressions  # noqa: PLC0415 - ibis takes a second

        self._expressions = expressions
        self._engine = engine
        self._decoded = decoded
        signing = decoded.signing
        self._ledger = _native.NativeLedger(
            sides[0].facts,
            sides[1].facts,
            signature_bytes=signing.signature_bytes,
            signature=signing.signature,
            masks=list(signing.masks),
            directory=directory,
            **options,
        )
        facts = [json.loads(side.facts) for side in sides]
        self._taps = [of_side["tap"] for of_side in facts]
        self._packet = engine.packets(decoded)
        numbers = [engine.number(decoded, side) for side in sides]
        matched_from_ns, beyond_from_ns, outside_from_ns = self._ledger.bounds_ns
        self._rules: Rules = expressions.Rules(
            ingress=numbers[0],
            egress=numbers[1],
            matched_from_ns=matched_from_ns,
            beyond_from_ns=beyond_from_ns,
            outside_from_ns=outside_from_ns,
            shift_ns=self._ledger.shift_ns,
            memory=_native.NativeLedger.MEMORY,
            in_order=not any(tap["out_of_order"] for tap in self._taps),
            bursts=facts[0]["burst_gap_ns"] is not None,
        )

    def run(self) -> _native.NativeAnalysis:
        """Match, then count what is left."""
        of = self._expressions
        packet, rules, ledger = self._packet, self._rules, self._ledger
        one = self._bucket_by_bucket() if self._engine.by_bucket else self._at_once()
        ledger.settle()
        origin_ns = ledger.origin_ns
        return ledger.finish(
            self._by_time(of.outcomes(one, self._ends(), origin_ns), "millisecond"),
            [self._gaps(0, 0), self._gaps(1, rules.shift_ns)],
            [
                self._by_time(of.loads(packet, rules.ingress, 0, origin_ns), "second"),
                self._by_time(of.loads(packet, rules.egress, rules.shift_ns, origin_ns), "second"),
            ],
            self._sign,
        )

    def _at_once(self) -> ir.Table:
        """Match everything, and return the signatures."""
        of, engine = self._expressions, self._engine
        one = of.judged(engine.keep("folded", of.folded(self._packet, self._rules)), self._rules)
        self._tangled(of.repeated(one))
        for batch in engine.rows(of.pairs(one)):
            self._ledger.pairs(batch)
        return one

    def _bucket_by_bucket(self) -> ir.Table:
        """Match each bucket alone, and return the signatures without a pair.

        Packets of one signature share a bucket. Of a bucket its pairs are kept, in order and
        compressed, until all buckets have theirs. So an engine needs memory for one bucket, and
        disk for a few bytes a pair.
        """
        of, engine, packet = self._expressions, self._engine, self._packet
        with SortedPairs(engine.scratch) as runs:
            for bucket in range(self._decoded.buckets):
                folded = of.folded(packet.filter(packet.bucket == bucket), self._rules)
                one = of.judged(engine.keep("folded", folded), self._rules)
                keep = engine.keep if bucket == 0 else engine.add
                rest = keep("rest", of.rest(one))
                runs.write(engine.rows(of.pairs(one)))
            engine.keep("folded", folded.limit(0))
            self._tangled(of.repeated(rest))
            self._ledger.merge(runs.batches())
        return rest

    def _tangled(self, keys: ir.Table) -> None:
        """Match the packets whose signatures repeat: of most captures none."""
        of, engine = self._expressions, self._engine
        (counted,) = engine.rows(keys.aggregate(keys=keys.count()))
        if counted.column("keys")[0].as_py() == 0:
            return
        carrying = engine.keep("carriers", of.carriers(self._packet, keys, self._rules))
        later = engine.keep("forgetting", of.forgetting(self._packet, carrying, self._rules))
        for batch in engine.rows(of.tangled(carrying, later)):
            self._ledger.tangled(batch)

    def _ends(self) -> Ends:
        # Not every engine takes the ends of 64 bits as literals.
        never_ns = self._expressions.NEVER_NS
        return self._expressions.Ends(
            *(max(-never_ns, min(stamp_ns, never_ns)) for stamp_ns in self._ledger.ends_ns)
        )

    def _gaps(self, side: int, shift_ns: int) -> pa.RecordBatch:
        """Count gaps: in order by the engine, else within seconds there and between them here."""
        of, packet = self._expressions, self._packet
        capture = self._rules.egress if side else self._rules.ingress
        until_ns = self._ledger.trimmed_until_ns
        # Without any match, the end of the trim is unknown.
        after_ns = of.NEVER_NS if until_ns is None else max(until_ns, -of.NEVER_NS)
        in_order = self._taps[side]["out_of_order"] == 0
        asked = of.gaps_in_order if in_order else of.gaps_within
        counts: dict[int, int] = {}
        for batch in self._engine.rows(asked(packet, capture, shift_ns, after_ns)):
            for row in batch.to_pylist():
                counts[row["gap_ns"]] = row["packets"]
        if not in_order:
            last_ns = None
            for batch in self._engine.rows(of.ends(packet, capture, shift_ns)):
                for row in batch.to_pylist():
                    if last_ns is not None and last_ns > after_ns:
                        gap_ns = row["first_ns"] - last_ns
                        counts[gap_ns] = counts.get(gap_ns, 0) + 1
                    last_ns = row["last_ns"]
        return _batch({"gap_ns": list(counts), "packets": list(counts.values())})

    def _by_time(self, expression: Any, unit: Literal["millisecond", "second"]) -> pa.RecordBatch:
        """Compute few rows, their seconds or milliseconds numbered."""
        columns: dict[str, list[int]] = {name: [] for name in expression.columns}
        for batch in self._engine.rows(expression):
            for name in columns:
                columns[name] += batch.column(name).to_pylist()
        of = self._expressions
        step_ns = of.SECOND_NS if unit == "second" else of.MILLISECOND_NS
        columns[unit] = [start // step_ns for start in columns.pop(f"{unit}_ns")]
        return _batch(columns)

    def _sign(self, indices: list[int]) -> list[tuple[int, int, int]]:
        """Return the signatures of the worst packets."""
        asked = self._expressions.signatures(self._packet, self._rules.ingress, indices)
        return [
            (row["packet_index"], row["signature_high"], row["signature_low"])
            for batch in self._engine.rows(asked)
            for row in batch.to_pylist()
        ]


def _batch(columns: dict[str, list[int]]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    return pa.record_batch({name: pa.array(rows, pa.int64()) for name, rows in columns.items()})
