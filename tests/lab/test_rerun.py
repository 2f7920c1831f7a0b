"""Runs of a release measured again on a reader's hosts: real ones of sshd, in namespaces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from hosts import described

from tailtrim.laboratory.nodes.environment import sum_of

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab

CITATION = """\
cff-version: 1.2.0
message: Cite it as below.
title: One run
authors: [{family-names: Doe, given-names: Jane}]
"""


@pytest.mark.parametrize("where", ["local", "hosts"])
def test_a_run_is_measured_again_on_hosts(lab: Lab, three_hosts: Hosts, where: str) -> None:
    testbed = lab.folder / "mine.yml"
    testbed.write_text(yaml.safe_dump(described(three_hosts)), encoding="utf-8")
    (lab.folder / "LICENSE").write_text("Anybody may use these data.\n", encoding="utf-8")
    (lab.folder / "CITATION.cff").write_text(CITATION, encoding="utf-8")
    plan = lab.plan(testbed="local" if where == "local" else described(three_hosts))
    measured = lab.run("run", str(plan), "--out", "out")
    assert measured.returncode == 0, measured.stderr
    words = ("--license", "LICENSE", "--citation", "CITATION.cff")
    made = lab.run("release", "out", "--out", "released", *words)
    assert made.returncode == 0, made.stderr

    again = ("verify", "released", "--only", "files", "--only", "rerun", "--rerun", "1")
    if where == "hosts":
        refused = lab.run(*again)
        assert refused.returncode == 2
        assert "no addresses" in refused.stderr
    done = lab.run(*again, "--testbed", str(testbed), "--out", "again", "--json")
    assert done.stdout, done.stderr
    levels = {one["level"]: one for one in json.loads(done.stdout)["levels"]}
    assert levels["files"]["verdict"] == "pass", levels["files"]
    # On a busy machine the second run may differ; that it was measured and judged is asserted.
    rerun = levels["rerun"]
    assert rerun["verdict"] != "skipped", rerun
    assert rerun["told"] == "run-000"
    assert done.returncode == (1 if rerun["verdict"] == "fail" else 0)
    run = lab.folder / "again" / "run-000"
    assert (run / "summary.json").is_file()
    nodes = json.loads((run / "nodes.json").read_text("utf-8"))
    assert set(nodes["roles"].values()) == {"gen", "stamp", "dut"}
    for root in ("out", "again", "released/experiment"):
        (listed,) = (lab.folder / root / "packages").iterdir()
        known = nodes["nodes"]["dut"]["packages"]
        assert sum_of(listed.read_text("utf-8")) == known, "each host is this machine"
    assert lab.left() == []
