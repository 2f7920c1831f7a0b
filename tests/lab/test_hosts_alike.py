"""The same plan on this machine and on three hosts by SSH: the same result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml
from hosts import EXAMPLE, described

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab

_SHORT = {"rate_pps": 5_000, "flows": 16, "duration_s": 3}


def test_the_example_has_the_result_of_the_local_testbed(lab: Lab, three_hosts: Hosts) -> None:
    """Compare by the intervals over runs: no quantile differs by more than they allow for."""
    example = yaml.safe_load((EXAMPLE / "plan.yml").read_text("utf-8"))
    lax = {"lateness_p99_us": 1e6, "sent_share": 0.5}
    for name, testbed in (("here", "local"), ("there", described(three_hosts))):
        said = example | {"testbed": testbed, "limits": lax, "traffic": _SHORT, "repeat": 4}
        said |= {"floor": False}
        del said["loop"]
        ended = lab.run("run", str(lab.plan(**said)), "--out", name, "--json", timeout_s=240)
        assert ended.returncode == 0, ended.stderr
    # One of a thousand such tests fails by chance.
    ended = lab.run("compare", "here", "there", "--json", "--confidence", "0.999")
    (compared,) = json.loads(ended.stdout)["comparisons"]
    rows = {row["p"]: row for row in compared["quantiles"]}
    verdicts = {p: row["verdict"] for p, row in rows.items()}
    assert not set(verdicts.values()) & {"better", "worse"}, verdicts
    assert rows["0.5"]["low"] <= 1 <= rows["0.5"]["high"]
