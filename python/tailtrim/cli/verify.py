"""``tailtrim verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import Progress, doing, say_json, tell
from tailtrim.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.release import CheckResult
    from tailtrim.publishing.release.checks.rerun import Rerun

EXAMPLES = """\b
Examples:
  tailtrim verify demo-release
  tailtrim verify demo-release --json
  tailtrim verify demo-release --only files --only numbers
  tailtrim verify demo-release --signers my-allowed-signers
  tailtrim verify demo-release --rerun 3                        # measures 3 runs again, here
  tailtrim verify demo-release --rerun 3 --testbed my-testbed.yml
Exit codes: 0 all levels passed or were skipped, 1 a level failed, 2 not a release or unsafe, 3 not
possible on this host, 5 a claim is not decided.
"""

SCHEMA = "tailtrim.verification/1"


def command(  # noqa: PLR0913 - one parameter an option
    place: Annotated[Path, typer.Argument(metavar="DIR", help="A release, written by release.")],
    *,
    signers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keys that may have signed it (ALLOWED SIGNERS in ssh-keygen(1)). Default: those"
            " that the release brings.",
        ),
    ] = None,
    rerun: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Measure N random runs again and compare them. This starts what the release's plan"
            " says, so read it before.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Seed of the choice of --rerun.")
    ] = 1,
    testbed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Testbed file of your hosts, for --rerun."),
    ] = None,
    out: Annotated[
        Path | None,
        options.out("Results of --rerun. Default: results/rerun."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="Check only this level: files, grid, numbers, figures, validity, claims, rerun;"
            " repeatable.",
        ),
    ] = None,
    json: Annotated[bool, options.json("Print the levels as JSON.")] = False,
) -> None:
    """Derive every number of a release and its figures again, and say what differs."""
    from tailtrim.publishing.release.checks.rerun import Rerun  # noqa: PLC0415 - the help does without

    again = None
    if rerun:
        again = Rerun(rerun, out or Path("results/rerun"), seed, testbed)
    levels = _verified(place, signers, again, only or ())
    if json:
        say_json({"schema": SCHEMA, "levels": [_level(one) for one in levels]})
    else:
        for one in levels:
            _tell(one)
    if any(one.wrong for one in levels):
        raise typer.Exit(ExitCode.NEGATIVE)
    if any(one.undecided for one in levels):
        raise typer.Exit(ExitCode.UNDECIDED)


def _verified(
    place: Path, signers: Path | None, again: Rerun | None, only: Sequence[str]
) -> list[CheckResult]:
    from tailtrim.cli.signals import ending_orderly  # noqa: PLC0415 - the help does without
    from tailtrim.publishing.release import verify  # noqa: PLC0415

    def told(what: str) -> None:
        if again is not None:
            doing(what)
        else:
            progress(None)

    with ending_orderly(), Progress("verifying") as progress:
        return verify(place, signers=signers, again=again, only=only, told=told)


def _level(level: CheckResult) -> dict[str, object]:
    return {
        "level": level.name,
        "verdict": level.verdict,
        "told": level.told,
        "wrong": level.wrong,
        "not_decided": level.undecided,
        "skipped": level.skipped,
        "notes": level.notes,
    }


def _tell(level: CheckResult) -> None:
    tell(f"{level.verdict:<8} {level.name:<9} {level.told}")
    for kind, lines in (
        ("differs", level.wrong),
        ("open", level.undecided),
        ("skipped", () if level.without else level.skipped),
        ("note", level.notes),
    ):
        for line in lines:
            tell(f"         {kind}: {line}")
