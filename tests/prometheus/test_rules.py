"""Alerts for Prometheus: which fire, and which do not, by Prometheus' own unit tests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tools

SHIPPED = Path(__file__).resolve().parents[2] / "packaging" / "prometheus"
#: A watch with one target, probed ten times a second, and scraped twice a minute for nine hours.
SCRAPES = 1080
HEALTHY = {
    "up": f"1x{SCRAPES}",
    "slo_limit_ratio": f"0.001x{SCRAPES}",
    "slo_total": f"0+300x{SCRAPES}",
    "slo_bad_total": f"0x{SCRAPES}",
    "probes_total": f"0+300x{SCRAPES}",
    "replies_total": f"0x{SCRAPES}",
    "meter_stolen_seconds_total": f"0x{SCRAPES}",
    "meter_clock_steps_total": f"0x{SCRAPES}",
    "meter_lines_unwritten_total": f"0x{SCRAPES}",
    "meter_reloads_refused_total": f"0x{SCRAPES}",
    "meter_last_minute_timestamp_seconds": f"0+30x{SCRAPES}",
    "change_state": f"0x{SCRAPES}",
}
OBJECTIVE = 'target="far", objective="p99.9 < 5ms"'
LABELS = {
    **dict.fromkeys(("slo_limit_ratio", "slo_total", "slo_bad_total"), OBJECTIVE),
    "probes_total": 'target="far", outcome="answered"',
    "replies_total": 'target="far", kind="overflowed"',
    "change_state": 'target="far", of="p99", against="baseline"',
}
#: Scrapes before something happens: two hours.
BEFORE = 240


def at_two(step: str, during: int, after: str = "0") -> str:
    """Return a counter that grows at each of so many scrapes from two hours on, then by another."""
    grown = int(step) * during
    return f"0x{BEFORE - 1} 0+{step}x{during} {grown}+{after}x{SCRAPES}"


#: A device that is tapped: of its targets' series it has those of promises.
TAP = 'job="tailtrim", instance="host", target="wall"'
TAP_PROMISE = f'{TAP}, objective="p99.9 < 5ms"'
TAPPED = {
    f"tailtrim_watch_slo_limit_ratio{{{TAP_PROMISE}}}": f"0.001x{SCRAPES}",
    f"tailtrim_watch_slo_total{{{TAP_PROMISE}}}": f"0+300x{SCRAPES}",
    f'tailtrim_watch_meter_tap_dropped_total{{{TAP}, tap="ingress"}}': f"0x{SCRAPES}",
    f"tailtrim_watch_meter_tapped_seconds_total{{{TAP}}}": f"0+30x{SCRAPES}",
}
TAP_BAD = f"tailtrim_watch_slo_bad_total{{{TAP_PROMISE}}}"
TAP_DROPPED = f'tailtrim_watch_meter_tap_dropped_total{{{TAP}, tap="egress"}}'
#: Probes of a target whose name is not known.
REFUSED = 'tailtrim_watch_probes_total{job="tailtrim", target="far", outcome="refused"}'


def series(name: str) -> str:
    if "{" in name:
        return name
    if name == "up":
        return 'up{job="tailtrim", instance="host"}'
    labels = ", ".join(['job="tailtrim"', 'instance="host"', *filter(None, [LABELS.get(name)])])
    return f"tailtrim_watch_{name}{{{labels}}}"


def case(changed: dict[str, str], alerts: dict[str, list[str]]) -> dict[str, Any]:
    """Return a unit test: series other than those of a healthy watch, and what fires at a time."""
    checks = []
    for time, names in alerts.items():
        samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names]
        expr = 'count by (alertname) (ALERTS{alertstate="firing"})'
        checks.append({"expr": expr, "eval_time": time, "exp_samples": samples})
    values = {**HEALTHY, **changed}
    return {
        "interval": "30s",
        "input_series": [{"series": series(name), "values": values[name]} for name in values],
        "promql_expr_test": checks,
    }


FAST = "TailtrimPromiseBurnsFast"
SIX_HOURS = "TailtrimPromiseBurns"
SLOW = "TailtrimPromiseBurnsSlowly"
CASES = {
    "healthy": case({}, {"2h": [], "8h": []}),
    # An outage of ten minutes: its alert ends with the short window. Of three days it is too much.
    "an outage": case(
        {"slo_bad_total": at_two("300", 20)},
        {"2h": [], "2h5m": [FAST, SIX_HOURS, SLOW], "2h30m": [SIX_HOURS, SLOW], "3h": [SLOW]},
    ),
    # Eight times as many as allowed: too few for an hour, too many for six.
    "a slow burn": case(
        {"slo_bad_total": f"0+2.4x{SCRAPES}"},
        {"7h": [SIX_HOURS, SLOW]},
    ),
    "slower": case({"slo_bad_total": f"0+0.6x{SCRAPES}"}, {"8h": [SLOW]}),
    "within its budget": case({"slo_bad_total": f"0+0.27x{SCRAPES}"}, {"8h": []}),
    # A fortieth of the time is stolen, and as many probes are late.
    "a busy hypervisor": case(
        {
            "slo_bad_total": at_two("7", 120),
            "meter_stolen_seconds_total": f"0x{BEFORE - 1} 0+0.75x120 90x{SCRAPES}",
        },
        {"2h30m": ["TailtrimCpuStolen"]},
    ),
    "an outage behind a busy hypervisor": case(
        {
            "slo_bad_total": at_two("300", 20),
            "meter_stolen_seconds_total": f"0+0.75x{SCRAPES}",
        },
        {"2h5m": [FAST, SIX_HOURS, SLOW, "TailtrimCpuStolen"]},
    ),
    "a socket without room": case(
        {"slo_bad_total": at_two("50", 20), "replies_total": at_two("50", 20)},
        {"2h5m": ["TailtrimRepliesDropped"]},
    ),
    "a step of the clock": case(
        {"meter_clock_steps_total": at_two("1", 1)}, {"2h5m": ["TailtrimClockStepped"], "3h": []}
    ),
    "a watch that ended": case(
        {name: values.replace(f"x{SCRAPES}", f"x{BEFORE}") for name, values in HEALTHY.items()}
        | {"up": f"1x{BEFORE} 0x{SCRAPES}"},
        {"2h1m": [], "2h5m": ["TailtrimWatchDown"]},
    ),
    "a target whose name is not known": case(
        {"probes_total": f"0x{SCRAPES}", "slo_total": f"0x{SCRAPES}", REFUSED: f"0+300x{SCRAPES}"},
        {"4m": [], "12m": ["TailtrimTargetNotMeasured"]},
    ),
    "a full disk": case(
        {"meter_lines_unwritten_total": at_two("1", 4)},
        {"2h3m": ["TailtrimMinutesUnwritten"]},
    ),
    "minutes that stop": case(
        {"meter_last_minute_timestamp_seconds": f"0+30x{BEFORE} {30 * BEFORE}x{SCRAPES}"},
        {"2h4m": [], "2h8m": ["TailtrimMinutesUnwritten"]},
    ),
    "a path that became slower": case(
        {"change_state": f"0x{BEFORE} 1x40 0x{SCRAPES}"}, {"2h5m": ["TailtrimSlower"], "3h": []}
    ),
    "a device that loses packets": case(
        {**TAPPED, TAP_BAD: at_two("300", 20), TAP_DROPPED: f"0x{SCRAPES}"},
        {"2h": [], "2h5m": [FAST, SIX_HOURS, SLOW]},
    ),
    "a tap without room": case(
        {**TAPPED, TAP_BAD: at_two("50", 20), TAP_DROPPED: at_two("50", 20)},
        {"2h5m": ["TailtrimFramesDropped"]},
    ),
    "a tap that is away": case(
        {
            **TAPPED,
            TAP_BAD: f"0x{SCRAPES}",
            TAP_DROPPED: f"0x{SCRAPES}",
            f"tailtrim_watch_meter_tapped_seconds_total{{{TAP}}}": at_two("15", 240),
        },
        {"2h20m": ["TailtrimTapAway"]},
    ),
    "a file with an error": case(
        {"meter_reloads_refused_total": at_two("1", 1)}, {"2h5m": ["TailtrimFileRefused"]}
    ),
}  # fmt: skip


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    tools.need(tools.PROMTOOL)
    return subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)


def test_prometheus_accepts_rules_and_settings() -> None:
    ended = promtool("check", "config", str(SHIPPED / "prometheus.yml"))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("name", CASES)
def test_alerts_fire_for_what_they_are_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tests.yml"
    content = {
        "rule_files": [str(SHIPPED / "rules.yml")],
        "evaluation_interval": "1m",
        "tests": [CASES[name]],
    }
    path.write_text(json.dumps(content))
    ended = promtool("test", "rules", str(path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
