"""``tailtrim ping``: the agent's command, with a run directory and objectives on request."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.cli.console import say, say_lines, show_run, tell
from tailtrim.cli.delegated import become_agent
from tailtrim.cli.objectives import judged, promises, read
from tailtrim.errors import ExitCode
from tailtrim.laboratory.nodes import agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective

_HELP = """
Options of the package, which the agent alone has not:
  -o, --out <DIR>
          Leave a run directory here, for report, compare and convert; numbered ones for several
          targets
      --assert <OBJECTIVES>
          What has to hold for each target, such as 'p99.9 < 50us, loss < 0.01%'; also max, mean
          and 'adjusted p99' (a lost probe is infinitely late). Or a promise by name, such as
          urllc-1ms, whose deadline the round trip has to keep. Exit code 1: failed; 5: the interval
          holds the limit, so more probes are needed
      --junit <FILE>
          Write what --assert found as JUnit XML
"""


@dataclass
class _Own:
    """Options of the package, which the agent does not have, and the agent's ``--log``."""

    out: Path | None = None
    junit: Path | None = None
    log: Path | None = None
    asserts: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def command(arguments: Sequence[str]) -> int:
    """Become the agent; or run it, do what it does not, and return the exit code."""
    own = _own(arguments)
    if "list" in own.asserts:
        say_lines(promises())
        return ExitCode.SUCCESS
    objectives = read(own.asserts, own.junit)
    if {"-h", "--help"} & set(own.rest):
        return _help(own.rest)
    if own.out is None and not objectives:
        return become_agent("ping", own.rest)
    if own.out is not None:
        _check(own.out)
    quantiles = [word for one in objectives if one.p for word in ("--quantile", one.p)]
    with tempfile.TemporaryDirectory(prefix="tailtrim-ping-") as folder:
        words = [] if own.log else ["--log", folder]
        code = _agent([*own.rest, *quantiles, *words])
        runs = own.out or Path(folder) / "runs"
        return _finish(own.log or Path(folder), runs, own, objectives, code)


def _check(out: Path) -> None:
    """Check before the measurement that its run directories can be written.

    Raises:
        OutputError: they cannot.

    """
    from tailtrim.results.writing import Draft  # noqa: PLC0415 - not for the agent alone

    numbered = [place for place in out.glob("*") if place.name.isdecimal()]
    for place in numbered or [out]:
        with Draft(place):
            pass


def _agent(arguments: Sequence[str]) -> int:
    program = agent.program()
    sys.stdout.flush()
    # Ctrl-C is for the agent, which ends with its result.
    process = subprocess.Popen(["tailtrim", "ping", *arguments], executable=program)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _finish(folder: Path, out: Path, own: _Own, objectives: list[Objective], code: int) -> int:
    if code not in {ExitCode.SUCCESS, ExitCode.NEGATIVE}:
        return code
    # Not for the agent alone.
    from tailtrim.analysis.roundtrip.log import leave_runs, results  # noqa: PLC0415
    from tailtrim.analysis.roundtrip.measured_part import part  # noqa: PLC0415
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415
    from tailtrim.results import RunDirectory  # noqa: PLC0415

    places = leave_runs(folder, out)
    if own.out is not None:
        names = " ".join(map(str, places))
        show_run(out, names, err=True)
    if not objectives:
        return code
    found = results(folder)
    streams = found["streams"]
    for stream in streams:
        tell(f"judged: {part({**stream, 'level': found['level']})}", err=True)
    measured = [
        JudgedRun(stream["name"], RunDirectory(place), stream["name"])
        for stream, place in zip(streams, places, strict=False)
    ]
    verdict = judged(measured, objectives, own.junit)
    return code or verdict


def _help(arguments: Sequence[str]) -> int:
    """Print the agent's help, with the options of this before its examples."""
    command = ["tailtrim", "ping", *arguments]
    ended = subprocess.run(
        command, executable=agent.program(), stdout=subprocess.PIPE, text=True, check=False
    )
    before, mark, after = ended.stdout.partition("\nExamples:")
    say(f"{before}{_HELP}{mark}{after}".rstrip("\n"))
    return ended.returncode


def _own(arguments: Sequence[str]) -> _Own:
    """Split the options; ``--log`` is noted and stays the agent's."""
    own = _Own()
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in {"-o", "--out", "--assert", "--junit", "--log"}:
            own.rest.append(word)
            continue
        found = value if equals else next(words, None)
        if found is None:
            raise ValueError(f"{name}: expected a value after it")
        if name == "--assert":
            own.asserts.append(found)
        elif name == "--junit":
            own.junit = Path(found)
        elif name == "--log":
            own.log = Path(found)
            own.rest += [name, found]
        else:
            own.out = Path(found)
    return own
