"""A control group: limits of programs, and what they used.

Limits and counters have the names of cgroup v2. Where a controller is still in a hierarchy of
version 1, its files are written and read instead; they are told as those of version 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.holder import Holder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.laboratory.nodes.node import Node

_OLD, _NEW = 1, 2
#: Controllers, and what version 1 calls them.
_CONTROLLERS = {"cpu": "cpu", "memory": "memory", "io": "blkio"}
_IO = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
#: Files that count.
_COUNTERS = {
    "cpu": ("cpu.stat",),
    "memory": (
        *("memory.peak", "memory.max_usage_in_bytes"),
        *("memory.events", "memory.oom_control"),
    ),
}
#: Counters that are read from them: name here, and divisor of the file's unit.
_COUNTED = {
    "nr_periods": ("nr_periods", 1),
    "nr_throttled": ("nr_throttled", 1),
    "throttled_usec": ("throttled_usec", 1),
    "throttled_time": ("throttled_usec", 1_000),
    "usage_usec": ("usage_usec", 1),
    "oom_kill": ("oom_kill", 1),
    "memory.peak": ("memory_peak_bytes", 1),
    "memory.max_usage_in_bytes": ("memory_peak_bytes", 1),
}
# Not a sum over time.
_PEAK = "memory_peak_bytes"

_JOIN = """
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 126; shift; done
shift
exec "$@"
"""
_READ = """
for file; do
    [ ! -r "$file" ] || while read -r line; do echo "${file##*/} $line"; done <"$file"
done
"""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where a controller's groups are, and of which version of cgroups."""

    folder: str
    version: int


class ControlGroup:
    """A control group on a node, for as long as the context lasts.

    A process holds it, which removes it when this process ends, whatever ends that. Whatever is in
    it then is killed.
    """

    def __init__(self, node: Node, limits: Mapping[str, str]) -> None:
        """Make it.

        Args:
            node: where.
            limits: by their names in cgroup v2.

        Raises:
            HostError: the node cannot have it, or not a limit.

        """
        self._node = node
        found = hierarchies(node)
        for name in limits:
            if name.partition(".")[0] not in found:
                told = f"{node.role}: {name}: the kernel has no control groups with it"
                raise HostError(f"{told}, expected them in /proc/mounts")
        #: The version of cgroups of each controller.
        self.versions = {name: one.version for name, one in found.items()}
        words = ("sh", "-c", _script("group.sh"), "sh", *_steps(found, limits))
        self._holder = Holder(
            partial(node.open, *words, tidies_up=True),
            node.role,
            grace_s=None,
        )
        name = self._holder.line
        self._folders = {key: f"{one.folder}/{name}" for key, one in found.items()}

    def __enter__(self) -> Self:
        """Return the group itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self._holder.end()

    @property
    def joining(self) -> tuple[str, ...]:
        """Words before a command that is to be in the group."""
        return ("sh", "-c", _JOIN, "sh", *dict.fromkeys(self._folders.values()), "--")

    def counted(self) -> dict[str, int]:
        """Return what it has counted since it was made: times in µs, memory in bytes."""
        files = [
            f"{folder}/{name}"
            for controller, folder in self._folders.items()
            for name in _COUNTERS.get(controller, ())
        ]
        return parsed(self._node.run("sh", "-c", _READ, "sh", *files))


def hierarchies(node: Node) -> dict[str, Hierarchy]:
    """Return where the controllers of limits are on a node."""
    found: dict[str, Hierarchy] = {}
    for line in node.run("cat", "/proc/mounts").splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup":
            words = options.split(",")
            known = [name for name, old in _CONTROLLERS.items() if old in words]
            found |= {name: Hierarchy(folder, _OLD) for name in known}
        elif kind == "cgroup2":
            words = node.call("cat", f"{folder}/cgroup.controllers").stdout.split()
            found |= {name: Hierarchy(folder, _NEW) for name in _CONTROLLERS if name in words}
    return found


def parsed(text: str) -> dict[str, int]:
    r"""Return what files count, as lines of ``FILE KEY VALUE`` or ``FILE VALUE``.

    >>> parsed("cpu.stat nr_throttled 3\ncpu.stat throttled_time 4100000\nmemory.peak 4096\n")
    {'nr_throttled': 3, 'throttled_usec': 4100, 'memory_peak_bytes': 4096}

    """
    counted = {}
    for line in text.splitlines():
        *words, value = line.split()
        name, unit = _COUNTED.get(words[-1] if words else "", ("", 1))
        if name and value.isdecimal():
            counted[name] = int(value) // unit
    return counted


def since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return what was counted between two times; a peak is the highest so far.

    >>> since({"oom_kill": 2, "memory_peak_bytes": 7}, {"oom_kill": 3, "memory_peak_bytes": 9})
    {'oom_kill': 1, 'memory_peak_bytes': 9}

    """
    return {
        name: value if name == _PEAK else value - before.get(name, 0) for name, value in now.items()
    }


def _steps(found: Mapping[str, Hierarchy], limits: Mapping[str, str]) -> list[str]:
    """Return what ``group.sh`` has to do."""
    steps = []
    for controller, one in found.items():
        if one.version == _NEW:
            steps += ["enable", one.folder, controller]
    for folder in dict.fromkeys(one.folder for one in found.values()):
        steps += ["group", folder]
    for name, value in limits.items():
        one = found[name.partition(".")[0]]
        written = {name: value} if one.version == _NEW else _old(name, value)
        for file, text in written.items():
            steps += ["limit", one.folder, file, text]
    return steps


def _old(name: str, value: str) -> dict[str, str]:
    """Return the files of version 1 for a limit, in the order in which they are written."""
    if name == "cpu.max":
        quota, period = (*value.split(), "100000")[:2]
        return {
            "cpu.cfs_period_us": period,
            "cpu.cfs_quota_us": "-1" if quota == "max" else quota,
        }
    if name == "cpu.weight":
        # 100 of version 2 is 1,024 of version 1.
        return {"cpu.shares": str(int(value) * 1_024 // 100)}
    if name == "memory.max":
        return {"memory.limit_in_bytes": "-1" if value == "max" else value}
    device, *words = value.split()
    written = {}
    for word in words:
        key, _, most = word.partition("=")
        rate = "0" if most == "max" else most
        written[f"blkio.throttle.{_IO[key]}_device"] = f"{device} {rate}"
    return written


def _script(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
