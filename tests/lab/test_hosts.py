"""Plans on three hosts that are reached by SSH: real ones of sshd, in namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts import described

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab


def test_a_plan_runs_on_three_hosts_and_leaves_nothing(lab: Lab, three_hosts: Hosts) -> None:
    plan = lab.plan(testbed=described(three_hosts), floor=True)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    for run in ("run-000", "run-001"):
        summary = lab.result(run, "summary")
        assert summary["samples"] == lab.result(run, "generator")["sent"] > 0
    for host in three_hosts.hosts.values():
        assert host.left() == []
    assert lab.left() == []
