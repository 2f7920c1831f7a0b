from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

VERSION: str

class TailtrimError(Exception): ...
class CaptureError(TailtrimError): ...
class TwoDirectionsError(CaptureError): ...
class OutputError(TailtrimError): ...

class NativeAnalysis:
    def summary_json(self) -> str: ...
    def check_order(self) -> None: ...
    def table(self, name: str) -> pa.RecordBatch: ...
    def write_tables(self, directory: Path) -> None: ...

class NativeDecoder:
    def __init__(
        self,
        path: Path,
        *,
        signature: str | None,
        masks: list[str],
        x552_trailer: bool,
        salvage: bool,
        nanoseconds: bool = False,
        checkpoint: str | None = None,
    ) -> None: ...
    @property
    def signable(self) -> int: ...
    @property
    def first(self) -> tuple[int, int, int, int] | None: ...
    def start(self, signed: int, buckets: int) -> None: ...
    def read(self, packets: int) -> int: ...
    def bucket(self, bucket: int) -> pa.RecordBatch: ...
    def done(self) -> float | None: ...
    def checkpoint_json(self) -> str: ...
    def facts_json(self) -> str: ...

class NativeLedger:
    MEMORY: int
    def __init__(
        self,
        ingress: str,
        egress: str,
        *,
        signature_bytes: int,
        signature: str | None,
        masks: list[str],
        trim_ns: int,
        window_ns: int,
        quantiles: list[str],
        confidence: str,
        watched_to_the_end: bool,
        directory: Path | None,
        keep_samples: bool,
    ) -> None: ...
    @property
    def shift_ns(self) -> int: ...
    @property
    def origin_ns(self) -> int: ...
    @property
    def trimmed_until_ns(self) -> int | None: ...
    @property
    def bounds_ns(self) -> tuple[int, int, int]: ...
    @property
    def ends_ns(self) -> tuple[int, int, int, int]: ...
    def tangled(self, packets: pa.RecordBatch) -> None: ...
    def pairs(self, pairs: pa.RecordBatch) -> None: ...
    def merge(self, runs: list[Iterator[pa.RecordBatch]]) -> None: ...
    def settle(self) -> None: ...
    def finish(
        self,
        outcomes: pa.RecordBatch,
        gaps: list[pa.RecordBatch],
        loads: list[pa.RecordBatch],
        sign: Callable[[list[int]], list[tuple[int, int, int]]],
    ) -> NativeAnalysis: ...

def analyze(
    ingress: Path,
    egress: Path,
    options: dict[str, Any],
    *,
    directory: Path | None,
    keep_samples: bool,
    progress: Callable[[float | None], object] | None,
    jobs: int | None = ...,
    interfaces: tuple[str | None, str | None] = ...,
) -> NativeAnalysis: ...
def protocols() -> list[str]: ...
def fields() -> list[str]: ...
def survey(path: Path) -> list[tuple[str, str, int]]: ...
def analyze_by(
    ingress: Path,
    egress: Path,
    field: str,
    groups: int,
    options: dict[str, Any],
    *,
    jobs: int | None = ...,
    interfaces: tuple[str | None, str | None] = ...,
) -> list[tuple[str | None, str]]: ...
def outline_stretch(captures: list[Path], task: bytes, options: dict[str, Any]) -> bytes | None: ...
def count_stretch(
    captures: list[Path], task: bytes, order: bytes, options: dict[str, Any]
) -> bytes | None: ...

class StretchHosts(Protocol):
    def outlines(self, tasks: list[bytes]) -> Iterable[tuple[int, bytes | None]]: ...
    def counts(
        self, ordered: list[tuple[int, bytes, bytes]]
    ) -> Iterable[tuple[int, bytes | None]]: ...

def analyze_stretches(
    captures: list[Path],
    options: dict[str, Any],
    hosts: StretchHosts,
    *,
    packets: int,
    progress: Callable[[float | None], object] | None,
) -> NativeAnalysis | None: ...
def analyze_round_trips(
    sent: Iterable[pa.RecordBatch],
    received: Iterable[pa.RecordBatch],
    *,
    names: tuple[str, str],
    length: int,
    window_ns: int,
    directory: Path | None,
) -> NativeAnalysis: ...
def count_exchanges(
    capture: Path, options: dict[str, Any]
) -> tuple[list[tuple[str, int, int]], str | None, tuple[int, int, int, int]]: ...
def analyze_exchanges(
    capture: Path,
    protocol: str,
    options: dict[str, Any],
    *,
    directory: Path | None,
    keep_samples: bool,
    progress: Callable[[float | None], object] | None,
) -> NativeAnalysis: ...
def periodic_causes(samples: pa.Table) -> str: ...
def phases_covered(
    *, schedule: str, rate: str, frame_bytes: str, run_ns: int, seed: int, drift_ppb: int
) -> list[tuple[int, float]]: ...
def simulate_interrupts(
    *,
    schedule: str,
    interval_ns: tuple[int, int],
    drift_ppb: int,
    latency_ns: int,
    run_ns: int,
    interrupts: list[tuple[tuple[int, int], int, list[int]]],
) -> str: ...
def explain_late(
    samples: pa.Table,
    events: str,
    *,
    cpu: int,
    error_ns: int,
    throttled: str,
    late_from: str,
    quantiles: list[str],
    shifts_ns: list[int],
) -> str: ...
def exchange(one: Path, other: Path) -> None: ...
def quantile(text: str) -> str: ...
def confidence(text: str) -> str: ...
def episodes_needed(confidence: str) -> int: ...
def nanoseconds(text: str, unit_ns: int) -> int | None: ...
def rate(text: str) -> str: ...

class NativeRepetition:
    def __init__(self, samples: pa.Table) -> None: ...

def compare_runs(
    a: list[NativeRepetition],
    b: list[NativeRepetition],
    *,
    quantiles: list[str],
    curve: list[str],
    confidence: str,
    margin: float,
    seed: int,
    draws: int | None = ...,
) -> str: ...
def compare_losses(
    a: list[list[tuple[int, int]]],
    b: list[list[tuple[int, int]]],
    *,
    confidence: str,
) -> str: ...
def plan_length(
    *,
    quantile: str,
    precision: float,
    confidence: str,
    assurance: str,
    design_effect: float,
    samples: pa.Table | None,
) -> str: ...
def design_effect(samples: pa.Table, *, deadline_ns: int, confidence: str) -> float: ...
def promised(
    *,
    bad: int,
    packets: int,
    design_effect: float,
    limit: float,
    confidence: str,
    assurance: str,
) -> str: ...
