"""``tailtrim energy``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say_json, tell

EXAMPLES = """\b
Examples:
  tailtrim energy results/forwarder        # watts and joules a packet of each configuration
  tailtrim energy results/forwarder --json | jq '.costs[].above_ready_j_per_packet'

The runs have to be of nodes with a meter (docs/energy.md); repeat of the plan makes blocks.
"""


def command(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="An experiment that was run with meters, or one of its runs."
        ),
    ],
    *,
    json: options.Json = False,
) -> None:
    """Say what packets cost: watts of each state, joules a packet, with their uncertainty."""
    from tailtrim.laboratory.experiment.costs import costs_of  # noqa: PLC0415 - the help does without
    from tailtrim.publishing.report.energy_wording import lines  # noqa: PLC0415

    found = costs_of(directory)
    if json:
        say_json(found.as_json(), indent=2)
        return
    for line in lines(found):
        tell(line)
