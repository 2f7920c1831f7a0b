"""On which CPU packets were served: :func:`serving_cpu`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def serving_cpu(events: str, samples: pa.Table) -> int | None:
    """Return the CPU of the thread from whose time most packets leave.

    Args:
        events: a trace, an event a line.
        samples: the packets.

    Returns:
        None where less than half of the packets leave from one thread on one CPU: no other one can
        have more packets than one that has half.

    """
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
