"""The agent's verbs by the same name: ``tailtrim audit``, ``tune``, ``generate`` and others."""

from __future__ import annotations

import os
import sys

import typer

from tailtrim.cli.console import IMPOSSIBLE, complain
from tailtrim.errors import HostError
from tailtrim.nodes import agent

VERBS = {
    "audit": "Ask whether this host is fit for low latency (tailtrim-agent audit).",
    "generate": "Send probes on a schedule (tailtrim-agent generate).",
    "capture": "Capture at the taps of a device under test (tailtrim-agent capture).",
    "forward": "Forward frames between two ports (tailtrim-agent forward).",
    "reflect": "Send back what others measure round trips with (tailtrim-agent reflect).",
    "trace": "Record who has the CPUs: interrupts, softirqs, threads (tailtrim-agent trace).",
    "noise": "Measure how quiet CPUs are, and who disturbs them (tailtrim-agent noise).",
    "tune": "Plan, apply, verify and take back what low latency needs (tailtrim-agent tune).",
}

#: The agent reads the arguments, and has the help.
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def command(context: typer.Context) -> None:
    """Become the agent: its output, its exit code."""
    try:
        program = agent.program()
    except HostError as error:
        complain(error)
        raise typer.Exit(IMPOSSIBLE) from error
    sys.stdout.flush()
    verb = context.info_name or ""
    os.execv(program, [program, verb, *context.args])  # noqa: S606 - the agent, no shell
