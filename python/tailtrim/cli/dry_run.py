"""``tailtrim run --dry-run``."""

from __future__ import annotations

import json as encoding
from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.experiment.dry_run import dry_run
from tailtrim.report import units

if TYPE_CHECKING:
    from tailtrim.plan import Plan, Run

#: So many runs of a step are named.
_NAMED = 3
_WIDTH = len("copy agent")


def tell(plan: Plan, runs: list[Run], *, json: bool) -> None:
    """Print all that an experiment would do to each node.

    Raises:
        HostError: it is not possible.

    """
    would = dry_run(plan, runs)
    if json:
        say(encoding.dumps(would.as_json()))
        return
    say(f"{would.name}: {would.expected.text()}. Nothing is changed by --dry-run.")
    for name, node in would.nodes.items():
        roles = ", ".join(node.roles)
        say(f"\n{name} ({roles})" if roles and not name.startswith(roles) else f"\n{name}")
        for step, of in node.steps.items():
            told = units.printable(f"{step.do:<{_WIDTH}}  {step.what}{_runs(of, len(runs))}")
            say(f"  {told}")


def _runs(of: list[str], every: int) -> str:
    if not of or len(of) == every:
        return ""
    more = f" and {len(of) - _NAMED} more" if len(of) > _NAMED else ""
    return f"  ({', '.join(of[:_NAMED])}{more})"
