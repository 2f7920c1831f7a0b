"""The same plan on this machine and on three hosts by SSH: the same result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from hosts import EXAMPLE, described

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab

_SHORT = {"rate_pps": 5_000, "flows": 16, "duration_s": 3}


def test_the_example_has_the_result_of_the_local_testbed(lab: Lab, three_hosts: Hosts) -> None:
    """Compare by the intervals over runs: no quantile differs by more than they allow for.

    The machine changes from minute to minute, so this machine is measured before the hosts and
    after them: a difference that is the hosts' shows beside both.
    """
    example = yaml.safe_load((EXAMPLE / "plan.yml").read_text("utf-8"))
    lax = {"lateness_p99_us": 1e6, "sent_share": 0.5}
    testbeds = {"before": "local", "there": described(three_hosts), "after": "local"}
    for name, testbed in testbeds.items():
        said = example | {"testbed": testbed, "limits": lax, "traffic": _SHORT, "repeat": 4}
        said |= {"floor": False}
        del said["loop"]
        ended = lab.run("run", str(lab.plan(**said)), "--out", name, "--json", timeout_s=240)
        assert ended.returncode == 0, ended.stderr
    before, after = (_differences(lab, here, "there") for here in ("before", "after"))
    assert not before & after, (before, after)


def _differences(lab: Lab, one: str, other: str) -> set[tuple[str, str]]:
    """Return quantiles that are better or worse: one of a thousand is by chance."""
    ended = lab.run("compare", one, other, "--json", "--confidence", "0.999")
    (compared,) = json.loads(ended.stdout)["comparisons"]
    rows: list[dict[str, Any]] = compared["quantiles"]
    assert {"0.5", "0.99"} <= {row["p"] for row in rows}
    different = [row for row in rows if row["verdict"] in {"better", "worse"}]
    return {(row["p"], row["verdict"]) for row in different}
