"""One word for one thing: the options of all commands, and how their values are read."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.analysis import queueing
from tailtrim.analysis.compare import plan_length
from tailtrim.analysis.options import amount_of, nanoseconds, native
from tailtrim.cli.application import app
from tailtrim.cli.catalogue import BY_AGENT, CATALOGUE, FORMER
from tailtrim.laboratory.capacity.request import search_request
from tailtrim.laboratory.plan.traffic import Traffic
from tailtrim.units import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BIN = Path(sys.executable).parent
TABLE = Path(__file__).parents[2] / "docs" / "words.md"
ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "200"}
#: Commands of the agent that ``tailtrim`` does not have, and one that has other options there.
OF_AGENT_ALONE = ("analyze", "disturb")
#: Commands without ``--json``, and what they leave instead.
WITHOUT_JSON = {
    **dict.fromkeys(("capture", "counters", "forward", "generate", "reflect"), "lines"),
    **dict.fromkeys(("convert", "decode", "image", "release", "report", "watch"), "files"),
    **dict.fromkeys(("load", "tune export"), "rows of others"),
}
OPTION = re.compile(r" +(?:-\w, )?(--[a-z][a-z-]*)(?: \[?<([^>]+)>|=\[?<([^>]+)>| (\S+))?(?:\W|$)")


def agent(*words: str) -> subprocess.CompletedProcess[str]:
    return run("tailtrim-agent", *words)


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / program, *words],
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )


def helps() -> Iterator[tuple[str, str]]:
    """Yield commands with their help."""
    for name in (*CATALOGUE, "import pos", "pos"):
        if name not in BY_AGENT:
            yield name, CliRunner(env=ENVIRONMENT).invoke(app, [*name.split(), "--help"]).stdout
    for name in (*BY_AGENT, *OF_AGENT_ALONE):
        program = "tailtrim" if name == "ping" else "tailtrim-agent"
        text = run(program, name, "--help").stdout
        yield name, text
        listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
        for verb in re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE):
            if verb != "help":
                yield f"{name} {verb}", agent(name, verb, "--help").stdout


@pytest.fixture(scope="module")
def options() -> dict[str, dict[str, set[str]]]:
    """The options with the names of their values, and the commands of each."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for command, text in helps():
        for line in text.splitlines():
            if (option := OPTION.match(line)) and option[1] not in {"--help", "--version"}:
                value = next(filter(None, option.groups()[1:]), "").removesuffix(",…")
                found[option[1]][value.replace("|", " or ")].add(command)
    return found


def rows() -> dict[str, tuple[str, set[str]]]:
    """The names of values, and the commands, of each option in the table."""
    cells = [line.strip("| ").split(" | ") for line in TABLE.read_text("utf-8").splitlines()]
    told = {one[0].strip("`"): one for one in cells if one[0].startswith("`--")}
    assert len(told) == sum(one[0].startswith("`--") for one in cells), "an option has two rows"
    return {name: (one[1], set(one[3].split(", "))) for name, one in told.items()}


def test_no_option_has_two_meanings(options: dict[str, dict[str, set[str]]]) -> None:
    """Each has one row, which says what it is, and for which commands that was decided."""
    found = {
        name: (", ".join(sorted(filter(None, values))) or NONE, set().union(*values.values()))
        for name, values in options.items()
    }
    assert found == rows()


def test_former_spellings_are_no_options(options: dict[str, dict[str, set[str]]]) -> None:
    for command, former in FORMER.items():
        of_command = {
            name for name, values in options.items() if command in set().union(*values.values())
        }
        assert not of_command & set(former), command
        assert set(former.values()) <= of_command, command


def test_a_result_can_be_had_as_json(options: dict[str, dict[str, set[str]]]) -> None:
    told = set().union(*options["--json"].values()) | WITHOUT_JSON.keys() | {"tune"}
    assert set(CATALOGUE) <= told
    assert not WITHOUT_JSON.keys() & set().union(*options["--json"].values())


