"""``tailtrim explain`` of spans of a watch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tailtrim.cli import spans
from tailtrim.cli.console import say_json, say_lines, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tailtrim.analysis.explain import Explanation
    from tailtrim.analysis.watched import Account
    from tailtrim.cli.spans import Selected
    from tailtrim.results import RunDirectory


def explain(
    chosen: Selected,
    explained: Callable[[RunDirectory], Explanation],
    lines: Callable[[Explanation], Iterable[str]],
    *,
    json: bool,
) -> None:
    """Print what happened to each target, of a single one also the causes of its late probes.

    Args:
        chosen: the targets.
        explained: attributes the late packets of a run.
        lines: says that in lines.
        json: print JSON instead.

    Raises:
        RoundTripError: no minute is in the span, or a file cannot be read.

    """
    from tailtrim.analysis.watched import Account  # noqa: PLC0415 - others start without
    from tailtrim.errors import RoundTripError  # noqa: PLC0415
    from tailtrim.publishing.watch_report import explanation  # noqa: PLC0415

    accounts = [Account(target, chosen.span) for target in chosen.targets]
    if len(accounts) == 1:
        causes = _causes(accounts[0], chosen.names[0], explained)
    else:
        causes = []
        for account in accounts:
            for _ in account.minutes():
                pass
    known = [account for account in accounts if account.lines]
    if not known:
        raise RoundTripError(accounts[0].nothing())
    now_ns = time.time_ns()
    if json:
        told = [explanation.as_json(account, now_ns) for account in accounts]
        if causes:
            told[0]["causes"] = causes[0].as_json()
        say_json({"schema": explanation.SCHEMA, "targets": told}, indent=2, ensure_ascii=False)
        return
    for account in accounts:
        say_lines(explanation.lines(account, now_ns) if account.lines else [account.nothing()])
    for found in causes:
        say_lines(f"  {line}" if line else line for line in lines(found))
        for warning in found.warnings:
            warn(warning)


def _causes(
    account: Account, name: str, explained: Callable[[RunDirectory], Explanation]
) -> list[Explanation]:
    """Return the causes of a target's late probes; none where none has a latency and a place."""
    from tailtrim.analysis.watched import leave_run  # noqa: PLC0415 - as above
    from tailtrim.results import RunDirectory  # noqa: PLC0415

    place = spans.place_of(name)
    summary = leave_run(account, place)
    # Periods would be those of an order that was chosen by chance.
    known = summary.samples and not account.unordered
    return [explained(RunDirectory(place))] if known else []
