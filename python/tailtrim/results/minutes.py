"""Results that a run of hours keeps of each minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tailtrim.errors import RunDirectoryError
from tailtrim.results.layout import COUNTERS, MINUTES
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_Line = TypeVar("_Line")


@dataclass(frozen=True, slots=True)
class Minute:
    """Packets that left the device in one minute.

    ``begin_ns`` is in ns since 1970, of the clock of the taps; ``lost`` are packets that were found
    lost since the minute before. ``latency_ns`` has ``min``, ``max`` and the percentiles ``p50`` to
    ``p99.99`` that have a sample beyond them.
    """

    begin_ns: int
    samples: int
    lost: int
    latency_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """Counters of the device's CPUs in one interval; ``None`` where one cannot be read there.

    ``begin_ns`` and ``end_ns`` are of the realtime clock of the device's host. SMIs and steal are
    those of the CPU that has most: all CPUs of a socket have the same SMIs.
    """

    begin_ns: int
    end_ns: int
    smi: int | None
    throttled: int | None
    steal_ms: int | None
    #: Why something cannot be read.
    unread: dict[str, str]


def by_minute(directory: Path) -> bool:
    """Return whether a run was kept by minute, and so has no samples."""
    return (directory / MINUTES[0]).is_file() and not (directory / "sample.parquet").exists()


def minutes(directory: Path) -> list[Minute]:
    """Return the minutes with samples or losses, in order.

    Nothing where a run was not kept by minute.

    Raises:
        RunDirectoryError: the file is damaged. A last line that was not written to its end is left
            out: then the run was killed.

    """
    return _read(directory / MINUTES[0], _minute)


def counted(directory: Path) -> list[Counted]:
    """Return what the device's CPUs counted, in order; nothing where nothing was counted.

    Raises:
        RunDirectoryError: the file is damaged.

    """
    return _read(directory / COUNTERS, _counted)


def _minute(line: dict[str, Any]) -> Minute:
    latency_ns = {str(name): int(value) for name, value in line["latency_ns"].items()}
    return Minute(int(line["begin_ns"]), int(line["samples"]), int(line["lost"]), latency_ns)


def _counted(line: dict[str, Any]) -> Counted:
    cpus = dict(line["cpus"])
    unread = {name: why for cpu in cpus.values() for name, why in cpu.get("unread", {}).items()}
    smi, throttled, steal_ms = (_most(cpus, name) for name in ("smi", "throttled", "steal_ms"))
    return Counted(
        begin_ns=int(line["begin_ns"]),
        end_ns=int(line["end_ns"]),
        smi=smi,
        throttled=throttled,
        steal_ms=steal_ms,
        unread=unread,
    )


def _most(cpus: dict[str, dict[str, Any]], name: str) -> int | None:
    known = [int(cpu[name]) for cpu in cpus.values() if cpu.get(name) is not None]
    return max(known, default=None)


def _read(path: Path, of: Callable[[dict[str, Any]], _Line]) -> list[_Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error}") from error
    found = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break
        try:
            found.append(of(parsed(line)))
        except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{path}: line {number}: expected what tailtrim wrote there ({error!r})"
            raise RunDirectoryError(message) from error
    return found
