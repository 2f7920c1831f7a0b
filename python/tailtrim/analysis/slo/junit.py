"""Verdicts as a JUnit report, which CI systems show: :func:`junit`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tailtrim.analysis.slo.verdict import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.analysis.slo.verdict import Verdict


def junit(found: Mapping[str, Sequence[Verdict]]) -> str:
    """Return the XML: a test suite for each run, a test case for each objective.

    An undecided objective is an error there, not a skipped test: CI systems ignore skipped ones.
    """
    root = ET.Element("testsuites", name="tailtrim")
    for run, of_run in found.items():
        counts = dict.fromkeys(Decision, 0)
        for verdict in of_run:
            counts[verdict.decision] += 1
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_text(run),
            tests=str(len(of_run)),
            failures=str(counts[Decision.FAILED]),
            errors=str(counts[Decision.UNDECIDED]),
        )
        for verdict in of_run:
            name = str(verdict.objective)
            case = ET.SubElement(suite, "testcase", classname=_text(run), name=name)
            told = f"{verdict.word}: {verdict.why}"
            if verdict.decision is Decision.FAILED:
                ET.SubElement(case, "failure", message=told)
            elif verdict.decision is Decision.UNDECIDED:
                ET.SubElement(case, "error", message=told)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _text(name: str) -> str:
    """Leave out characters that XML cannot have."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
