"""Meters that are files of a node's kernel: they are read by one small shell on the node.

The shell runs on CPUs on which nothing is measured. It reads when a line comes in and starts no
programs, so that a reading costs the node a few system calls.
"""

from __future__ import annotations

import os
import select
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters.meter import Channel, Meter, Reader, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.meters.meter import Start

#: A node that does not answer within this time cannot be read: SSH takes milliseconds.
_ANSWER_S = 5.0
_READ_BYTES = 65_536
#: Each file with what is written beside it; each CPU with its package; then what is asked for.
_SCRIPT = r"""
cd "$1/sys/class" 2>/dev/null
for file in powercap/intel-rapl:*/energy_uj hwmon/hwmon*/power*_average hwmon/hwmon*/power*_input \
    hwmon/hwmon*/energy*_input; do
    [ -e "$file" ] || continue
    name= range= label= value=
    { read -r name <"${file%/*}/name"; } 2>/dev/null
    { read -r range <"${file%/*}/max_energy_range_uj"; } 2>/dev/null
    { read -r label <"${file%_*}_label"; } 2>/dev/null
    { read -r value <"$file"; } 2>/dev/null
    echo "file|$file|$name|$range|$label|$value"
done
for cpu in ../devices/system/cpu/cpu[0-9]*; do
    package=
    { read -r package <"$cpu/topology/physical_package_id"; } 2>/dev/null
    [ -z "$package" ] || echo "cpu|${cpu##*/cpu}|$package"
done
echo end
read -r chosen || exit
while read -r _; do
    line=
    for file in $chosen; do
        value=-
        { read -r value <"$file"; } 2>/dev/null
        line="$line ${value:--}"
    done
    echo "$line"
done
"""


@dataclass(frozen=True, slots=True)
class SensorFile:
    """A file that measures: its path below ``/sys/class``, and what stands beside it.

    ``value`` is empty where it cannot be read.
    """

    path: str
    name: str
    range_uj: int | None
    label: str
    value: str


class FilesMeter(Meter):
    """A meter that is files of the node."""

    @property
    def place(self) -> str:
        """The source of its readings, for messages."""
        return f"{self.kind} of the node"

    @abstractmethod
    def chosen(self, files: Sequence[SensorFile]) -> list[tuple[SensorFile, Channel]]:
        """Return the files to read, and what each of them measures.

        Raises:
            HostError: the node has none.

        """

    def seldom(
        self, channels: Sequence[Channel], packages: dict[int, int], busy: Sequence[int]
    ) -> tuple[float, str] | None:
        """Return how often to read where a reading disturbs what is measured, and why."""
        del channels, packages, busy
        return None

    def opened(self, start: Start, busy: Sequence[int] = ()) -> FilesReader:
        """Start the shell, and see what the node has."""
        return FilesReader(self, start, busy)


class FilesReader(Reader):
    """Files of a node that are read together."""

    def __init__(self, meter: FilesMeter, start: Start, busy: Sequence[int]) -> None:
        """Start the shell, and choose files."""
        self._meter, self._left = meter, b""
        self._process = start(("sh", "-c", _SCRIPT, "sh", ""))
        try:
            files, packages = self._listed()
            chosen = meter.chosen(files)
            self.channels = [channel for _, channel in chosen]
            self._tell(" ".join(file.path for file, _ in chosen))
            seldom = meter.seldom(self.channels, packages, busy)
            if seldom is not None:
                self.every_s, self.why = seldom
            self.read()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """End the shell."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        process.kill()
        process.wait()

    def read(self) -> list[Value]:
        """Read the files."""
        self._tell("")
        words = self._line().split()
        values = []
        for channel, word in zip(self.channels, words, strict=True):
            if not word.lstrip("-").isdecimal():
                raise HostError(f"{self._meter.place}: {channel.name} cannot be read any more")
            number = int(word) * 1e-6
            values.append(Value(energy_j=number) if channel.counts else Value(power_w=number))
        return values

    def _listed(self) -> tuple[list[SensorFile], dict[int, int]]:
        """Return the files, and the first CPU of each package."""
        files: list[SensorFile] = []
        packages: dict[int, int] = {}
        while (line := self._line()) != "end":
            kind, *words = line.split("|")
            if kind == "file":
                path, name, span, label, value = words
                size = int(span) if span.isdecimal() else None
                files.append(SensorFile(path, name, size, label, value))
            elif kind == "cpu":
                cpu, package = map(int, words)
                packages[package] = min(cpu, packages.get(package, cpu))
        return files, packages

    def _tell(self, text: str) -> None:
        stream = self._process.stdin
        try:
            if stream is not None:
                stream.write(f"{text}\n")
                stream.flush()
        except (OSError, ValueError) as error:
            raise HostError(f"{self._meter.place}: what reads it on the node has ended") from error

    def _line(self) -> str:
        stream, ends = self._process.stdout, time.monotonic() + _ANSWER_S
        while stream is not None and b"\n" not in self._left:
            if not select.select([stream], [], [], max(ends - time.monotonic(), 0))[0]:
                raise HostError(f"{self._meter.place}: no answer within {_ANSWER_S:g} s")
            more = os.read(stream.fileno(), _READ_BYTES)
            if not more:
                raise HostError(f"{self._meter.place}: what reads it on the node has ended")
            self._left += more
        line, _, self._left = self._left.partition(b"\n")
        return line.decode(errors="replace")
