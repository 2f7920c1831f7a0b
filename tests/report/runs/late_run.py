"""A run with three busy periods, why its packets were late, and the trace of its host: made up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from tailtrim import RunDirectory

START_NS = 10**9
SPACING_NS = 100_000
BASE_NS = 5_000
# First packet, and how long the packets from there on took: three busy periods.
STALLS = {200: (350_000, 255_000, 160_000, 65_000), 600: (120_000, 25_000), 800: (90_000,)}


def arrival(packet: int) -> int:
    return START_NS + packet * SPACING_NS


def late_packet(packet: int, latency_ns: int, cause: int | None) -> dict[str, Any]:
    excess_ns = latency_ns - BASE_NS
    return {
        "arrival_ns": arrival(packet),
        "latency_ns": latency_ns,
        "excess_ns": excess_ns,
        "causes": [] if cause is None else [[cause, excess_ns - 1_000]],
        "queue_ns": 0 if cause is None else 1_000,
        "unknown_ns": excess_ns if cause is None else 0,
    }


def cause(kind: str, name: str, detail: str | None, parts_ns: list[int]) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "detail": detail,
        "events": 1_234,
        "late_packets": len(parts_ns),
        "excess_ns": sum(parts_ns),
        "without_ns": [5_000, 6_000, 121_000, 122_000],
        "sender": None,
        "signature": None,
    }


def explanation() -> dict[str, Any]:
    """The thief stole from the first busy period, the tick from the second, nobody the third."""
    whose = {200: 0, 600: 1, 800: None}
    packets = [
        late_packet(first + place, latency_ns, whose[first])
        for first, latencies in STALLS.items()
        for place, latency_ns in enumerate(latencies)
    ]
    excess_ns = sum(packet["excess_ns"] for packet in packets)
    thief = cause("thread", "thief", "pid 9", [p["excess_ns"] - 1_000 for p in packets[:4]])
    tick = cause("irq", "local_timer", None, [p["excess_ns"] - 1_000 for p in packets[4:6]])
    tick["signature"] = {"name": "tick", "what": "it ticks", "checks": ["ISO-003", "ISO-004"]}
    tick["sender"] = [{"pid": 812, "comm": "stress", "function": None}, 3]
    idle = cause("softirq", "RCU", None, [])
    for one in (thief, tick, idle):
        one["share_ppm"] = one["excess_ns"] * 1_000_000 // excess_ns
    verdict = {
        "service": {"base_ns": BASE_NS, "service_ns": BASE_NS, "batch": 1},
        "serving": "dut",
        "error_ns": 22,
        "quantiles_ns": [5_000, 65_000, 255_000, 350_000],
        "late_from_ns": 25_000,
        "excess_ns": excess_ns,
        "queue_ns": 6_000,
        "unknown_ns": packets[6]["unknown_ns"],
        "null_ppm": 12_345,
        "causes": [thief, tick, idle],
        "advice": [
            {
                "check": "ISO-003",
                "title": "full dynticks",
                "wanted": "on the isolated CPUs",
                "changes": [
                    {"id": "boot-nohz", "title": "nohz_full for them", "when": "next-boot"}
                ],
            },
            {"check": "ISO-004", "title": "no other task", "wanted": "one", "changes": []},
        ],
        "late": packets,
    }
    host = {"cpu": 1, "holes": 2, "missing": ["csd:nothing"], "verdict": verdict}
    return {"schema": "tailtrim.explanation/1", "host": host}


def event(name: str, start_ns: int, long_ns: int, **more: Any) -> dict[str, Any]:
    return {
        "cpu": 1,
        "start_ns": start_ns,
        "end_ns": start_ns + long_ns,
        "kind": "thread",
        "name": name,
        **more,
    }


def events() -> list[dict[str, Any]]:
    """The device, the thief, ten ticks, and a passer-by while the device was stopped."""
    dut = {"name": "dut", "detail": "pid 7"}
    ends = [(arrival(200), "runnable"), (arrival(700), "stopped"), (arrival(1_000), "ended")]
    starts = [arrival(0), arrival(200) + 340_000, arrival(700) + 50_000]
    ran = [
        event(start_ns=start_ns, long_ns=end_ns - start_ns, left=left, **dut)
        for start_ns, (end_ns, left) in zip(starts, ends, strict=True)
    ]
    ticks = [
        event("local_timer", arrival(100 * n) + 1_000, 2_000 + n, kind="irq") for n in range(10)
    ]
    return [
        *ran,
        event("thief", arrival(200), 340_000, detail="pid 9", left="sleeping"),
        event("passer-by", arrival(700) + 10_000, 20_000, detail="pid 11", left="sleeping"),
        *ticks,
        event("elsewhere", arrival(300), 90_000, cpu=0),
    ]


def store(
    run: RunDirectory, explained: dict[str, Any], traced: list[dict[str, Any]] | None
) -> None:
    (run.path / "explanation.json").write_text(json.dumps(explained), "utf-8")
    if traced is not None:
        header = {"schema": "tailtrim.events/1", "error_ns": 22, "cpus": "1"}
        text = "".join(json.dumps(line) + "\n" for line in [header, *traced])
        place = str(run.path / "events.jsonl.zst")
        with pa.output_stream(place, compression="zstd") as stream:
            stream.write(text.encode())


def latencies() -> list[int]:
    """Return the latency of each packet."""
    took = [BASE_NS] * 1_000
    for first, stalled in STALLS.items():
        took[first : first + len(stalled)] = stalled
    return took
