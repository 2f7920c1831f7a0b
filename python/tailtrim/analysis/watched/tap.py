"""Minutes of a device that is tapped, in the words of those of a target that is probed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The kind of a device in its ``target.json``.
TAP = "tap"
#: Outcomes of packets that entered, by those of probes.
_OUTCOMES = {"answered": "matched", "late": "beyond_window", "lost": "lost", "cut": "cut"}
#: Packets that entered and are no samples, of which no latency is known.
_UNTOLD = ("duplicate", "copy", "unstamped")
#: Of the health of a minute, what adds up.
_SUMS = ("tapped_ns", "ingress_dropped", "egress_dropped")
#: Arrivals of a device that its outcomes or its health have, too.
TAP_SUMS = (*_SUMS, "egress matched")


def as_probes(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a minute with packets that entered as probes, and what else came.

    Raises:
        KeyError: something is missing.
        ValueError: outcomes do not add up.

    >>> entered = {"packets": 9, "matched": 5, "disturbed": 1, "lost": 2, "beyond_window": 0}
    >>> others = {"cut": 1, "duplicate": 1, "copy": 0, "unstamped": 0, "foreign": 7}
    >>> egress = {"packets": 6, "matched": 5, "unmatched": 1, "copy": 0, "unstamped": 0, "cut": 0}
    >>> line = as_probes({**entered, **others, "egress": egress, "health": {"tapped_ns": 60}})
    >>> line["due"], line["answered"], line["arrivals"]["duplicate"], line["arrivals"]["foreign"]
    (8, 5, 1, 7)

    """
    outcomes = {name: line[word] for name, word in _OUTCOMES.items()}
    due, untold = sum(outcomes.values()), sum(line[name] for name in _UNTOLD)
    egress = dict(line["egress"])
    left = egress.pop("packets")
    if due + untold != line["packets"] or sum(egress.values()) != left:
        raise ValueError("outcomes do not add up to packets")
    health = line["health"]
    return {
        **line,
        **outcomes,
        "due": due,
        # That of probes is among those that are answered.
        "unstamped": 0,
        "arrivals": {
            **{name: line[name] for name in (*_UNTOLD, "foreign")},
            **{f"egress {name}": count for name, count in egress.items()},
            **{name: health[name] for name in _SUMS if name in health},
        },
    }
