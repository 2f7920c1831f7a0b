"""Causes of late packets by the trace of a run: :func:`traced`."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import _native, units
from tailtrim.errors import RunDirectoryError
from tailtrim.results import EVENTS

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tailtrim.results import RunDirectory

EVENTS_SCHEMA = "tailtrim.events/1"

# Shifts for the null, in ns: at least a tenth of the period away from multiples of that of any
# usual tick. Shifted by a multiple, a tick would explain as much as unshifted.
_SHIFTS_NS = (137_137_137, 471_234_567, 931_313_131)
_QUANTILES = (
    *("0.5", "0.75", "0.9", "0.95", "0.98", "0.99", "0.995", "0.998", "0.999"),
    *("0.9995", "0.9998", "0.9999", "0.99995", "0.99998", "0.99999"),
)


@dataclass(frozen=True, slots=True)
class Host:
    """Explanation by a trace of the host: the verdict as JSON data, and the data it lacks.

    ``quantiles`` are those of the verdict's ``quantiles_ns`` and of each cause's ``without_ns``. Of
    the packets, those are explained that passed while the trace was recorded: ``covered`` of all.
    """

    cpu: int
    holes: int
    missing: tuple[str, ...]
    quantiles: tuple[str, ...]
    verdict: dict[str, Any]
    covered: float = 1.0


def traced(
    directory: RunDirectory, *, cpu: int | None = None, late_from: str = "0.999"
) -> Host | None:
    """Return what the run's trace says of its late packets; ``None`` where it has no trace.

    The arguments and errors are those of :func:`explain`.
    """
    path = directory.path / EVENTS
    if not path.exists():
        return None
    header, events = _events(path)
    # Recorded without events there are only counters of interrupts, which are statistical.
    if header.get("source") == "counters":
        return None
    return _host(directory, path, header, events, cpu=cpu, late_from=late_from)


def traced_by(
    path: Path, directory: RunDirectory, *, cpu: int | None = None, late_from: str = "0.999"
) -> Host:
    """Return what a trace says of the run's late packets.

    The arguments and errors are those of :func:`explain`.
    """
    header, events = _events(path)
    if header.get("source") == "counters":
        raise RunDirectoryError(f"{path}: has no events, expected a trace of tracefs or perf")
    return _host(directory, path, header, events, cpu=cpu, late_from=late_from)


def _host(  # noqa: PLR0913 - what was read, and two options
    directory: RunDirectory,
    path: Path,
    header: dict[str, Any],
    events: str,
    *,
    cpu: int | None,
    late_from: str,
) -> Host:
    samples = directory.table("sample")
    packets = samples.num_rows
    samples = _covered(samples, header, events, path)
    cpus = _cpus(str(header.get("cpus", "")))
    if cpu is not None:
        chosen = cpu
    elif len(cpus) == 1:
        chosen = cpus[0]
    else:
        found = _serving_cpu(events, samples)
        if found is None:
            listed = header.get("cpus")
            message = (
                f"the trace covers CPUs {listed!r}: say which of them serves the packets (cpu)"
            )
            raise ValueError(message)
        chosen = found
    text = _native.explain_late(
        samples,
        events,
        cpu=chosen,
        error_ns=int(header["error_ns"]),
        throttled=json.dumps(header.get("throttled", [])),
        late_from=late_from,
        quantiles=list(_QUANTILES),
        shifts_ns=list(_SHIFTS_NS),
    )
    missing = tuple(header.get("missing", ()))
    holes = int(header.get("holes", 0))
    covered = samples.num_rows / packets
    return Host(chosen, holes, missing, _QUANTILES, json.loads(text), covered)


def _covered(samples: pa.Table, header: dict[str, Any], events: str, path: Path) -> pa.Table:
    """Return the packets that passed while the trace was recorded.

    Of older traces it is not known when they began and ended: then all are returned, if any event
    falls into the run.

    Raises:
        RunDirectoryError: no packet passed meanwhile: the trace is of another time.

    """
    import pyarrow.compute as pc  # noqa: PLC0415 - takes longer to import than most commands run

    came, left = samples["ingress_ns"], samples["egress_ns"]
    run_ns = pc.min(came).as_py(), pc.max(left).as_py()
    begin, end = header.get("armed_ns"), header.get("disarmed_ns")
    if isinstance(begin, int) and isinstance(end, int):
        trace_ns = begin, end
        inside = pc.and_(pc.greater_equal(came, begin), pc.less_equal(left, end))
        found = samples.filter(inside)
    else:
        told = [json.loads(line) for line in events.splitlines()] or [{}]
        begin = min(one.get("start_ns", run_ns[0]) for one in told)
        end = max(one.get("end_ns", run_ns[1]) for one in told)
        trace_ns = begin, end
        overlap = begin <= run_ns[1] and run_ns[0] <= end
        found = samples if overlap else samples.slice(0, 0)
    if not found.num_rows:
        trace, run = (" to ".join(map(units.moment, span)) for span in (trace_ns, run_ns))
        raise RunDirectoryError(
            f"{path}: is not of the time of the run: it covers {trace}, the run {run}; expected"
            " a trace that was recorded on the device's host while the packets passed"
        )
    return found


def service(samples: pa.Table) -> dict[str, int]:
    """Return what the stamps of a run's samples say of the device as a queue.

    ``base_ns`` is the latency of a packet that does not wait, ``service_ns`` the part of it in
    which the CPU is busy with it alone, ``batch`` how many packets leave together.
    """
    told = _native.explain_late(
        samples,
        "",
        cpu=0,
        error_ns=0,
        throttled="[]",
        late_from="1",
        quantiles=[],
        shifts_ns=[],
    )
    found: dict[str, int] = json.loads(told)["service"]
    return found


def _events(path: Path) -> tuple[dict[str, Any], str]:
    """Split the file into its first line and the events."""
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            first, _, events = stream.read().decode().partition("\n")
        header = json.loads(first)
        if header["schema"] != EVENTS_SCHEMA:
            raise ValueError(f"the schema is {header['schema']!r}, expected {EVENTS_SCHEMA!r}")  # noqa: TRY301
        int(header["error_ns"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{path}: the trace cannot be read: {error}") from error
    return header, events


def _cpus(text: str) -> list[int]:
    """Read a list of CPUs such as ``0,2-3``; empty where it is none."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        if not low.isdigit() or (high and not high.isdigit()):
            return []
        cpus.extend(range(int(low), int(high or low) + 1))
    return cpus


def _serving_cpu(events: str, samples: pa.Table) -> int | None:
    """Return the CPU of the thread from whose time most packets leave.

    Args:
        events: a trace, an event a line.
        samples: the packets.

    Returns:
        None where less than half of the packets leave from one thread on one CPU: no other one can
        have more packets than one that has half.

    """
    import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

    times: dict[tuple[int, str, str], list[tuple[int, int]]] = defaultdict(list)
    for line in events.splitlines():
        event = json.loads(line)
        if event["kind"] == "thread":
            key = event["cpu"], event["name"], event.get("detail", "")
            times[key].append((event["start_ns"], event["end_ns"]))
    egress = np.sort(samples["egress_ns"].to_numpy())
    left: dict[tuple[int, str, str], int] = {}
    for key, spans in times.items():
        edges = np.searchsorted(egress, np.array(spans))
        left[key] = int((edges[:, 1] - edges[:, 0]).sum())
    if not left:
        return None
    most = max(left, key=lambda key: left[key])
    return most[0] if 2 * left[most] >= egress.size else None
