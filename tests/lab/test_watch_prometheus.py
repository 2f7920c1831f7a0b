"""A watch as Prometheus' own programs see it: histograms, rules, and queries of the dashboard."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import tools
from pairs import paired
from reflectors import FAR, Stamps
from releases import entering
from test_watch import lines, metrics, plan, watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairs import Pair

SHIPPED = Path(__file__).resolve().parents[2] / "packaging"
DASHBOARD = SHIPPED / "grafana" / "tailtrim-watch.json"
SERVER = "127.0.0.1:9090"
#: Of this machine, before 3.0, and a newer one.
RELEASES = ("installed", "sid-prometheus")
ROUND_TRIPS = "tailtrim_watch_round_trip_seconds"
#: Buckets of schema 8 in each doubling.
SCHEMA_8 = 256


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts."""
    with paired(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


class Prometheus:
    """A server on the near host's loopback, where the watch is."""

    def __init__(self, pair: Pair, command: list[str]) -> None:
        self.pair, self.command = pair, command

    def ask(self, path: str) -> Any:
        """Return what the API answers, or ``None`` as long as it does not."""
        command = ["curl", "-s", f"http://{SERVER}/api/v1/{path}"]
        told = subprocess.run([*self.pair.near.prefix, *command], capture_output=True, check=False)
        if not told.stdout.startswith(b"{"):
            return None
        answer = json.loads(told.stdout)
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Return the series of an expression."""
        answer = self.ask(f"query?query={quote(expr)}")
        return [] if answer is None else list(answer["result"])

    def value(self, expr: str) -> float:
        """Return the value of an expression that has one."""
        (series,) = self.query(expr)
        return float(series["value"][1])

    def until(self, expr: str) -> list[dict[str, Any]]:
        """Wait until an expression has a series."""
        until_s = time.monotonic() + 30
        while not (found := self.query(expr)):
            assert time.monotonic() < until_s, expr
            time.sleep(0.1)
        return found


def quick(rules: str) -> str:
    """Return rules in which each hour takes a minute, and each minute a second."""
    scales = {"d": "24m", "h": "1m", "m": "1s"}

    def scaled(found: re.Match[str]) -> str:
        scale = scales[found[3]]
        return f"{found[1]}{int(found[2]) * int(scale[:-1])}{scale[-1]}"

    return re.sub(r"(\[|interval: |for: )([0-9]+)([dhm])\b", scaled, rules)


@contextmanager
def scraping(pair: Pair, folder: Path, release: str) -> Iterator[Prometheus]:
    """Scrape the watch twice a second, with the rules that we ship."""
    tools.need(tools.PROMTOOL)
    folder.mkdir()
    (folder / "rules.yml").write_text(quick((SHIPPED / "prometheus" / "rules.yml").read_text()))
    settings = (SHIPPED / "prometheus" / "prometheus.yml").read_text()
    assert "scrape_interval: 15s" in settings
    (folder / "prometheus.yml").write_text(settings.replace("interval: 15s", "interval: 500ms"))
    start = [] if release == "installed" else entering(release)
    command = [
        *pair.near.prefix,
        *start,
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={SERVER}",
        "--enable-feature=native-histograms,exemplar-storage",
    ]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            yield Prometheus(pair, start)
        finally:
            server.terminate()
            server.wait(20)


def exact(latencies_ns: list[int], share: float) -> set[float]:
    """Return a quantile by nearest rank, in seconds.

    Where the rank is a whole number, Prometheus 3 has the next one: it counts from above.
    """
    ranked = sorted(latencies_ns)
    below = max(math.ceil(share * len(ranked)) - 1, 0)
    above = max(math.ceil((1 - share) * len(ranked)), 1)
    return {ranked[below] / 1e9, ranked[-above] / 1e9}


@pytest.mark.parametrize("release", RELEASES)
def test_percentiles_of_native_histograms_lie_in_the_buckets_of_the_exact_ones(
    pair: Pair, tmp_path: Path, release: str
) -> None:
    out = tmp_path / "minutes"
    path = plan(tmp_path, f"name: far, address: '{FAR}:862', rate: 400pps")
    with watching(pair, path, out), scraping(pair, tmp_path / "server", release) as server:
        with Stamps(pair.far, ahead_ns=0, keeps_ns=0):
            server.until(f"histogram_count({ROUND_TRIPS}) > 400")
        # Once the reflector has ended, nothing changes any more.
        server.until('rate(tailtrim_watch_probes_total{outcome="lost"}[2s]) > 0')
        server.until('rate(tailtrim_watch_probes_total{outcome="answered"}[2s]) == 0')
        shares = (0.1, 0.5, 0.9, 0.99, 0.999, 1.0)
        found = {
            share: server.value(f"histogram_quantile({share}, {ROUND_TRIPS})") for share in shares
        }
        count = server.value(f"histogram_count({ROUND_TRIPS})")
        answered = server.value('tailtrim_watch_probes_total{outcome="answered"}')
        total_s = server.value(f"histogram_sum({ROUND_TRIPS})")
    latencies_ns = [
        ns for line in lines(out / "far") for ns in line["latency_ns"] if ns is not None
    ]
    assert count == answered == len(latencies_ns)
    assert total_s == pytest.approx(sum(latencies_ns) / 1e9)
    for share, value in found.items():
        buckets = [math.ceil(math.log2(one) * SCHEMA_8) for one in exact(latencies_ns, share)]
        edges = [(2 ** ((bucket - 1) / SCHEMA_8), 2 ** (bucket / SCHEMA_8)) for bucket in buckets]
        assert any(low * (1 - 1e-12) <= value <= high * (1 + 1e-12) for low, high in edges), share


def test_promtool_accepts_the_metrics(pair: Pair, tmp_path: Path) -> None:
    tools.need(tools.PROMTOOL)
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0), watching(pair, path, tmp_path / "minutes"):
        until_s = time.monotonic() + 20
        while "round_trip" not in metrics(pair):
            assert time.monotonic() < until_s
        told = metrics(pair)
    for start in ([], entering("sid-prometheus")):
        checked = subprocess.run(
            [*start, "promtool", "check", "metrics"],
            input=told, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert (checked.returncode, checked.stderr) == (0, "")


def expressions() -> list[tuple[str, str]]:
    """Return the title and each expression of the dashboard's panels, for all targets."""
    filled = {"$target": ".*", "$objective": ".*", "$__rate_interval": "4s"}
    found = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expr = target["expr"]
            for name, value in filled.items():
                expr = expr.replace(name, value)
            assert "$" not in expr
            found.append((panel["title"], expr))
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_an_alert_fires_and_the_dashboard_has_something_to_show(
    pair: Pair, tmp_path: Path, release: str
) -> None:
    """Probes of one target are late, those of another one are answered."""
    objectives = "objectives: ['p99 < 1us', 'loss < 1%']"
    path = plan(
        tmp_path,
        f"name: far, address: '{FAR}:862'",
        f"name: late, address: '{FAR}:862', {objectives}",
        f"name: closed, address: '{FAR}:863', {objectives}",
    )
    with (
        Stamps(pair.far, ahead_ns=0, keeps_ns=0),
        watching(pair, path, tmp_path / "minutes"),
        scraping(pair, tmp_path / "server", release) as server,
    ):
        fast = 'ALERTS{alertname="TailtrimPromiseBurnsFast", alertstate="firing"'
        server.until(f'{fast}, target="late", objective="p99 < 1us"}}')
        server.until(f'{fast}, target="closed", objective="loss < 1%"}}')
        assert server.query(f'{fast}, target=~"far|late", objective=~"loss.*"}}') == []
        assert server.query('ALERTS{alertname!~"TailtrimPromise.*|TailtrimCpuStolen"}') == []
        # An exemplar leads to the minute of a late probe.
        now_s = time.time()
        asked = f"query={quote('tailtrim_watch_slo_bad_total')}&start={now_s - 60}&end={now_s + 60}"
        kept = {
            series["seriesLabels"]["target"]: series["exemplars"]
            for series in server.ask(f"query_exemplars?{asked}")
        }
        assert kept.keys() == {"late", "closed"}
        assert {*kept["late"][0]["labels"]} == {"span", "at_us"}
        assert float(kept["late"][0]["value"]) > 1e-6
        assert kept["closed"][0]["value"] == "+Inf"
        for title, expr in expressions():
            shown = server.query(expr)
            # Nothing was wrong with the meter, and no minute is over.
            if not ("meter" in title or " > 0" in expr or " < 0" in expr or "slo_state" in expr):
                assert shown, expr
