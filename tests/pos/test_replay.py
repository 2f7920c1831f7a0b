"""Result folders whose log of requests is enough to repeat the experiment."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from recorded import (
    MEASUREMENT,
    SETUP,
    awaiting,
    entry,
    experiment,
    launch,
    reset,
    results,
    variables,
)

from tailtrim.errors import PlanError
from tailtrim.pos import recording, replaying

if TYPE_CHECKING:
    from pathlib import Path

    from pos_runs import PosRun

pytestmark = pytest.mark.lab

ALLOCATE = entry("/allocations/allocate?nodes=a&nodes=b")


def replay(run: PosRun, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    run.ended = subprocess.run(
        [run.program, "pos", "replay", str(folder), *words, "--out", str(run.out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=run.environment,
    )
    return run.ended


@pytest.mark.parametrize("name", recording.PLACES)
def test_an_experiment_is_repeated_from_its_log(run_of: PosRun, tmp_path: Path, name: str) -> None:
    folder = results(tmp_path, experiment(), name)
    ended = replay(run_of, folder, "--image", "debian-*", "--trim", "0s")
    assert ended.returncode == 0, ended.stderr
    for fact in ("12 entries", "11 replayed", "1 not needed", "0 unknown"):
        assert fact in ended.stderr
    assert run_of.printed("setup.stdout", "riga") == "riga says it's; $(false)\n"
    for number, size in enumerate(["64", "256"]):
        assert run_of.printed(f"measurement_run{number}.status", "riga") == "finished"
        assert run_of.printed(f"run{number}.txt", "vilnius").strip() == size
    first = json.loads((run_of.out / "pos.jsonl").read_text("utf-8").splitlines()[0])
    assert first["replayed"]["entries"] == {"replayed": 11, "not needed here": 1}

    again = replay(run_of, folder, "--image", "debian-*", "--trim", "0s", "--resume")
    assert again.returncode == 0, again.stderr
    assert "run 0" not in again.stderr
    assert run_of.left() == []


def test_other_nodes_take_the_place_of_those_of_the_log(run_of: PosRun, tmp_path: Path) -> None:
    folder = results(tmp_path, experiment())
    ended = replay(run_of, folder, "ada", "bob", "--image", "debian-*")
    assert ended.returncode == 0, ended.stderr
    assert run_of.printed("setup.stdout", "bob").startswith("bob says")


def test_what_is_unknown_is_told_before_anything_runs(run_of: PosRun, tmp_path: Path) -> None:
    parameter = entry("/nodes/bootparameter/riga", {"bootparameter": ["iommu=pt"]})
    log = experiment()
    log.insert(4, parameter)
    folder = results(tmp_path, log)
    ended = replay(run_of, folder, "--image", "debian-*")
    assert ended.returncode == 2
    unknown = "entry 5: /nodes/bootparameter/riga: unknown request"
    for fact in (unknown, "13 entries", "11 replayed", "1 not needed", "1 unknown"):
        assert fact in ended.stderr
    assert not run_of.out.exists()
    assert replay(run_of, folder, "--no-scan", "--image", "debian-*").returncode == 0


def test_scripts_of_the_log_are_scanned(run_of: PosRun, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_bash")
    script = "#!/bin/bash\nset -e\napt install stress\n"
    folder = results(tmp_path, [entry("/allocations/allocate?nodes=a"), launch("a", "s", script)])
    ended = replay(run_of, folder)
    assert ended.returncode == 2
    for fact in ("experiment_recording.json: 0002-s:3: apt: ", "no network"):
        assert fact in ended.stderr
    assert not run_of.out.exists()


UNKNOWN = [
    (["nothing"], "no request: .*{timestamp, request, data}"),
    ([entry("http://[1")], "invalid request"),
    ([entry("http://x.org/nodes/image/a", {"image": "x"})], "unknown request"),
    ([ALLOCATE], "second allocation"),
    ([entry("/nodes/image/c", {"image": "x"})], "'c' is not .*allocates"),
    ([entry("/nodes/image", {"image": "x"})], "names no node"),
    ([entry("/nodes/image/a", {"image": "--user"})], "name of an image"),
    ([entry("/nodes/image/a", {"image": "x", "user": "y"})], "unknown key 'user'"),
    ([entry("/nodes/reset/a")], "has no data"),
    ([reset("a") | {"more": 1}], "unknown key 'more'"),
    ([variables("a", {}) | {"data": {"global": True, "loop": True, "variables": {}}}], "global or"),
    ([awaiting("a", "x")], "waits .*no entry before"),
    ([launch("a", "x", SETUP, type="command")], "type 'command'"),
    ([launch("a", "../../x", SETUP)], "name '../../x' is not"),
    ([launch("a", "-x", SETUP)], "name '-x' is not"),
    ([launch("a", "x", SETUP, file=None)], "has no file"),
    ([launch("a", "x", SETUP, file="BOxz hX>Ko")], "not text in base85"),
    ([launch("a", "x", SETUP, file="\u00e9")], "not text in base85"),
    ([launch("a", "x", SETUP, file=base64.b85encode(b"\xff\xff").decode())], "not text in base85"),
    ([launch("a", "x", SETUP, file="BOxzhX")], "bytes are encoded"),
    ([launch("a", "x", SETUP, file="0" * 1_250_006)], "longer than 1,000,000 bytes"),
    ([launch("a", "x", SETUP, loop_variables=True, loop_only=[1, 2])], "loop_only: several runs"),
    ([launch("a", "x", SETUP, loop_variables=True, loop_from="0")], "expected numbers of runs"),
]


@pytest.mark.parametrize(("log", "told"), UNKNOWN)
def test_an_unknown_entry_is_named_and_counted(tmp_path: Path, log: list[Any], told: str) -> None:
    found = recording.read(results(tmp_path, [ALLOCATE, *log]))
    (problem,) = found.problems
    assert re.match(f"entry 2: .*{told}", problem)
    assert found.outcomes == {recording.Outcome.REPLAYED: 1, recording.Outcome.UNKNOWN: 1}


WITHOUT = [
    ("{}", "list .*at most 10,000"),
    ("[", "not JSON"),
    ("[" * 100_000, "not JSON"),
    (json.dumps([ALLOCATE] * 10_001), "list .*at most 10,000"),
    (json.dumps([reset("a")]), "allocates no nodes"),
    (json.dumps([entry("/allocations/allocate?nodes=../x")]), "allocates no nodes"),
]


@pytest.mark.parametrize(("text", "told"), WITHOUT)
def test_what_is_no_log_is_one_clear_error(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        recording.read(results(tmp_path, text))


def test_a_folder_without_a_log_says_where_one_would_be(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"scripts/experiment\.json or experiment_rec"):
        recording.read(tmp_path)


def test_too_few_nodes_are_refused(tmp_path: Path) -> None:
    found = recording.read(results(tmp_path, [ALLOCATE]))
    with pytest.raises(PlanError, match=r"1 nodes, expected 2, .*a, b"):
        replaying.renamed(found, ["x", "x"])


def test_all_waits_for_what_was_before_but_other_nodes_alike(tmp_path: Path) -> None:
    log = [
        *(ALLOCATE, reset("a"), reset("b")),
        *(launch("a", "s", SETUP), launch("b", "s", SETUP), awaiting("a", "s")),
        *(launch("a", "m", MEASUREMENT), launch("b", "m", MEASUREMENT)),
        variables("a", {"x": [1]}, "loop"),
    ]
    found = recording.read(results(tmp_path, log))
    script = replaying.write(found, replaying.renamed(found, []), tmp_path / "made")
    calls = script.read_text("utf-8").split("}\n")[1].splitlines()
    told = [line if line.startswith("ended") else line.split()[2] for line in calls]
    boots = ["allocate", "reset", "reset", "ended 2", "ended 3"]
    # The setup of b goes on while a begins with its measurement, as it did.
    setup = ["launch", "launch", "ended 4", "launch", "ended 5"]
    measured = ["launch", "ended 7", "ended 8", "set_variables"]
    assert told == boots + setup + measured
