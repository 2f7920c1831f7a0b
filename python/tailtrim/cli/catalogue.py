"""Catalogue of the commands: group and summary in the help, module, former options of each."""

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


#: In the order of the help: what most users need first, what laboratories need last.
CATALOGUE = {
    "analyze": Entry(
        "Start here", "Match two captures and print the tail of the latency", "analyze"
    ),
    "run": Entry("Start here", "Run an experiment that a plan describes", "run"),
    "report": Entry("Start here", "Write a page and figures of runs", "report"),
    "explain": Entry("Start here", "Attribute late packets to their causes", "explain"),
    "compare": Entry("Start here", "Compare two runs, quantile by quantile", "compare"),
    "doctor": Entry("Start here", "Say what this host can do, and what is missing", "doctor"),
    "capture": Entry("Measure", "Capture at the taps of a device under test", None),
    "ping": Entry("Measure", "Measure round trips to reflectors", None),
    "watch": Entry("Measure", "Measure round trips without end: minutes, metrics", None),
    "reflect": Entry("Measure", "Answer UDP echo, STAMP and TWAMP-Light", None),
    "capacity": Entry("Measure", "Search the highest load that meets a promise", "capacity"),
    "plan-length": Entry("Measure", "Estimate how long to measure for a quantile", "plan_length"),
    "predict": Entry("Explain", "Predict the highest rate, and latency at others", "predict"),
    "trace": Entry("Explain", "Record what uses CPUs: interrupts, softirqs, threads", None),
    "noise": Entry("Explain", "Measure OS noise and attribute it to its causes", None),
    "energy": Entry("Explain", "Say what packets cost in watts and joules", "energy"),
    "audit": Entry("Host", "Check this host's settings for low latency", None),
    "tune": Entry("Host", "Plan, apply, verify and revert host tuning", None),
    "ports": Entry("Host", "List what NICs claim, or prove it over a cable", None),
    "trim": Entry("Host", "Find the changes that cut the tail, keep what is proven", "trim"),
    "query": Entry("Data", "Query run directories and decoded captures in SQL", "query"),
    "convert": Entry("Data", "Convert a run to other tools' formats", "convert"),
    "import": Entry("Data", "Import round trips, histograms and results of other tools", "import_"),
    "decode": Entry("Data", "Write captures as Parquet, for SQL engines", "decode"),
    "release": Entry("Data", "Make a folder of an experiment for others", "release"),
    "verify": Entry("Data", "Derive all numbers of a release again", "verify"),
    "testbed": Entry(
        "Laboratory", "Check, show, clean or switch the hosts of a testbed", "testbed"
    ),
    "selftest": Entry("Laboratory", "Measure the floor and the error of tailtrim here", "selftest"),
    "generate": Entry("Laboratory", "Send probe packets on a schedule", None),
    "forward": Entry("Laboratory", "Forward frames between two ports", None),
    "counters": Entry("Laboratory", "Count SMIs, throttling, steal and interrupts by minute", None),
    "image": Entry("Laboratory", "Build a live image for virtual machines", "image"),
    "load": Entry("Laboratory", "Load decoded captures into a database", "load"),
    "engines": Entry("Laboratory", "Check that a cluster's workers can match captures", "engines"),
}

BY_AGENT = frozenset(name for name, entry in CATALOGUE.items() if entry.module is None)

#: Former spellings of options, read for one version with a note, by command. Those of the agent's
#: commands are in ``crates/agent/src/former.rs``.
FORMER = {
    "analyze": {"--trim": "--skip"},
    "capacity": {"--budget": "--duration", "--slo": "--assert"},
    "compare": {"--figure": "--out", "--html": "--out"},
    "convert": {"--to": "--format"},
    "image": {"--release": "--debian"},
    "import": {"--level": "--stamps"},
    "import pos": {"--trim": "--skip"},
    "plan-length": {"--from": "--pilot"},
    "pos": {"--check": "--dry-run", "--trim": "--skip"},
    "predict": {"--slo": "--assert"},
    "run": {"--check": "--dry-run"},
    "trim": {"--budget": "--duration"},
    "verify": {"--level": "--only"},
}

#: Commands of other packages, and the package of this project that a missing one is in.
COMMANDS, ELSEWHERE = Registry("tailtrim.commands", {}), {"pos": "tailtrim-pos"}
#: ``tailtrim import NAME``, of other packages.
IMPORTS = Registry("tailtrim.imports", {})
