"""The example of the README, measured here, released, verified elsewhere, and measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laboratory import Lab

DEMO = Path(__file__).parents[2] / "examples" / "demo.yml"
CITATION = """\
cff-version: 1.2.0
message: Cite it as below.
title: The demo
authors: [{family-names: Doe, given-names: Jane}]
"""


def test_the_demo_is_released_verified_and_measured_again(lab: Lab) -> None:
    # The machine that tests is not the one that measures.
    limits = "limits: {lateness_p99_us: 1000000, sent_share: 0.5}\n"
    plan = lab.folder / "demo.yml"
    plan.write_text(f"{DEMO.read_text('utf-8')}keep_captures: true\n{limits}", encoding="utf-8")
    (lab.folder / "LICENSE").write_text("Anybody may use these data.\n", encoding="utf-8")
    (lab.folder / "CITATION.cff").write_text(CITATION, encoding="utf-8")
    measured = lab.run("run", "demo.yml", "--out", "out", timeout_s=300)
    assert measured.returncode == 0, measured.stderr

    words = ("--license", "LICENSE", "--citation", "CITATION.cff")
    made = lab.run("release", "out", "--out", "released", *words, timeout_s=300)
    assert made.returncode == 0, made.stderr
    elsewhere = lab.folder / "elsewhere"
    elsewhere.mkdir()
    (lab.folder / "released").rename(elsewhere / "released")
    (lab.folder / "out").rename(lab.folder / "gone")

    again = ("--rerun", "1", "--out", "again", "--json")
    done = lab.run("verify", str(elsewhere / "released"), *again, timeout_s=300)
    levels = {one["level"]: one for one in json.loads(done.stdout)["levels"]}
    verdicts = {name: one["verdict"] for name, one in levels.items() if name != "rerun"}
    passed = ("files", "grid", "numbers", "figures", "validity")
    assert verdicts == dict.fromkeys(passed, "pass") | {"claims": "skipped"}
    assert levels["numbers"]["told"] == "6 runs from captures, 0 from samples"
    # On a busy machine the second run may differ; that it was measured and judged is asserted.
    rerun = levels["rerun"]
    assert rerun["verdict"] != "skipped", rerun
    assert (done.returncode == 1) == (rerun["verdict"] == "fail")
    (run,) = [path for path in (lab.folder / "again").glob("run-*") if path.is_dir()]
    assert rerun["told"] == run.name
    assert (run / "summary.json").is_file()
