"""Catalogue of the commands: group and summary in the help, and module of each."""

from __future__ import annotations

from typing import NamedTuple

from tailtrim.plugins import Registry


class Entry(NamedTuple):
    """A command of the help."""

    group: str
    #: One line of at most 58 characters, so that 80 columns need not cut it.
    summary: str
    #: Its module below :mod:`tailtrim.cli`; ``None``: the agent's verb of the same name.
    module: str | None


CATALOGUE = {
    "run": Entry("Measure", "Run an experiment that a plan describes", "run"),
    "capacity": Entry("Measure", "Search the highest load that meets a promise", "capacity"),
    "testbed": Entry("Measure", "Check, show, clean or switch the hosts of a testbed", "testbed"),
    "image": Entry("Measure", "Build a live image for virtual machines", "image"),
    "selftest": Entry("Measure", "Measure the floor and the error of tailtrim here", "selftest"),
    "generate": Entry("Measure", "Send probe packets on a schedule", None),
    "capture": Entry("Measure", "Capture at the taps of a device under test", None),
    "forward": Entry("Measure", "Forward frames between two ports", None),
    "analyze": Entry("Analyse", "Match two captures and print the tail of the latency", "analyze"),
    "compare": Entry("Analyse", "Compare two runs, quantile by quantile", "compare"),
    "plan-length": Entry("Analyse", "Estimate how long to measure for a quantile", "plan_length"),
    "energy": Entry("Analyse", "Say what packets cost in watts and joules", "energy"),
    "report": Entry("Analyse", "Write a page and figures of runs", "report"),
    "explain": Entry("Explain", "Attribute late packets to their causes", "explain"),
    "predict": Entry("Explain", "Predict the highest rate, and latency at others", "predict"),
    "trace": Entry("Explain", "Record what uses CPUs: interrupts, softirqs, threads", None),
    "counters": Entry("Explain", "Count SMIs, throttling, steal and interrupts by minute", None),
    "noise": Entry("Explain", "Measure OS noise and attribute it to its causes", None),
    "audit": Entry("Host", "Check this host's settings for low latency", None),
    "doctor": Entry("Host", "Say what this host can do, and what is missing", "doctor"),
    "tune": Entry("Host", "Plan, apply, verify and revert host tuning", None),
    "trim": Entry("Host", "Find the changes that cut the tail, keep what is proven", "trim"),
    "ping": Entry("Round trips", "Measure round trips to reflectors", None),
    "reflect": Entry("Round trips", "Answer UDP echo, STAMP and TWAMP-Light", None),
    "import": Entry("Data", "Import round trips, histograms and results of other tools", "import_"),
    "decode": Entry("Data", "Write captures as Parquet, for SQL engines", "decode"),
    "load": Entry("Data", "Load decoded captures into a database", "load"),
    "engines": Entry("Data", "Check that a cluster's workers can match captures", "engines"),
    "query": Entry("Data", "Query run directories and decoded captures in SQL", "query"),
    "convert": Entry("Data", "Convert a run to other tools' formats", "convert"),
    "release": Entry("Publish", "Make a folder of an experiment for others", "release"),
    "verify": Entry("Publish", "Derive all numbers of a release again", "verify"),
}

BY_AGENT = frozenset(name for name, entry in CATALOGUE.items() if entry.module is None)

#: Commands of other packages, and the package of this project that a missing one is in.
COMMANDS, ELSEWHERE = Registry("tailtrim.commands", {}), {"pos": "tailtrim-pos"}
#: ``tailtrim import NAME``, of other packages.
IMPORTS = Registry("tailtrim.imports", {})
