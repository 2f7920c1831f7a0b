"""The names of the files in a run directory."""

from __future__ import annotations

SUMMARY, PROVENANCE = "summary.json", "provenance.json"

#: Counters of the load generator, of a live run.
GENERATOR = "generator.json"
#: Counters of the device, of a live run; of one that is kept up, also those of its warm-up.
DEVICE = "device.json"
CAPTURE = "capture.json"

#: The Parquet tables that every run directory has, without their suffix, the most used first.
TABLES = ("quantile", "histogram", "worst", "gap", "delay_variation", "second", "burst", "sample")
#: The table of ``tailtrim ping``, in addition.
ROUND_TRIPS = "roundtrip"
#: The table of lost packets, if it was asked for; the tails of groups of packets, likewise.
LOST, GROUPS = "lost", "groups.json"
#: All that an analysis writes, and the next one into the same directory replaces.
ANALYSIS = frozenset(
    {
        SUMMARY,
        PROVENANCE,
        GROUPS,
        *(f"{table}.parquet" for table in (*TABLES, ROUND_TRIPS, LOST)),
    }
)

#: Readings of the meters, of a live run on nodes that have any.
ENERGY = "energy.json"

#: Where a trace was recorded or the device disturbed: who had the CPU, how often each interrupt
#: came, when the device was disturbed on purpose, and when its own work stood still.
EVENTS, INTERRUPTS = "events.jsonl.zst", "events.interrupts.csv"
DISTURBED, STALLS = "disturbed.csv", "stalls.csv"
#: When the load generator's CPU stood still in the middle of sending, and when it sent late probes.
DEPARTURES = "departures.csv"
#: Of a run of hours: a line for each minute, and their latencies as an HdrHistogram log.
#: Such a run has no table of samples.
MINUTES = ("minute.jsonl", "minute.hlog")
#: The folder of the packets that both taps saw around its worst packets.
AROUND = "around"
#: Why those packets were late, where a trace was recorded, too.
WORST_EXPLAINED = "worst.json"
#: Why late packets were late, where a trace was recorded.
EXPLANATION = "explanation.json"
#: Counters of the device's CPUs in each minute.
COUNTERS = "counter.jsonl"
#: The folder of logs: standard error of the nodes' programs, and the guests' console.
LOGS = "logs"


def around(ingress_ns: int | str, name: str) -> str:
    """Return the name of a file around a packet: a tap's capture, or the trace."""
    return f"{ingress_ns}-{name}"
