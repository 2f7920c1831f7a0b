"""The names of the files in a run directory."""

from __future__ import annotations

SUMMARY, PROVENANCE = "summary.json", "provenance.json"

#: What the load generator counted, of a live run.
GENERATOR = "generator.json"
#: What the device counted, of a live run; with one that is kept up, what its warm-up saw.
DEVICE = "device.json"
CAPTURE = "capture.json"

#: The Parquet tables that every run directory has, without their suffix, what is read most first.
TABLES = ("quantile", "histogram", "worst", "gap", "delay_variation", "second", "burst", "sample")
#: Beside them, what ``tailtrim ping`` leaves.
ROUND_TRIPS = "roundtrip"
#: All that an analysis writes, and the next one into the same directory replaces.
ANALYSIS = frozenset(
    {SUMMARY, PROVENANCE, *(f"{table}.parquet" for table in (*TABLES, ROUND_TRIPS))}
)

#: What meters measured, of a live run on nodes that have any.
ENERGY = "energy.json"

#: Beside them, where a trace was recorded or the device disturbed: who had the CPU, how often each
#: interrupt came, when the device was disturbed on purpose, and when its own work stood still.
EVENTS, INTERRUPTS = "events.jsonl.zst", "interrupts.csv"
DISTURBED, STALLS = "disturbed.csv", "stalls.csv"
#: When the load generator's CPU stood still in the middle of sending, and when it sent late probes.
DEPARTURES = "departures.csv"
#: Of a run of hours: a line for each minute, and their latencies as an HdrHistogram log.
#: Such a run has no table of samples.
MINUTES = ("minute.jsonl", "minute.hlog")
#: The folder of what both taps saw around its worst packets.
AROUND = "around"
#: Why those packets were late, where a trace was recorded, too.
WORST_EXPLAINED = "worst.json"
#: What the CPUs of its device counted in each minute.
COUNTERS = "counter.jsonl"
#: The folder of what programs of the nodes wrote to standard error, and guests to their console.
LOGS = "logs"


def around(ingress_ns: int | str, name: str) -> str:
    """Return the name of a file around a packet: a tap's capture, or the trace."""
    return f"{ingress_ns}-{name}"
