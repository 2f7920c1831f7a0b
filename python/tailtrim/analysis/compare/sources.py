"""Sources of a comparison: runs, grouped into repetitions of one combination."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim import _native
from tailtrim.analysis import Analysis, analyze
from tailtrim.errors import RunDirectoryError
from tailtrim.results import RunDirectory
from tailtrim.results.drafts import is_temporary
from tailtrim.results.experiments import RecordedExperiment
from tailtrim.results.typed_json import read_object

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import pyarrow as pa

    from tailtrim.results import Summary

    Source: TypeAlias = str | os.PathLike[str] | RunDirectory | Analysis | RecordedExperiment

EXPERIMENT = "tailtrim.experiment/1"
_SECOND_NS = 10**9
#: The latency that stands for a lost packet, as the native module has it.
LOST_NS = 2**63 - 1
#: A lost packet takes a place, the same with a fraction, and a latency: at most half of the memory.
_LOST_BYTES = 24
_ROOM_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


class Repetition:
    """One run of a side; tables are read when they are needed.

    Args:
        name: its name.
        run: the run directory, or the result of an analysis that kept its samples.
        part: which samples count, as (first, how many); by default all.

    """

    def __init__(
        self, name: str, run: RunDirectory | Analysis, part: tuple[int, int] | None = None
    ) -> None:
        """Take a run."""
        self.name = name
        self.run = run
        self.part = part

    @property
    def summary(self) -> Summary:
        """The numbers of the run."""
        return self.run.summary

    @property
    def path(self) -> Path | None:
        """Where the run directory is, if it is one."""
        return self.run.path if isinstance(self.run, RunDirectory) else None

    def samples(self) -> pa.Table:
        """Return the latency of each sample in the order in which they left: ``latency_ns``."""
        if self.summary.throughput is not None:
            import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

            return pa.table({"latency_ns": pa.array([], pa.int64())})
        if isinstance(self.run, RunDirectory):
            table = self.run.table("sample", columns=("latency_ns",))
        else:
            table = self.run.samples.select(["latency_ns"])
        return table if self.part is None else table.slice(*self.part)

    @cached_property
    def native(self) -> _native.NativeRepetition:
        """The latencies counted for the comparison."""
        return _native.NativeRepetition(self.samples())

    @cached_property
    def native_sent(self) -> _native.NativeRepetition:
        """The latencies of all packets sent: a lost one is infinitely late."""
        return _native.NativeRepetition(self._sent())

    def _sent(self) -> pa.Table:
        """Return the samples in order, lost packets spread over those that entered in their second.

        When within the second a packet was lost is not recorded; all at its end would be a cluster.
        """
        columns = ("ingress_ns", "latency_ns")
        if isinstance(self.run, RunDirectory):
            table = self.run.table("sample", columns=columns)
        else:
            table = self.run.samples.select(list(columns))
        entered, latency = (table[name].to_numpy() for name in columns)
        lossy = [(second, lost) for second, lost, _ in self._seconds() if lost]
        total = sum(lost for _, lost in lossy)
        if total * _LOST_BYTES > _ROOM_BYTES:
            told = f"{total:,} packets were lost, for which memory has no room"
            raise RunDirectoryError(f"{self.name}: {told}")
        begin_ns = self.summary.ingress_tap.first_ns
        if not entered.size or not lossy or begin_ns is None:
            return table.select(["latency_ns"])
        entered_s = (np.maximum.accumulate(entered) - begin_ns) // _SECOND_NS
        seconds = np.array([second for second, _ in lossy])
        starts = np.searchsorted(entered_s, seconds, side="left")
        ends = np.searchsorted(entered_s, seconds, side="right")
        spread = [
            first + (np.arange(lost) + 0.5) * (last - first) // lost
            for first, last, (_, lost) in zip(starts, ends, lossy, strict=True)
        ]
        places = np.concatenate(spread).astype(np.int64)
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

        return pa.table({"latency_ns": np.insert(latency, places, LOST_NS)})

    def losses(self) -> list[tuple[int, int]]:
        """Return (lost, packets) of each whole second behind the trim."""
        return [(lost, packets) for _, lost, packets in self._seconds()]

    def _seconds(self) -> list[tuple[int, int, int]]:
        """Return (second, lost, packets) of each whole second behind the trim.

        Seconds count from the first ingress stamp; those in which nothing happened are left out.
        """
        if self.part is not None:
            return []
        directory = isinstance(self.run, RunDirectory)
        table = self.run.table("second") if directory else self.run.seconds  # type: ignore[union-attr]
        trimmed_s = math.ceil(self.summary.trim_ns / _SECOND_NS)
        rows = zip(
            *(table[name].to_pylist() for name in ("second", "lost", "ingress_packets")),
            strict=True,
        )
        return [
            (second, lost, max(lost, packets))
            for second, lost, packets in rows
            if second >= trimmed_s
        ]


@dataclass(frozen=True)
class Group:
    """Repetitions of one combination of the loop variables.

    ``key`` is what identifies the combination within its experiment, ``loop`` its loop variables.
    ``left_out`` says which runs do not count, and why.
    """

    name: str
    repetitions: tuple[Repetition, ...]
    key: str = ""
    loop: tuple[tuple[str, Any], ...] = ()
    floor: bool = False
    left_out: tuple[str, ...] = ()
    experiment: dict[str, Any] = field(default_factory=dict)

    @property
    def resolution_ps(self) -> int:
        """The coarsest resolution of the stamps of a run."""
        return max((run.summary.resolution_ps for run in self.repetitions), default=1_000)


def groups_of(source: Source, quantiles: Sequence[str] = ()) -> list[Group]:
    """Find what a source consists of; captures are analysed with these further quantiles.

    Raises:
        RunDirectoryError: it is nothing that can be compared.
        CaptureError: it is a pair of captures, and one cannot be read.

    """
    if isinstance(source, Analysis) and source.directory is not None:
        source = RunDirectory(source.directory)
    if isinstance(source, Analysis):
        return [Group("analysis", (Repetition("analysis", source),))]
    if isinstance(source, RunDirectory):
        return [Group(source.name, (Repetition(source.name, source),))]
    path = source.path if isinstance(source, RecordedExperiment) else Path(source)
    if (path / "experiment.json").is_file():
        return _experiment(path)
    if (path / "summary.json").is_file():
        run = RunDirectory(path)
        return [Group(run.name, (Repetition(run.name, run),), experiment=_around(path))]
    if path.is_dir():
        return [_folder(path)]
    if pair := captures_of(str(source)):
        analysis = analyze(*pair, quantiles=quantiles, keep_samples=True)
        if not analysis.summary.samples:
            failure = RunDirectoryError(f"{source}: no packet was matched")
            failure.add_note(
                f"tailtrim analyze {pair[0]} {pair[1]} says why; with --out it leaves a run"
                " directory, which compare takes, too"
            )
            raise failure
        return [Group(pair[0].name, (Repetition(pair[0].name, analysis),))]
    why = "does not exist" if not path.exists() else "cannot be compared"
    error = RunDirectoryError(f"{source}: {why}")
    error.add_note(
        "expected a run directory, an experiment, a folder of run directories, or captures as"
        " INGRESS,EGRESS"
    )
    raise error


def captures_of(text: str) -> tuple[Path, Path] | None:
    """Take INGRESS,EGRESS apart, ``None`` if the files are missing; names may have commas."""
    parts = text.split(",")
    for cut in range(1, len(parts)):
        pair = Path(",".join(parts[:cut])), Path(",".join(parts[cut:]))
        if all(path.exists() and not path.is_dir() for path in pair):
            return pair
    return None


def _folder(path: Path) -> Group:
    runs = sorted(child for child in path.iterdir() if (child / "summary.json").is_file())
    if not runs:
        raise RunDirectoryError(f"{path}: not a run directory, and contains none")
    repetitions = tuple(Repetition(run.name, RunDirectory(run)) for run in runs)
    return Group(path.resolve().name, repetitions)


def _around(run: Path) -> dict[str, Any]:
    """Return the record of the experiment that a run belongs to, if it does."""
    record = run.resolve().parent / "experiment.json"
    return read_object(record) if record.is_file() and (run / "loop.json").is_file() else {}


def _experiment(path: Path) -> list[Group]:
    record = read_object(path / "experiment.json")
    if record.get("schema") != EXPERIMENT:
        found = record.get("schema")
        raise RunDirectoryError(f"{path}: the schema is {found!r}, expected {EXPERIMENT!r}")
    runs: dict[str, list[Repetition]] = {}
    left_out: dict[str, list[str]] = {}
    about: dict[str, dict[str, Any]] = {}
    for outcome in record.get("outcomes", ()):
        name, reasons = outcome["run"], list(outcome["invalid"])
        key = f"{outcome['label']}{' (floor)' if outcome['floor'] else ''}"
        about.setdefault(key, {"floor": outcome["floor"], "loop": {}})
        # Done again without success, it still has the result of the time before.
        reasons += [
            f"{word}: {outcome[word]}" for word in ("failed", "skipped") if outcome.get(word)
        ]
        if reasons or not (path / name / "summary.json").is_file():
            why = "; ".join(reasons) or "incomplete"
            left_out.setdefault(key, []).append(f"{name}: {why}")
            continue
        about[key]["loop"] = read_object(path / name / "loop.json").get("loop", {})
        runs.setdefault(key, []).append(Repetition(name, RunDirectory(path / name)))
    experiment = path.resolve().name
    return [
        Group(
            name=f"{experiment}: {key}",
            repetitions=tuple(runs.get(key, ())),
            key=key,
            loop=tuple(sorted(told["loop"].items())),
            floor=told["floor"],
            left_out=tuple(left_out.get(key, ())),
            experiment=record,
        )
        for key, told in about.items()
    ]


def paired(a: Sequence[Group], b: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Put the groups of two sources together; those without a counterpart are left out.

    Combinations with the same device and loop variables belong together; where no device is in both
    experiments, those with the same loop variables do.

    Raises:
        RunDirectoryError: nothing belongs together.

    """
    a, b = _alone(a, b), _alone(b, a)
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
    else:
        pairs = _by(a, b, [group.key for group in a], [group.key for group in b])
        if not any(not one.floor for one, _ in pairs):
            loops = [[(group.floor, group.loop) for group in side] for side in (a, b)]
            pairs = _by(a, b, *loops)
    if not pairs:
        error = RunDirectoryError(
            f"{a[0].name} and {b[0].name}: no common combination of loop variables"
        )
        error.add_note("compare single runs by naming their directories: EXPERIMENT/run-000")
        raise error
    for group in (group for pair in pairs for group in pair):
        if not group.repetitions:
            why = "; ".join(group.left_out)
            raise RunDirectoryError(f"{group.name}: no valid run ({why})")
    return pairs