def test_a_former_spelling_is_read_with_a_note() -> None:
    runner = CliRunner(env=ENVIRONMENT)
    for former, words in (("--to", "--to=x"), ("--slo", "--slo")):
        command = "convert" if former == "--to" else "predict"
        told = runner.invoke(app, [command, "nowhere", words, "hgrm"]).stderr
        assert told.startswith(f"note: {former} is called {FORMER[command][former]} now\n")
    done = agent("audit", "--list", "--skip", "MEM", "--observe", "0")
    assert done.stderr.splitlines() == [
        "note: --skip is called --without now",
        "note: --observe is called --duration now",
    ]
    assert "MEM-001" not in done.stdout


@pytest.mark.parametrize(
    "text",
    ["10s", "500ms", "2.5 ms", "0.25", "1.5min", "48h", "0", "1e3us", "5m", "-1s", "1  s", ""],
)
def test_times_are_read_by_one_parser(text: str) -> None:
    by_agent = agent("audit", "--list", f"--duration={text}")
    try:
        nanoseconds("duration", text)
    except ValueError:
        assert by_agent.returncode == 2
    else:
        assert by_agent.returncode == 0, by_agent.stderr


@pytest.mark.parametrize(
    "text",
    ["120kpps", "1.5Mpps", "500Mbit/s", "20 kpps", "500", "20k", "0", "1.5", "fast", "1Tpps"],
)
def test_rates_are_read_by_one_parser(text: str) -> None:
    # A request that is refused behind its rate.
    refused = agent("ping", "192.0.2.1", "--stamps", "hardware", f"--rate={text}").stderr
    predicted = CliRunner().invoke(app, ["plan-length", "--quantile", "0.9", "--rate", text])
    try:
        amount, unit = amount_of(text)
    except ValueError:
        assert "--rate" in refused
        assert predicted.exit_code == 2
        with pytest.raises(ValueError, match="rate"):
            Traffic(rate=text)
    else:
        assert "expected --interface" in refused
        assert (predicted.exit_code == 0) == (unit == "pps")
        assert Traffic(rate=text).packets_per_s == (
            amount if unit == "pps" else pytest.approx(amount / 672)
        )


def amount(told: Any) -> Any:
    """Return a default as a number, however it is written."""
    text = str(told)
    if text.endswith("%"):
        return Decimal(text[:-1]) / 100
    if re.fullmatch(r"[0-9.]+(e-?\d+)?", text):
        return Decimal(text)
    return Decimal(nanoseconds("default", text)) / 10**9 if re.fullmatch(r"\d+\w+", text) else told


@pytest.mark.parametrize(
    ("command", "function", "names"),
    [
        (
            "compare",
            tailtrim.compare,
            {"margin": "margin", "confidence": "confidence", "seed": "seed"},
        ),
        ("explain", tailtrim.explain, {"late_from": "late_from"}),
        ("analyze", tailtrim.analyze, {"jobs": "jobs", "clock_fit": "clock_fit"}),
        (
            "plan_length",
            plan_length,
            {name: name for name in ("precision", "confidence", "assurance", "cluster")},
        ),
        (
            "capacity",
            search_request,
            {
                "width": "width",
                "confidence": "confidence",
                "duration": "budget_s",
                "search": "searched",
            },
        ),
        ("predict", queueing.predicted, {"faster": "faster"}),
    ],
)
def test_command_and_function_have_the_same_defaults(
    command: str, function: Callable[..., Any], names: dict[str, str]
) -> None:
    typed = inspect.signature(import_module(f"tailtrim.cli.{command}").command).parameters
    called = inspect.signature(function).parameters
    for option, parameter in names.items():
        assert amount(typed[option].default) == amount(called[parameter].default), option


def test_analyses_have_the_same_defaults() -> None:
    typed = inspect.signature(import_module("tailtrim.cli.analyze").command).parameters
    asked = {"skip_s": "skip", "window_s": "window", "confidence": "confidence"}
    given: Any = {name: typed[option].default for name, option in asked.items()}
    assert native(given) == native({})
