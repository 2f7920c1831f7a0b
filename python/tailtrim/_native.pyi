from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION: str

class TailtrimError(Exception): ...
class CaptureError(TailtrimError): ...
class OutputError(TailtrimError): ...

class NativeAnalysis:
    def summary_json(self) -> str: ...
    def table(self, name: str) -> Any: ...
    def write_tables(self, directory: Path) -> None: ...

def analyze(
    ingress: Path,
    egress: Path,
    *,
    signature: str | None,
    masks: list[str],
    trim_ns: int,
    window_ns: int,
    quantiles: list[str],
    confidence: str,
    x552_trailer: bool,
    salvage: bool,
    watched_to_the_end: bool,
    directory: Path | None,
    keep_samples: bool,
    progress: Callable[[float | None], object] | None,
) -> NativeAnalysis: ...
def periodic_causes(samples: Any) -> str: ...
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
    samples: Any,
    events: str,
    *,
    cpu: int,
    error_ns: int,
    late_from: str,
    quantiles: list[str],
    shifts_ns: list[int],
) -> str: ...

class NativeRepetition:
    def __init__(self, samples: Any) -> None: ...

def compare_runs(
    a: list[NativeRepetition],
    b: list[NativeRepetition],
    *,
    quantiles: list[str],
    curve: list[str],
    confidence: str,
    margin: float,
    seed: int,
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
    design_effect: float,
    samples: Any | None,
) -> str: ...