def _alone(groups: Sequence[Group], others: Sequence[Group]) -> Sequence[Group]:
    """Leave the floor out where an experiment's only combination meets a single run."""
    measured = [group for group in groups if not group.floor]
    return measured if len(others) == 1 and len(measured) == 1 else groups


def _by(
    a: Sequence[Group], b: Sequence[Group], keys_a: Sequence[Any], keys_b: Sequence[Any]
) -> list[tuple[Group, Group]]:
    return [
        (one, b[keys_b.index(key)])
        for one, key in zip(a, keys_a, strict=True)
        if keys_a.count(key) == 1 and keys_b.count(key) == 1
    ]


def named_apart(
    a: Sequence[Group], b: Sequence[Group], sources: tuple[Source, Source]
) -> tuple[list[Group], list[Group]]:
    """Return the groups of two sources, named by what differs in the paths of these.

    Groups of the same source, or of one without a path, keep their names.
    """
    for one, two in zip(*map(_paths, sources), strict=False):
        if one != two:
            names = apart(one, two)
            return _named(a, names[0]), _named(b, names[1])
    return list(a), list(b)


def apart(a: Path, b: Path) -> tuple[str, str]:
    """Return the part of each path that the other has not.

    >>> apart(Path("results/hw/x.pcap"), Path("results/vm/x.pcap"))
    ('hw', 'vm')
    >>> apart(Path("results/x"), Path("results/old/x"))
    ('x', 'old/x')

    """
    one, two = a.parts, b.parts
    while one and two and one[0] == two[0]:
        one, two = one[1:], two[1:]
    if not one or not two:
        # One is a folder of the other: its own name stands for it.
        return "/".join(one) or a.name, "/".join(two) or b.name
    short_one, short_two = one, two
    while short_one and short_two and short_one[-1] == short_two[-1]:
        short_one, short_two = short_one[:-1], short_two[:-1]
    if short_one and short_two:
        one, two = short_one, short_two
    return "/".join(one), "/".join(two)


def _paths(source: Source) -> list[Path]:
    """Return the paths that a source is known by; of captures that before the device first."""
    if isinstance(source, Analysis):
        taps = source.summary.ingress_tap, source.summary.egress_tap
        return [Path(tap.capture) for tap in taps]
    place = source.path if isinstance(source, RunDirectory | RecordedExperiment) else Path(source)
    if place.exists():
        return [] if is_temporary(place) else [place.resolve()]
    return [path.resolve() for path in captures_of(str(source)) or ()]


def _named(groups: Sequence[Group], name: str) -> list[Group]:
    return [replace(one, name=f"{name}: {one.key}" if one.key else name) for one in groups]
