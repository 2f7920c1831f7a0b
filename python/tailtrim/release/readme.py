"""The README of a release: what it is, and what readers type."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.experiment import recorded
from tailtrim.release.layout import CLAIMS, EXPERIMENT, PLAN, SIGNERS, SOFTWARE

if TYPE_CHECKING:
    from pathlib import Path


_TEXT = """\
# {title}

{abstract}Data of the experiment `{name}`: {runs:,} runs, {complete:,} of them with a result. Open
`index.html` for the runs, loop variables and figures.

## Check it

Every number and figure is derived again by tailtrim {version} (Linux, Python 3.11 or later):

    python3 -m venv ../tailtrim-venv
    ../tailtrim-venv/bin/pip install {source}
    ../tailtrim-venv/bin/tailtrim verify .

`sha256sum --check SHA256SUMS` checks the files alone.
{signed}{repeat}
## What is where

| | |
|---|---|
{plan}| `experiment/experiment.json` | what became of each run; the nodes and how they were set up |
| `experiment/audit.json` | the settings of the host, checked |
| `experiment/run-000/` … | each run: summary, samples, and captures where they are included |
| `site/report/` | the report, and each figure with its values as CSV |
{claims}| `ro-crate-metadata.json` | all of this for machines (RO-Crate 1.2) |
| `LICENSE`, `CITATION.cff` | how it may be used, and how to cite it |
"""
_SIGNED = f"""
It is signed. The key is in `{SIGNERS}`; compare its fingerprint with one from the authors.
"""
_REPEAT = """
## Repeat it

This measures three of the runs again, on this machine or on a testbed of yours. It does what the
plan says, so read `experiment/plan.yml` before:

    ../tailtrim-venv/bin/tailtrim verify . --rerun 3 --out ../rerun [--testbed TESTBED.yml]
"""
_PLAN = f"| `{EXPERIMENT}/{PLAN}` | what was measured |\n"
_CLAIMS = f"| `{CLAIMS}` | what is claimed of the numbers |\n"


def text(root: Path, cited: dict[str, Any], wheel: Path | None, *, signed: bool) -> str:
    """Return the README as Markdown."""
    experiment = recorded(root / EXPERIMENT)
    planned = (root / EXPERIMENT / PLAN).is_file()
    abstract = " ".join(str(cited.get("abstract") or "").split())
    return _TEXT.format(
        title=" ".join(str(cited["title"]).split()),
        abstract=f"{abstract}\n\n" if abstract else "",
        name=experiment.name,
        runs=len(experiment.runs),
        complete=len(experiment.complete),
        version=VERSION,
        source=_source(wheel),
        signed=_SIGNED if signed else "",
        repeat=_REPEAT if planned else "",
        plan=_PLAN if planned else "",
        claims=_CLAIMS if (root / CLAIMS).exists() else "",
    )


def _source(wheel: Path | None) -> str:
    if wheel is None:
        return f"'tailtrim[pictures]=={VERSION}'"
    return shlex.quote(f"{SOFTWARE}/{wheel.name}[pictures]")
