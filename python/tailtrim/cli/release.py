"""``tailtrim release``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import doing, say, tell

EXAMPLES = """\b
Examples:
  tailtrim release results/demo --out demo-release --license LICENSE --citation CITATION.cff
  tailtrim release results/demo --out demo-release       # with both files in results/demo
  tailtrim release results/demo --out small --captures none
  tailtrim release results/demo --out public --anonymise
  tailtrim release results/demo --out signed --sign ~/.ssh/id_ed25519
The result is verified before it appears: a release that would not hold is not made.
"""


class Captures(StrEnum):
    """Captures that are released."""

    ALL = "all"
    NONE = "none"


def command(  # noqa: PLR0913 - one parameter an option
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT", help="An experiment, written by run.")
    ],
    *,
    out: Annotated[Path, options.out("Directory of the release; new.")],
    captures: Annotated[
        Captures,
        typer.Option(
            metavar="all|none",
            help="all: with the captures of the runs, where the plan kept them; none: without, so"
            " that latencies can be derived from samples alone.",
        ),
    ] = Captures.ALL,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise",
            help="Encrypt addresses in captures (Crypto-PAn, which keeps prefixes), replace MAC"
            " addresses and cut payloads. The key is not kept.",
        ),
    ] = False,
    license: Annotated[  # noqa: A002 - as the option
        Path | None,
        typer.Option(metavar="FILE", help="Licence of the data. Default: EXPERIMENT/LICENSE."),
    ] = None,
    citation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="How to cite the data. Default: EXPERIMENT/CITATION.cff."
        ),
    ] = None,
    claims: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What is claimed of the numbers. Default: EXPERIMENT/claims.yml, if it exists.",
        ),
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Wheel of this version of tailtrim, for readers."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Sign with this private SSH key (ssh-keygen -Y)."),
    ] = None,
) -> None:
    """Make a folder of an experiment, with its report, for a git repository and an archive."""
    from tailtrim.publishing.release import ReleaseOptions, release  # noqa: PLC0415 - the help does without

    wanted = ReleaseOptions(
        captures is Captures.ALL, anonymise, license, citation, claims, wheel, sign
    )
    left_out = release(experiment, out, wanted, doing)
    for name in left_out:
        tell(f"left out: {name}", err=True)
    say(f"Release:    {out}\nFront page: {out / 'README.md'}")
