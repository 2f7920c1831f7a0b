"""The command line, and values derived from it: the captures, the disk space."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from captures import Case
from session import BENCHMARKS, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = ("agent", "published", "naive", "duckdb", "postgres")
FRAMES = (60, 1500)
# The frame size of the comparison with peers: decoded, larger frames are the same data.
PEER_FRAME = 60

USUAL = {
    "sizes": (300_000, 1_000_000, 10_000_000, 100_000_000),
    "repeat": 5,
    "fifo_repeat": 2,
    "file_limit_gb": 64,
    "postgres_limit": 1_000_000,
}
QUICK = {
    "sizes": (100_000, 1_000_000),
    "repeat": 3,
    "fifo_repeat": 2,
    "file_limit_gb": 1,
    "postgres_limit": 100_000,
}

# Disk per pair: Parquet, spilled data of DuckDB, a PostgreSQL table with its files for sorting.
PARQUET_BYTES, SPILL_BYTES, POSTGRES_BYTES = 2 * 24, 100, 400
POSTGRES_EMPTY_BYTES = 300_000_000


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Time tailtrim and its peers on the same captures, on this machine, in one run."
    )
    parser.add_argument(
        "--sizes",
        type=sizes,
        metavar="PAIRS,…",
        help="pairs of frames, such as 100k,10M (default: 300k,1M,10M,100M)",
    )
    parser.add_argument(
        "--frames",
        type=lambda text: tuple(int(frame) for frame in text.split(",")),
        default=FRAMES,
        metavar="BYTES,…",
        help="bytes of a frame (default: 60,1500)",
    )
    parser.add_argument("--repeat", type=int, metavar="N", help="turns (default: 5)")
    parser.add_argument(
        "--fifo-repeat", type=int, metavar="N", help="turns through named pipes (default: 2)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="100k and 1M pairs, 3 turns, PostgreSQL up to 100k: less than two minutes",
    )
    parser.add_argument(
        "--only",
        type=groups,
        default=GROUPS,
        metavar="GROUP,…",
        help=f"of {','.join(GROUPS)} (default: all; the agent is always measured with a peer)",
    )
    parser.add_argument(
        "--file-limit-gb",
        type=float,
        metavar="GB",
        help="pairs of captures beyond this come through named pipes (default: 64; 0: all)",
    )
    parser.add_argument(
        "--postgres-limit",
        type=number,
        metavar="PAIRS",
        help="PostgreSQL is not run on more pairs (default: 1M)",
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        default=Path(tempfile.gettempdir()),
        metavar="DIR",
        help="where captures and databases live meanwhile (default: the temporary folder)",
    )
    parser.add_argument("--runs", type=Path, default=BENCHMARKS / "runs", metavar="DIR")
    release = ROOT / "target" / "release"
    parser.add_argument("--agent", type=Path, default=release / "tailtrim-agent", metavar="FILE")
    parser.add_argument(
        "--synthesize", type=Path, default=release / "examples" / "synthesize", metavar="FILE"
    )
    arguments = parser.parse_args()
    for option, value in (QUICK if arguments.quick else USUAL).items():
        if getattr(arguments, option) is None:
            setattr(arguments, option, value)
    for path in ("scratch", "runs", "agent", "synthesize"):
        setattr(arguments, path, getattr(arguments, path).resolve())
    return arguments


def plan(arguments: argparse.Namespace) -> list[Case]:
    """Choose the synthetic cases, small ones first."""
    if set(arguments.only) == {"published"}:
        return []
    frames = arguments.frames if "agent" in arguments.only else (PEER_FRAME,)
    cases = []
    for frame in frames:
        for pairs in arguments.sizes:
            case = Case(frame, pairs, "file")
            if case.pair_bytes > arguments.file_limit_gb * 1e9:
                case = Case(frame, pairs, "fifo")
            cases.append(case)
    return cases


def disk_need(cases: Sequence[Case], arguments: argparse.Namespace) -> int:
    """Bytes that the largest case needs; each is removed before the next."""
    need = 0
    for case in cases:
        size = case.pair_bytes if case.through == "file" else 0
        if has_peers(case) and "duckdb" in arguments.only:
            size += (PARQUET_BYTES + SPILL_BYTES) * case.pairs
        if has_peers(case) and case.pairs <= arguments.postgres_limit:
            size += POSTGRES_BYTES * case.pairs
        need = max(need, size)
    return need + POSTGRES_EMPTY_BYTES * ("postgres" in arguments.only)


def has_peers(case: Case) -> bool:
    """Tell whether peers run on this case."""
    return case.frame_bytes == PEER_FRAME and case.through == "file"


def number(text: str) -> int:
    """Read a number of pairs such as 300k or 10M."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(text.rstrip("kM")) * factor


def sizes(text: str) -> tuple[int, ...]:
    """Read a list of numbers of pairs."""
    return tuple(number(part) for part in text.split(","))


def groups(text: str) -> tuple[str, ...]:
    """Read a list of groups."""
    chosen = tuple(text.split(","))
    unknown = set(chosen) - set(GROUPS)
    if unknown:
        message = f"{', '.join(sorted(unknown))}: expected some of {', '.join(GROUPS)}"
        raise argparse.ArgumentTypeError(message)
    return chosen
