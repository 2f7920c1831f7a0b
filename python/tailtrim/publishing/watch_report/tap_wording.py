"""Words for what the taps of a device did not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.watched import MINUTE_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.watched import Account

#: The taps of whole minutes record all of them; so much may be missing in all.
_SHORT_NS = 10**9


def notes(account: Account) -> Iterator[str]:
    """Yield what a reader must know of a span of a device before trusting its numbers."""
    came = account.arrivals
    for side, what in (("ingress", "not measured"), ("egress", "their packets count as lost")):
        if dropped := came[f"{side}_dropped"]:
            yield f"the tap at {side} dropped {units.counted(dropped, 'frame')}: {what}"
    away_ns = len(account.begins_ns) * MINUTE_NS - came["tapped_ns"]
    if away_ns > _SHORT_NS:
        yield f"the taps did not record for {units.time(away_ns)} of these minutes"
    names = ("duplicate", "unstamped")
    if own := [f"{came[name]:,} {name}" for name in names if came[name]]:
        yield f"packets without a latency: {', '.join(own)}"
