"""The synthetic pairs of captures: their content, their size, and the program that makes them."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE_HEADER_BYTES = 24
RECORD_HEADER_BYTES = 16
SIDES = ("ingress", "egress")
#: Command that builds the generator of captures.
BUILT_BY = "cargo build --release -p tailtrim-tail --example synthesize"

# Runs a command with its output to a pipe. The shell opens the pipe, since opening waits for a
# reader.
OPENING = ("sh", "-c", 'fifo=$1; shift; exec "$@" > "$fifo"', "sh")

Through = Literal["file", "fifo"]
Pair = tuple["Path", "Path"]


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of captures with this many pairs of frames, through files or through named pipes."""

    frame_bytes: int
    pairs: int
    through: Through

    @property
    def name(self) -> str:
        """A name for folders, tables and progress lines, such as ``60B-10M-file``."""
        return f"{self.frame_bytes}B-{short(self.pairs)}-{self.through}"

    @property
    def pair_bytes(self) -> int:
        """Bytes of both captures."""
        record = RECORD_HEADER_BYTES + self.frame_bytes
        return 2 * (FILE_HEADER_BYTES + self.pairs * record)


def short(number: int) -> str:
    """Write a number of pairs in few letters.

    >>> short(300_000), short(10_000_000), short(1234)
    ('300k', '10M', '1234')
    """
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number and number % unit == 0:
            return f"{number // unit}{letter}"
    return str(number)


def generate(synthesize: Path, case: Case, folder: Path) -> Pair:
    """Write both captures to files and to the disk, so that no write-back disturbs what follows."""
    ingress, egress = (folder / f"{side}.pcap" for side in SIDES)
    for side, path in zip(SIDES, (ingress, egress), strict=True):
        with path.open("wb") as file:
            subprocess.run(_command(synthesize, side, case), stdout=file, check=True)
            os.fsync(file.fileno())
    return ingress, egress


@contextmanager
def fifos(synthesize: Path, case: Case, folder: Path, cores: Sequence[int]) -> Iterator[Pair]:
    """Two named pipes with a generator behind each, which starts to write once somebody reads."""
    ingress, egress = (folder / f"{side}.pcap" for side in SIDES)
    generators: list[subprocess.Popen[bytes]] = []
    try:
        for side, path in zip(SIDES, (ingress, egress), strict=True):
            os.mkfifo(path)
            generators.append(
                subprocess.Popen(
                    [*OPENING, path, *pinned(cores), *_command(synthesize, side, case)],
                    stderr=subprocess.DEVNULL,
                )
            )
        yield ingress, egress
    finally:
        for generator in generators:
            generator.kill()
            generator.wait()
        for path in (ingress, egress):
            path.unlink(missing_ok=True)


def warm(paths: Sequence[Path]) -> None:
    """Read the files once, so that the page cache holds them as far as memory permits."""
    buffer = bytearray(8 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def pinned(cores: Sequence[int]) -> list[str]:
    """Return the prefix of a command that keeps it on these cores."""
    return ["taskset", "-c", ",".join(map(str, cores))]


def _command(synthesize: Path, side: str, case: Case) -> list[str]:
    return [str(synthesize), side, str(case.pairs), str(case.frame_bytes)]
