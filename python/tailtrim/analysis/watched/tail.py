"""Percentiles of spans without a run: counted as the minutes are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim import _native
from tailtrim.analysis.watched.minute import NONE
from tailtrim.analysis.watched.run import Held, merged, nothing, together
from tailtrim.errors import RoundTripError
from tailtrim.results.summary import Quantile  # noqa: TC001 - typed() reads the hints
from tailtrim.results.typed_json import parsed, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.watched.reading import Account
    from tailtrim.results import Summary

#: Percentiles of tables.
SHOWN = ("0.5", "0.9", "0.99", "0.999", "0.9999")
_CONFIDENCE = "0.95"


@dataclass(frozen=True)
class Tail:
    """The tail of a span: times in ns, and quantiles with 95 % confidence intervals."""

    samples: int
    min_ns: int | None
    max_ns: int | None
    quantiles: tuple[Quantile, ...]

    @classmethod
    def of_run(cls, summary: Summary) -> Tail:
        """Return that of a run."""
        latency = summary.latency_ns
        return cls(summary.samples, latency.min, latency.max, latency.quantiles)

    def quantile(self, p: str) -> Quantile | None:
        """Return a quantile; ``None``: it was not computed."""
        return next((one for one in self.quantiles if one.p == p), None)


def tail_of(accounts: Sequence[Account]) -> Tail:
    """Count the samples of a span of a target, or of the same target of several hosts as one.

    The numbers are those of a run of this span. The accounts are filled meanwhile.

    Raises:
        RoundTripError: no minute is in the span, or a file cannot be read.

    """
    native = _native.NativeTail()
    # In the order of the replies, as in a run: so late ones that come together are seen as such.
    replies = Held("latency_ns")
    for before_ns, sent_ns, took_ns in together(merged(accounts)):
        answered = took_ns != NONE
        received_ns = (sent_ns + took_ns)[answered]
        native.record(replies.until(before_ns, received_ns, took_ns[answered]))
    native.record(replies.rest())
    if not any(account.lines for account in accounts):
        raise RoundTripError(nothing(accounts))
    return typed(Tail, parsed(native.told_json(list(SHOWN), _CONFIDENCE)))
