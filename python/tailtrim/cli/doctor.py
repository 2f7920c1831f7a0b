"""``tailtrim doctor``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say, say_json, show
from tailtrim.errors import ExitCode

if TYPE_CHECKING:
    from tailtrim.laboratory.doctor import Check

EXAMPLES = """\b
Examples:
  tailtrim doctor
  sudo apt-get install $(tailtrim doctor --missing-packages demo)

Exit code: 0 if this host can run the demo, otherwise 3.
"""


class Purpose(StrEnum):
    """Purposes of packages."""

    DEMO = "demo"
    ALL = "all"


def command(
    *,
    missing_packages: Annotated[
        Purpose | None,
        typer.Option(
            metavar="demo|all",
            help="Only print the Debian packages that are missing for the demo, or for everything.",
        ),
    ] = None,
    json: Annotated[bool, options.json("Print the checks as JSON.")] = False,
) -> None:
    """Say what this host can do for each command, and what is missing."""
    if missing_packages is not None:
        _packages(missing_packages)
        return
    from tailtrim.laboratory.doctor import examine  # noqa: PLC0415 - the help does without

    checks = examine()
    lacking = [check for check in checks if check.demo and check.missing]
    if json:
        rows = [
            {"command": c.command, "what": c.what, "works": not c.missing, "missing": c.missing}
            for c in checks
        ]
        say_json({"demo": not lacking, "checks": rows})
    else:
        _table(checks)
        say(f"\nThe demo (make demo): {'not possible' if lacking else 'possible'} on this host.")
    if lacking:
        raise typer.Exit(ExitCode.IMPOSSIBLE)


def _packages(purpose: Purpose) -> None:
    from tailtrim.laboratory.doctor import missing_tools  # noqa: PLC0415 - see above
    from tailtrim.tool import installable  # noqa: PLC0415

    packages, services = installable(missing_tools(everything=purpose is Purpose.ALL))
    for package in packages:
        say(package)
    for package in services:
        say(f"not listed, since it would start a service here: {package}", err=True)


def _table(checks: list[Check]) -> None:
    from rich.table import Table  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("Command", "Needs", "Here"):
        table.add_column(name, no_wrap=True)
    table.add_column("Missing", overflow="fold")
    before = ""
    for check in checks:
        command = "" if check.command == before else check.command
        works = Text("no", style="bold") if check.missing else Text("yes")
        table.add_row(command, check.what, works, check.missing or "")
        before = check.command
    show(table)
    say("Other commands need nothing beside tailtrim.")
