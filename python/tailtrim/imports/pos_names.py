"""How pos names files and orders runs.

Nothing of this is documented by pos; it is what published result folders have in common
(gallenmu/pos-artifacts of 2020, gallenmu/latency-limbo, the RISE demonstration of 2026).
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What pos itself keeps of a command and of each of its runs; all else was uploaded by scripts.
LOOP, STATUS = ".loop", ".status"
OWN = (LOOP, STATUS, ".stdout", ".stderr", ".command", ".file")
#: The status of a command that ended well.
FINISHED = "finished"

_RUN = re.compile(r"_run([0-9]{1,9})(?=\.|$)")


def run_of(name: str) -> tuple[int | None, str]:
    """Return the run that a file or folder belongs to, and its name without that.

    The number is before the first dot; in folders of 2020 it may be before the last one.

    >>> run_of("latencies-pre_run007.pcap.zst")
    (7, 'latencies-pre.pcap.zst')
    >>> run_of("latencies-pre.pcap_run0.zst")
    (0, 'latencies-pre.pcap.zst')
    >>> run_of("setup.sh")
    (None, 'setup.sh')

    """
    found = list(_RUN.finditer(name))
    if not found:
        return None, name
    last = found[-1]
    return int(last[1]), name[: last.start()] + name[last.end() :]


def run_name(name: str, run: int, runs: int) -> str:
    """Return the name that an upload of one of so many runs gets.

    >>> run_name("latencies-pre.pcap.zst", 7, 138)
    'latencies-pre_run007.pcap.zst'

    """
    head, dot, rest = name.partition(".")
    return f"{head}_run{run:0{len(str(max(runs - 1, 0)))}d}{dot}{rest}"


def command_of(name: str) -> str:
    """Return which command one of pos's own files is of: the name without time and run.

    >>> command_of("2020-10-07_23-27-11_424401_measurement_run001.status")
    'measurement'

    """
    _, name = run_of(name)
    return re.sub(r"^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_", "", name.partition(".")[0])


def grid(loop: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the loop variables of each run, in the order of their numbers.

    posd keeps variables as jsonb of PostgreSQL, which orders keys by length and then by bytes: the
    order of the file makes no difference. The last key changes fastest.

    >>> grid({"pkt_rate": [1, 2], "pkt_sz": [64]})
    [{'pkt_sz': 64, 'pkt_rate': 1}, {'pkt_sz': 64, 'pkt_rate': 2}]

    """
    keys = sorted(loop, key=lambda key: (len(key.encode()), key.encode()))
    return [dict(zip(keys, one, strict=True)) for one in product(*(loop[key] for key in keys))]
