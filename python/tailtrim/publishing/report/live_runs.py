"""Live runs: lateness of the generator's departures, and warm-ups of devices kept between runs."""

from __future__ import annotations

from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim import units
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tailtrim.results import RunDirectory, Summary

_COLUMNS = (
    Column("\nDepartures", page="Run", kind="left"),
    Column("Late\n50", page="50", label="Late p50", group="Late"),
    Column("\n99", page="99", label="Late p99", group="Late"),
    Column("\nMax", page="Max", label="Late max", group="Late"),
    Column("Sent\nlate, %"),
    Column("Latency\nof all", page="of all", label="Latency of all", group="Latency"),
    Column("\non time", page="on time", label="Latency, on time", group="Latency"),
    Column("Set\naside"),
)
#: The highest of these that the samples support shows what late departures changed.
_SHOWN = ("0.9999", "0.999", "0.99", "0.5")
_COUNTS = {"page_faults": "page faults", "shootdowns": "TLB shootdowns"}
#: Means to keep departures to their time, beside the generator.
_KEEPERS = {"etf": "the kernel (etf)", "etf-offload": "the NIC (offload of etf)"}
_LATENCIES = {"p50_ns": "p50", "p99_ns": "p99"}


class Departures(NamedTuple):
    """Lateness of the departures of runs; ``notes`` say what else a reader must know."""

    table: Table
    legend: str
    notes: list[str]


def departures(runs: Sequence[tuple[str, RunDirectory]]) -> Departures | None:
    """Return a row for each run whose generator told how late it sent; ``None`` without any."""
    told, checked = [], []
    for name, run in runs:
        with suppress(KeyError, TypeError):
            generator = run.generator()
            told.append((name, run.summary, *_departed(generator)))
            checked.append(generator)
    if not told:
        return None
    groups = [[ns] for _, summary, late, _, _ in told for ns in (*late, *_changed(summary)[1])]
    style = units.Times.of(groups)
    rows = [
        Row(name, _cells(summary, late, share, style)) for name, summary, late, share, _ in told
    ]
    notes = _notes([stood for *_, stood in told if stood is not None], len(told))
    notes += [*_kept(checked), *_stamped(checked)]
    legend = (
        f"How late packets were sent in {style.unit}; sent late: by more than 20 µs. Latency: of"
        " all samples, and of those sent on time."
    )
    if any(row.cells[-1] != "0" for row in rows):
        legend += " Set aside: the generator stood still while it sent them."
    return Departures(Table(_COLUMNS, rows), legend, notes)


class _Stood(NamedTuple):
    """Stalls of a generator's CPU in a run; ``shared``: with the device."""

    times: int
    sending: int
    total_ns: int
    longest_ns: int
    shared: bool


def _departed(generator: dict[str, Any]) -> tuple[list[int | None], str, _Stood | None]:
    """Return p50, p99 and maximum of the lateness, the share sent late, and the stalls.

    Raises:
        KeyError, TypeError: the record of the generator has none of this.

    """
    lateness, stalls = generator["lateness_ns"], generator.get("stalls")
    late = {quantile["p"]: quantile["value"] for quantile in lateness["quantiles"]}
    times = [late.get("0.5"), late.get("0.99"), lateness["max"]]
    if stalls is None:
        return times, units.NONE, None
    sending, waiting = stalls["sending"], stalls["waiting"]
    stood = _Stood(
        sending["count"] + waiting["count"],
        sending["count"],
        sending["total_ns"] + waiting["total_ns"],
        max(sending["longest_ns"], waiting["longest_ns"]),
        generator.get("shares_cpu", False),
    )
    share = units.loss(stalls["departed_late"], generator["sent"])
    return times, share, stood if stood.times else None


def _changed(summary: Summary) -> tuple[str, list[int | None]]:
    """Return the highest supported percentile, of all samples and of those sent on time."""
    known = {quantile.p: quantile for quantile in summary.latency_ns.quantiles}
    supported = [p for p in _SHOWN if p in known and known[p].supported]
    if not supported or summary.departed_late is None:
        return "", [None, None]
    p = supported[0]
    return f"p{units.percent(p)} ", [known[p].value, summary.departed_late.without_ns.get(p)]


