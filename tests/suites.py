"""Runs a suite of tests, and tells times, the slowest tests, and all that was skipped.

python tests/suites.py SUITE [PART]

SUITE: test lab faults reflectors guests simulations engines packages long speed; all; or shard: one
of them but ``test``, or a part of one, chosen by the number of commits, which continuous
integration runs in addition to ``test``. PART: 2/3, the second third of the files of a suite.

Exit code 1: a step failed, or something was skipped that ``tests/skips.toml`` does not have.
Results of the runners stay below ``target/results``.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "target" / "results"
SLOWEST = 30
PART = re.compile(r"[1-9]/[1-9]")


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a suite; ``junit`` is where its runner writes results, below the project."""

    name: str
    command: tuple[str, ...]
    junit: str | None = None

    def part(self, part: list[str]) -> Step:
        """Return the same of a part of the files, if one is given."""
        if not part or self.command[0] != "pytest":
            return self
        return replace(self, command=(*self.command, "--part", *part))


@dataclass(frozen=True, slots=True)
class Result:
    """A test, its time, and why it was skipped, if so."""

    name: str
    seconds: float
    failed: bool
    skipped: str | None


def pytest(name: str, suite: str, *words: str) -> Step:
    """Return a step of tests in Python."""
    junit = f"target/results/{name}.xml"
    return Step(name, ("pytest", "--quiet", "--suite", suite, f"--junitxml={junit}", *words), junit)


def with_alone(name: str, suite: str, *words: str, dist: str = "loadgroup") -> tuple[Step, Step]:
    """Return the steps of tests that run in parallel, then of those that run alone."""
    together = ("-m", "not alone", "--numprocesses", "3", "--dist", dist, "--no-loadscope-reorder")
    return (
        pytest(f"{name}-together", suite, *words, *together),
        pytest(f"{name}-alone", suite, *words, "-m", "alone"),
    )


def fetch(*names: str) -> Step:
    """Return a step that fetches what the tests behind it need; these say what is missing."""
    return Step("fetch", ("packaging/fetch.sh", *names))


#: Simulations and properties are tried on other cases each time; failures tell them.
SEED = str(secrets.randbits(32))
NEXTEST = ("cargo", "nextest", "run", "--workspace", "--locked", "--show-progress", "none")
TOOLS = Step("tools", ("packaging/prerequisites.sh", "test"))
FILES = ("--numprocesses", "2", "--dist", "loadfile")
SUITES: dict[str, tuple[Step, ...]] = {
    "test": (
        TOOLS,
        Step("check", ("make", "check")),
        Step("rust", NEXTEST, "target/nextest/default/junit.xml"),
        pytest("python", "fast", "--ignore", "tests/lab", *FILES),
        *with_alone("laboratory", "fast", "tests/lab", dist="worksteal"),
    ),
    "lab": (TOOLS, fetch("roots"), *with_alone("lab", "lab")),
    "faults": (TOOLS, fetch("roots"), *with_alone("faults", "faults")),
    "reflectors": (TOOLS, *with_alone("reflectors", "reflectors")),
    "guests": (TOOLS, fetch("kernels", "roots"), pytest("guests", "guests", *FILES)),
    "simulations": (
        Step(
            "simulations-rust",
            (
                "env",
                f"PROPTEST_RNG_SEED={SEED}",
                *NEXTEST,
                "--profile",
                "simulations",
                "--run-ignored",
                "all",
            ),
            "target/nextest/simulations/junit.xml",
        ),
        pytest("simulations-python", "simulations", *FILES),
    ),
    "engines": (TOOLS, fetch("spark", "s3s"), pytest("engines", "engines", *FILES)),
    "packages": (
        TOOLS,
        fetch("docs", "validator", "stamp-suite", "roots"),
        Step("dist", ("make", "dist")),
        *with_alone("packages", "packages"),
    ),
    "long": (TOOLS, pytest("long", "long", *FILES)),
    "speed": (TOOLS, Step("gate", ("make", "bench-gate"))),
}
#: Parts for continuous integration: each commit runs one of them, within 12 minutes.
SHARDS = (
    *(("lab", f"{part}/3") for part in (1, 2, 3)),
    *((name,) for name in SUITES if name not in {"test", "lab"}),
)


