"""Two spans of many targets, compared target by target: one verdict may be wrong for all of them."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.compare import Comparison, compare_groups
from tailtrim.analysis.compare.sources import Group, Repetition
from tailtrim.analysis.options import confidence_level
from tailtrim.analysis.watched.reading import Account
from tailtrim.analysis.watched.run import leave_run
from tailtrim.errors import RoundTripError
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched.span import Span
    from tailtrim.analysis.watched.target import Target

#: Draws of what chance would do that a comparison has by default.
_DRAWS = 9_999
#: So many draws a side are beyond the smallest error that is to be told.
_BEYOND = 10
#: Decimals of a confidence: more are an error of the native module.
_FINEST = Decimal("1e-12")
#: With the default draws, a p-value above this is no smaller one by chance.
_NEAR = 40 / _DRAWS


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a span of some targets, by the name that a user gave it."""

    name: str
    targets: Sequence[Target]
    span: Span


@dataclass(frozen=True)
class ComparedTarget:
    """A target on both sides; without a ``comparison``, ``fault`` says why."""

    name: str
    host: str
    accounts: tuple[Account, ...]
    comparison: Comparison | None
    fault: str = ""

    @property
    def verdict(self) -> str:
        """The verdict, or ``not_compared``."""
        return "not_compared" if self.comparison is None else self.comparison.verdict


def compared(
    a: Side,
    b: Side,
    *,
    folder: Path,
    confidence: str | float = "0.95",
    progress: Callable[[float], object] = lambda _: None,
    **options: Any,
) -> Iterator[ComparedTarget]:
    """Compare B with A, target by target.

    Args:
        a: the baseline.
        b: the other side.
        folder: for run directories, which are removed again.
        confidence: of the verdicts of all targets together.
        progress: is told the share that is done.
        options: as of :func:`tailtrim.analysis.compare.compare_groups`.

    Raises:
        ValueError: no target is on both sides, or an option makes no sense.

    """
    pairs, alone = _paired(a, b)
    if not pairs:
        raise ValueError(f"{a.name} and {b.name}: no target of one is in the other")
    error = (1 - Decimal(confidence_level(confidence))) / len(pairs)
    for done, (one, other) in enumerate(pairs, 1):
        both = (Account(one, a.span), Account(other, b.span))
        yield _compared(both, (a.name, b.name), folder / str(done), error, options)
        progress(done / len(pairs))
    for target, side in alone:
        yield ComparedTarget(
            target.name, target.host, (), None, f"only in {side.name}, so it is not compared"
        )


def _paired(
    a: Side, b: Side
) -> tuple[list[tuple[Target, Target]], list[tuple[Target, Side]]]:
    """Put targets of the same name together, and those of the same host where several have it."""
    of: defaultdict[str, list[list[Target]]] = defaultdict(lambda: [[], []])
    for place, side in enumerate((a, b)):
        for target in side.targets:
            of[target.name][place].append(target)
    pairs: list[tuple[Target, Target]] = []
    alone: list[tuple[Target, Side]] = []
    for ones, others in of.values():
        if len(ones) == len(others) == 1:
            pairs.append((ones[0], others[0]))
            continue
        hosts = {other.host: other for other in others}
        pairs += [(one, hosts[one.host]) for one in ones if one.host in hosts]
        known = {one.host for one in ones} & set(hosts)
        alone += [(one, a) for one in ones if one.host not in known]
        alone += [(other, b) for other in others if other.host not in known]
    return pairs, alone


def _compared(
    accounts: tuple[Account, Account],
    names: tuple[str, str],
    folder: Path,
    error: Decimal,
    options: dict[str, Any],
) -> ComparedTarget:
    target = accounts[0].target
    try:
        groups = []
        for account, name, side in zip(accounts, names, "ab", strict=True):
            leave_run(account, folder / side)
            run = RunDirectory(folder / side)
            groups.append(Group(f"{name}, {target.name}", (Repetition(run.name, run),)))
        comparison = _judged(groups[0], groups[1], error, options)
    except RoundTripError as failure:
        return ComparedTarget(target.name, target.host, accounts, None, str(failure))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    named = replace(comparison, label=f"{target.host}/{target.name}")
    return ComparedTarget(target.name, target.host, accounts, named)


def _judged(a: Group, b: Group, error: Decimal, options: dict[str, Any]) -> Comparison:
    """Compare with so many draws that the error could be told, if the first ones come near it."""
    confidence = f"{(1 - error).quantize(_FINEST, ROUND_UP):f}"
    found = compare_groups(a, b, confidence=confidence, **options)
    needed = math.ceil(2 * _BEYOND / error)
    known = [row.p_value for row in found.quantiles if row.p_value is not None]
    if needed <= _DRAWS or min(known, default=1.0) > _NEAR:
        return found
    return compare_groups(a, b, confidence=confidence, draws=needed, **options)