def _cells(
    summary: Summary, late: Sequence[int | None], share: str, style: units.Times
) -> list[str]:
    p, changed = _changed(summary)
    first, second = map(style.number, changed)
    return [
        *map(style.number, late),
        share,
        p + first,
        second,
        units.count(summary.ingress.stalled),
    ]


def _notes(stood: Sequence[_Stood], runs: int) -> list[str]:
    """Return what the stalls of all runs were."""
    if not stood:
        return []
    times, sending, total = (
        _span([text(one[place]) for one in sorted(stood, key=itemgetter(place))])
        for place, text in enumerate((units.count, units.count, units.time))
    )
    of = f" in {len(stood)} of {runs} runs" if runs > 1 else ""
    told = (
        f"The generator's CPU stood still{of}: {_times(times)} ({total},"
        f" {units.time(max(one.longest_ns for one in stood))} at most), {_times(sending)} in the"
        " middle of sending"
    )
    if shared := sum(one.shared and one.sending > 0 for one in stood):
        of = f" in {shared} of them" if shared < len(stood) else ""
        told += f";{of} that CPU serves the device, too, so no packet is set aside"
    return [f"{told}."]


def _kept(generators: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what kept departures to their time, where that was not the generator itself."""
    for by, name in _KEEPERS.items():
        kept = [one for one in generators if one.get("departures_by") == by]
        if not kept:
            continue
        of = f" in {len(kept)} of {len(generators)} runs" if len(kept) < len(generators) else ""
        missed = sum(one.get("missed", 0) for one in kept)
        late = f"; it dropped {units.count(missed)} packets that were late" if missed else ""
        yield f"Kept to their time by {name}{of}{late}."


def _stamped(generators: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how far gaps between departures were off, by the stamps of sent packets."""
    for by, name in (("nic", "NIC's"), ("kernel", "kernel's")):
        found = [one["transmit_stamps"][by] for one in generators if _has_stamps(one, by)]
        errors = [one["gap_error_ns"] for one in found if one["gap_error_ns"]["max"] is not None]
        if not errors:
            continue
        at_p99 = max(_at(error, "0.99") for error in errors)
        most = max(error["max"] for error in errors)
        text = (
            f"By the {name} stamps of sent packets, the gaps between them were off by up to"
            f" {units.time(at_p99)} at p99, {units.time(most)} at most"
        )
        # The kernel is not asked for stamps of packets that the generator sends together.
        if by == "nic" and (without := sum(one["unstamped"] for one in found)):
            text += f"; {units.count(without)} packets have no stamp"
        yield f"{text}."


def _has_stamps(generator: dict[str, Any], by: str) -> bool:
    return by in (generator.get("transmit_stamps") or {})


def _at(summary: dict[str, Any], p: str) -> int:
    return next(int(one["value"]) for one in summary["quantiles"] if one["p"] == p)


def _times(count: str) -> str:
    return f"{count} time" if count == "1" else f"{count} times"


def _span(texts: Sequence[str]) -> str:
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def warm_ups(runs: Iterable[tuple[str, RunDirectory]]) -> list[tuple[str, str]]:
    """Return the warm-up of each device in words, by the device's name and its first run's.

    Args:
        runs: complete runs with their names.

    """
    told: dict[str, tuple[str, str]] = {}
    for name, run in runs:
        record = run.device()
        device, warmed = record.get("device"), record.get("warm_up")
        if isinstance(device, str) and isinstance(warmed, dict) and device not in told:
            told[device] = f"{device} (from {name} on)", _words(warmed)
    return list(told.values())


def _words(warmed: dict[str, Any]) -> str:
    try:
        first, last = warmed["windows"][0], warmed["windows"][-1]
        changed = [
            f"{name} {units.count(first[key])} \N{RIGHTWARDS ARROW} {units.count(last[key])}"
            for key, name in _COUNTS.items()
            if first[key] is not None
        ]
        changed += [
            f"{name} {units.time(first[key])} \N{RIGHTWARDS ARROW} {units.time(last[key])}"
            for key, name in _LATENCIES.items()
            if first[key] is not None and last[key] is not None
        ]
        took = f"warmed up {warmed['took_s']:.1f} s"
        if not warmed["steady"]:
            took = f"not steady within {warmed['limit_s']:g} s ({', '.join(last['changes'])})"
    except (LookupError, TypeError, ValueError):
        return "its warm-up is not readable"
    return f"{took}: {', '.join(changed)}"