def main() -> int:
    """Run the suite that the command line names; return the exit code."""
    match sys.argv[1:]:
        case ["shard"]:
            name, *part = SHARDS[commits() % len(SHARDS)]
            asked = [name]
        case ["all"]:
            asked, part = list(SUITES), []
            os.environ["TAILTRIM_ADVISORIES"] = "required"
        case [name, *part] if name in SUITES and all(map(PART.fullmatch, part)):
            asked = [name]
        case other:
            names = " ".join([*SUITES, "all", "shard"])
            sys.stderr.write(f"error: found {' '.join(other)}, expected one of: {names}\n")
            return 2
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    os.environ["TAILTRIM_SKIPPED"] = str(RESULTS / "skipped")
    # Builds in tests have no part in the jobs of the make that began this; make warns of it.
    os.environ.pop("MAKEFLAGS", None)
    os.chdir(ROOT)
    steps = list(dict.fromkeys(step.part(part) for name in asked for step in SUITES[name]))
    ended = [(step, *timed(step)) for step in steps]
    results = [result for step, _, _ in ended for result in read(step)]
    unlisted = summary(asked, ended, results)
    missing = not results and any(step.junit for step in steps)
    return 1 if unlisted or missing or any(code for _, code, _ in ended) else 0


def commits() -> int:
    """Return the number of commits of this checkout."""
    counted = subprocess.run(
        ("git", "rev-list", "--count", "HEAD"), capture_output=True, text=True, check=True
    )
    return int(counted.stdout)


def timed(step: Step) -> tuple[int, float]:
    """Run a step; return its exit code and how many seconds it took."""
    say(f"== {step.name}: {' '.join(step.command)}")
    begin = time.monotonic()
    code = subprocess.run(step.command, check=False).returncode
    return code, time.monotonic() - begin


def read(step: Step) -> Iterator[Result]:
    """Yield the tests of a step."""
    if step.junit is None or not (ROOT / step.junit).exists():
        return
    for case in ET.parse(ROOT / step.junit).iter("testcase"):  # noqa: S314 - our own runners wrote it
        skipped = case.find("skipped")
        yield Result(
            f"{case.get('classname')}::{case.get('name')}",
            float(case.get("time", "0")),
            case.find("failure") is not None or case.find("error") is not None,
            None if skipped is None else reason_of(skipped),
        )


def reason_of(skipped: ET.Element) -> str:
    """Return why a test was skipped; of a module, pytest has it in a tuple with its place."""
    message = skipped.get("message", "")
    return str(skipped.text).strip() if message == "collection skipped" else message


def summary(asked: list[str], ended: list[tuple[Step, int, float]], results: list[Result]) -> int:
    """Tell all of a suite; return how many skips are not listed."""
    say(f"\n== {SLOWEST} slowest of {len(results)} tests")
    for result in sorted(results, key=lambda result: -result.seconds)[:SLOWEST]:
        say(f"{result.seconds:8.1f} s  {result.name}")
    told = RESULTS / "skipped"
    outside = told.read_text().splitlines() if told.exists() else []
    reasons = Counter([result.skipped for result in results if result.skipped is not None])
    reasons.update(outside)
    listed = listed_skips(asked)
    unlisted = 0
    say(f"\n== {reasons.total()} skipped")
    for reason, count in sorted(reasons.items()):
        known = any(re.search(pattern, reason) for pattern in listed)
        unlisted += count * (not known)
        say(f"{count:4}  {reason}" + ("" if known else "   <- not in tests/skips.toml: FAILED"))
    say("\n== minutes of each step")
    for step, code, seconds in ended:
        say(
            f"{seconds / 60:8.1f}  {step.name}"
            + (f"   <- FAILED, exit code {code}" if code else "")
        )
    say(f"{sum(seconds for _, _, seconds in ended) / 60:8.1f}  {' '.join(asked)}")
    failed = sum(result.failed for result in results)
    skipped = sum(result.skipped is not None for result in results)
    say(f"\n{len(results) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return unlisted


def listed_skips(asked: list[str]) -> list[str]:
    """Return the patterns of reasons for which a test of these suites may be skipped here."""
    listed = tomllib.loads((ROOT / "tests" / "skips.toml").read_text())
    entries = [entry for entry in listed["skip"] if {*entry.get("suites", asked)} & {*asked}]
    patterns = [entry["reason"] for entry in entries]
    return patterns if os.geteuid() == 0 else patterns + listed["without_root"]


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    sys.exit(main())
