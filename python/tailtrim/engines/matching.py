"""From decoded captures to the tail on an engine: :func:`analyze`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis import Analysis, nanoseconds
from tailtrim.errors import DecodedError
from tailtrim.rundir import Draft, provenance, sha256

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.decode import Captured, Decoded
    from tailtrim.engines.expressions import Rules, Settled
    from tailtrim.engines.protocol import Engine


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    engine: Engine,
    decoded: Decoded,
    *,
    ingress: int | None = None,
    egress: int | None = None,
    trim_s: str | float = 1,
    window_s: str | float = 5,
    quantiles: Sequence[str] = (),
    confidence: str = "0.95",
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
) -> Analysis:
    """Match two decoded captures on an engine.

    Args:
        engine: where; see :func:`tailtrim.engines.connect`.
        decoded: the directory that holds both captures.
        ingress: the number of the capture of what enters; the first of two by default.
        egress: the number of the capture of what leaves; the second of two by default.
        trim_s: see :func:`tailtrim.analyze`.
        window_s: see :func:`tailtrim.analyze`.
        quantiles: see :func:`tailtrim.analyze`.
        confidence: see :func:`tailtrim.analyze`.
        out: where to leave a run directory.
        keep_samples: see :func:`tailtrim.analyze`.

    Returns:
        The same as :func:`tailtrim.analyze` of the captures.

    Raises:
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
        "trim_ns": nanoseconds("trim", trim_s),
        "window_ns": nanoseconds("window", window_s),
        "quantiles": list(quantiles),
        "confidence": confidence,
        "keep_samples": keep_samples,
    }
    if out is None:
        return Analysis(_Matching(engine, decoded, sides, options, None).run())
    paths = [Path(side.name) for side in sides]
    with Draft(out) as draft, ThreadPoolExecutor(1) as hashing:
        hashes = hashing.map(sha256, paths)
        native = _Matching(engine, decoded, sides, options, draft.path).run()
        native.write_tables(draft.path)
        told = provenance(paths, list(hashes)) | {
            "engine": engine.name,
            "decoded": str(decoded.path),
        }
        draft.commit(native.summary_json(), told)
    return Analysis(native)


class _Matching:
    """One analysis on an engine."""

    def __init__(
        self,
        engine: Engine,
        decoded: Decoded,
        sides: tuple[Captured, Captured],
        options: dict[str, Any],
        directory: Path | None,
    ) -> None:
        from tailtrim.engines import expressions  # noqa: PLC0415 - ibis takes a second

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
        self._sides = sides
        self._packet = engine.packets(decoded)
        numbers = [engine.number(decoded, side) for side in sides]
        self._rules: Rules = expressions.Rules(
            ingress=numbers[0],
            egress=numbers[1],
            window_ns=options["window_ns"],
            early_ns=_native.NativeLedger.early_ns,
            shift_ns=self._ledger.shift_ns,
            memory=_native.NativeLedger.MEMORY,
        )

    def run(self) -> _native.NativeAnalysis:
        """Match, then count what is left."""
        of = self._expressions
        packet, rules, ledger = self._packet, self._rules, self._ledger
        one = self._engine.keep("folded", self._folded())
        for batch in self._engine.rows(of.tangled(packet, one, rules)):
            ledger.tangled(batch)
        for batch in self._engine.rows(of.pairs(one)):
            ledger.pairs(batch)
        ledger.settle()
        settled = self._settled()
        return ledger.finish(
            self._seconds(of.outcomes(one, rules, settled)),
            [self._gaps(rules.ingress, 0), self._gaps(rules.egress, rules.shift_ns)],
            [
                self._seconds(of.loads(packet, rules.ingress, 0, settled.origin_ns)),
                self._seconds(of.loads(packet, rules.egress, rules.shift_ns, settled.origin_ns)),
            ],
            self._sign,
        )

    def _folded(self) -> list[Any]:
        """Bucket by bucket where that is cheaper: packets of one signature share one."""
        packet, of = self._packet, self._expressions
        if not self._engine.by_bucket:
            return [of.folded(packet, self._rules)]
        return [
            of.folded(packet.filter(packet.bucket == bucket), self._rules)
            for bucket in range(self._decoded.buckets)
        ]

    def _settled(self) -> Settled:
        import json  # noqa: PLC0415

        never_ns = self._expressions.NEVER_NS
        taps = [json.loads(side.facts)["tap"] for side in self._sides]
        first_ns, last_ns = taps[0]["first_ns"], taps[1]["last_ns"]
        until_ns = self._ledger.trimmed_until_ns
        return self._expressions.Settled(
            trimmed_until_ns=max(-never_ns, -never_ns if until_ns is None else until_ns),
            longest_ns=self._ledger.longest_ns,
            # Without any packet that entered, all that left may have entered before.
            first_ingress_ns=never_ns if first_ns is None else first_ns,
            last_egress_ns=-never_ns if last_ns is None else last_ns + self._rules.shift_ns,
            origin_ns=self._ledger.origin_ns,
        )

    def _gaps(self, capture: int, shift_ns: int) -> pa.RecordBatch:
        """Count gaps: within seconds by the engine, between them here."""
        of = self._expressions
        until_ns = self._ledger.trimmed_until_ns
        # Without any match, nobody knows where the trim ends.
        after_ns = of.NEVER_NS if until_ns is None else max(until_ns, -of.NEVER_NS)
        counts: dict[int, int] = {}
        last_ns = None
        for batch in self._engine.rows(of.gaps_within(self._packet, capture, shift_ns, after_ns)):
            for row in batch.to_pylist():
                counts[row["gap_ns"]] = row["packets"]
        for batch in self._engine.rows(of.ends(self._packet, capture, shift_ns)):
            for row in batch.to_pylist():
                if last_ns is not None and last_ns > after_ns:
                    gap_ns = row["first_ns"] - last_ns
                    counts[gap_ns] = counts.get(gap_ns, 0) + 1
                last_ns = row["last_ns"]
        return _batch({"gap_ns": list(counts), "packets": list(counts.values())})

    def _seconds(self, expression: Any) -> pa.RecordBatch:
        """Compute few rows, their seconds numbered."""
        columns: dict[str, list[int]] = {name: [] for name in expression.columns}
        for batch in self._engine.rows(expression):
            for name in columns:
                columns[name] += batch.column(name).to_pylist()
        starts = columns.pop("second_ns")
        columns["second"] = [start // self._expressions.SECOND_NS for start in starts]
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
