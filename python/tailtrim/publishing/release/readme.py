"""The README of a release, its front page: its content, and the commands for readers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.publishing.release.derivation import captures_of
from tailtrim.publishing.release.layout import (
    CITATION,
    CLAIMS,
    CRATE,
    EXPERIMENT,
    LICENSE,
    PLAN,
    RECORD,
    REPORT,
    SIGNERS,
    SOFTWARE,
    SUMS,
)
from tailtrim.publishing.release.safe_files import record
from tailtrim.results.experiments import AUDIT, recorded

if TYPE_CHECKING:
    from pathlib import Path


_TEXT = """\
# {title}

{abstract}Data of the experiment `{name}`: {runs:,} runs, {complete:,} of them with a result.
Captures: {captures}{anonymised}.

## What is where

| | |
|---|---|
{rows}
## Check it

Every {derived} and the values of every figure are derived again by tailtrim {version} (Linux,
Python 3.11 or later):

    python3 -m venv ../tailtrim-venv
    ../tailtrim-venv/bin/pip install {source}
    ../tailtrim-venv/bin/tailtrim verify .

`sha256sum --check SHA256SUMS` checks the files alone.
{signed}
This makes the report again:

    ../tailtrim-venv/bin/tailtrim report experiment --out ../report
{repeat}"""
_SIGNED = f"""
It is signed. The key is in `{SIGNERS}`; compare its fingerprint with one from the authors.
"""
_REPEAT = """
## Repeat it

This measures three of the runs again, on this machine or on a testbed of yours. It does what the
plan says, so read `experiment/plan.yml` before:

    ../tailtrim-venv/bin/tailtrim verify . --rerun 3 --out ../rerun [--testbed TESTBED.yml]
"""
#: Files and folders that a release may have, in the order in which a reader looks.
_PLACES = (
    (f"{REPORT}/report.html", "the report of all runs"),
    (f"{REPORT}/boots.html", "the kernels and boot lines compared"),
    (f"{REPORT}/figures", "each figure as SVG, and its values as CSV"),
    (CLAIMS, "what is claimed of the numbers"),
    (f"{EXPERIMENT}/{PLAN}", "what was measured"),
    (EXPERIMENT, "the data: record, and summary, samples and captures of each run"),
    (f"{EXPERIMENT}/{AUDIT}", "the settings of the host, checked"),
    (LICENSE, "how it may be used"),
    (CITATION, "how to cite it"),
    (CRATE, "all of this for machines (RO-Crate 1.2)"),
    (SUMS, "checksums of all files"),
)
#: Made when the README is there: they have its checksum.
_LATER = (CRATE, SUMS)


def text(root: Path, cited: dict[str, Any], wheel: Path | None, *, signed: bool) -> str:
    """Return the README of a release that is complete but for crate and checksums, as Markdown."""
    experiment = recorded(root / EXPERIMENT)
    complete = [run.outcome.run for run, _ in experiment.complete]
    captured = sum(captures_of(root / EXPERIMENT / run) is not None for run in complete)
    planned = (root / EXPERIMENT / PLAN).is_file()
    abstract = " ".join(str(cited.get("abstract") or "").split())
    return _TEXT.format(
        title=" ".join(str(cited["title"]).split()),
        abstract=f"{abstract}\n\n" if abstract else "",
        name=experiment.name,
        runs=len(experiment.runs),
        complete=len(complete),
        captures=_captures(captured, len(complete)),
        anonymised=", anonymised" if captured and record(root / RECORD)["anonymised"] else "",
        derived="number" if captured == len(complete) else "latency",
        rows="".join(
            f"| [`{place}`]({place}) | {told} |\n"
            for place, told in _PLACES
            if place in _LATER or (root / place).exists()
        ),
        version=VERSION,
        source=_source(wheel),
        signed=_SIGNED if signed else "",
        repeat=_REPEAT if planned else "",
    )


def _captures(captured: int, complete: int) -> str:
    if captured == complete:
        return "of all runs"
    if captured:
        return f"of {captured:,} of {complete:,} runs"
    return "none, the samples of each run are here"


def _source(wheel: Path | None) -> str:
    if wheel is None:
        return f"'tailtrim[pictures]=={VERSION}'"
    return shlex.quote(f"{SOFTWARE}/{wheel.name}[pictures]")
