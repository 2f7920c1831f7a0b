"""``tailtrim testbed``."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say, say_json, tell
from tailtrim.errors import ExitCode
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.testbed_check import Finding
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription

EXAMPLES = """\b
Examples:
  tailtrim testbed check lab.yml                # go to each host and try what the file says
  tailtrim testbed show lab.yml --out lab.svg
  tailtrim testbed check lab.yml --plan plan.yml  # also: what of the plan cannot run there
  tailtrim testbed clean lab.yml                # remove the agents that were copied there
  tailtrim testbed power lab.yml dut state
  tailtrim testbed power lab.yml dut cycle
  tailtrim testbed power lab.yml dut off --hard # take the power away
  tailtrim testbed power lab.yml dut next pxe   # boot from the network, once

Exit code: 0 if no fault was found, otherwise 3; 3 also if a node cannot be switched.
"""

_EXPECTED_OF_POWER = "expected NODE and state, on, off, cycle, next pxe or next disk"


class Action(StrEnum):
    """Actions on a testbed."""

    CHECK = "check"
    SHOW = "show"
    CLEAN = "clean"
    POWER = "power"


def command(  # noqa: PLR0913 - one parameter an option
    action: Annotated[
        Action,
        typer.Argument(
            metavar="ACTION",
            help="check: connect to each host, and send frames through each cable; show: draw it;"
            " clean: remove what was copied to the hosts; power: read or switch the power of a"
            " node.",
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A testbed file, YAML.")],
    power: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NODE STATE",
            help="With power: a node, and state, on, off, cycle, next pxe or next disk.",
        ),
    ] = None,
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="PLAN", help="With check: also say what of a plan cannot run there."
        ),
    ] = None,
    hard: Annotated[
        bool,
        typer.Option("--hard", help="With power NODE off: take the power away, do not shut down."),
    ] = False,
    out: Annotated[
        Path | None,
        options.out("With show: write the drawing, an SVG.", "FILE"),
    ] = None,
    json: Annotated[
        bool, options.json("With check and clean: print the findings as JSON.")
    ] = False,
) -> None:
    """Check, show, clean or switch the hosts that a testbed file describes."""
    from tailtrim.laboratory.nodes import drawing, testbed_check  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.plan.testbed import load_testbed  # noqa: PLC0415

    _options_fit(action, power=bool(power), plan=plan is not None, hard=hard)
    description = load_testbed(file)
    if action is Action.POWER:
        _switch(description, power or [], hard=hard)
        return
    if action is Action.SHOW:
        say(drawing.text(description))
        if out is not None:
            write_files.write(out, drawing.svg(description).encode())
        return
    if action is Action.CHECK:
        from tailtrim.laboratory.experiment.plan_check import tried  # noqa: PLC0415 - the help does without

        more = None if plan is None else tried(plan, description)
        found = testbed_check.examine(description, lambda what: say(what, err=True), more)
    else:
        found = testbed_check.clean(description)
    faults = sum(one.kind == "fault" for one in found)
    if json:
        say_json({"faults": faults, "findings": [asdict(one) for one in found]})
    else:
        for one in found:
            _tell(one)
        say(f"{faults} faults" if faults != 1 else "1 fault")
    if faults:
        raise typer.Exit(ExitCode.IMPOSSIBLE)


def _options_fit(action: Action, *, power: bool, plan: bool, hard: bool) -> None:
    """Refuse options of another action.

    Raises:
        typer.BadParameter: there is such.

    """
    for given, name, of in (
        (power, "NODE", Action.POWER),
        (hard, "--hard", Action.POWER),
        (plan, "--plan", Action.CHECK),
    ):
        if given and action is not of:
            raise typer.BadParameter(f"{name} belongs to testbed {of}, not to testbed {action}")


def _switch(description: TestbedDescription, words: list[str], *, hard: bool) -> None:
    """Switch the power of a node, or read it, and print its state.

    Raises:
        HostError: it cannot be done, or others have reserved the node.
        PlanError: the testbed file does not allow it, or does not know the node.
        typer.BadParameter: that is not understood.

    """
    from tailtrim.laboratory.nodes.power_control import power_of, switchable  # noqa: PLC0415 - for the help

    if hard and words[1:] != ["off"]:
        raise typer.BadParameter("--hard belongs to off")
    match words:
        case [node, "state"]:
            say(f"{node} is {power_of(description, node).state()}")
        case [node, "on"]:
            power_of(description, node).on()
            say(f"{node} is on")
        case [node, "off"]:
            switchable(description, node).off(hard=hard)
            say(f"{node} is off")
        case [node, "cycle"]:
            switchable(description, node).cycle()
            say(f"{node} was off and is on")
        case [node, "next", ("pxe" | "disk") as source]:
            switchable(description, node).boot_next(source)
            say(f"{node} boots from {source} the next time")
        case _:
            told = f", not {' '.join(words)!r}" if words else ""
            raise typer.BadParameter(f"{_EXPECTED_OF_POWER}{told}")


def _tell(finding: Finding) -> None:
    kind = {"fault": "fault", "note": "note ", "good": "ok   "}[finding.kind]
    expected = f", expected {finding.expected}" if finding.expected else ""
    tell(f"{kind}  {finding.where}: {finding.what}{expected}")
    if finding.remedy:
        tell(f"       {finding.remedy}")
