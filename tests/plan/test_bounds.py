"""A plan of any text is answered: by what it means, or by one error within bounded work."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.plan import bounded_yaml
from tailtrim.laboratory.plan.variables import MOST_RUNS

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "name: x\ndut: {preset: forward}\ntraffic: {rate_pps: $rate}\nfloor: false\n"


def chained(first: str, link: str) -> str:
    """Return lines; each stands for several of the line before it."""
    names = "abcdefghij"
    links = pairwise(names)
    rest = "".join(f"{one}: &{one} {link.replace('?', f'*{before}')}\n" for before, one in links)
    return f"a: &a {first}\n{rest}"


def refused(folder: Path, text: str) -> str:
    path = folder / "plan.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError) as raised:
        plans.load(path)
    told = str(raised.value)
    assert len(told) < 2_000
    return told.removeprefix(f"{path}: ")


TEN = "[?, ?, ?, ?, ?, ?, ?, ?, ?, ?]"
MANY = ".*101,000 keys"
DEEP = "nested more than 16 "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(chained("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", TEN), f"line 5: {MANY}", id="bomb"),
        pytest.param(chained("{k: 1}", f"{{<<: {TEN}}}"), f"line 6: {MANY}", id="merged"),
        pytest.param(chained("[[[0]]]", "[[[?]]]"), f"line 5: {DEEP}", id="deep by aliases"),
        pytest.param("a: &a [*a]", r"line 1: alias \*a .*part", id="itself"),
        pytest.param("a: &a {<<: *a}", r"line 1: alias \*a .*part", id="merges itself"),
        pytest.param("a: [" + "0, " * 101_000 + "]", f"line 1: {MANY}", id="many"),
        pytest.param("[" * 100_000, f"line 1: {DEEP}", id="brackets"),
        pytest.param("{a: " * 100_000, f"line 1: {DEEP}", id="braces"),
        pytest.param("- " * 100_000, f"line 1: {DEEP}", id="dashes"),
        pytest.param("? " * 100_000, f"line 1: {DEEP}", id="question marks"),
        pytest.param(
            "".join(" " * depth + "a:\n" for depth in range(500)), f"line 16: {DEEP}", id="indented"
        ),
        pytest.param("#" * bounded_yaml.MOST_BYTES + "\n", "more than 4,194,304 bytes", id="long"),
        pytest.param("a: *b", "line 1: .*undefined alias 'b'", id="no anchor"),
        pytest.param("a:\n  2001-02-30", "line 2: timestamp cannot have", id="day"),
        pytest.param("a: " + "9" * 5_000, "line 1: int cannot have", id="digits"),
        pytest.param("a: " + "1:" * 5_000 + "1", "line 1: int cannot have", id="sexagesimal"),
        pytest.param("a: !!int x", "line 1: int cannot have", id="int"),
        pytest.param("a: !!int", "line 1: int cannot have", id="no digits"),
        pytest.param("a: !!bool x", "line 1: bool cannot have", id="bool"),
        pytest.param("a: !!timestamp x", "line 1: timestamp cannot have", id="timestamp"),
        pytest.param("a:\nb: \x01", "line 2: special characters", id="control"),
        pytest.param("k: 1\n" + "[a]: 1", "line 2: found unhashable key", id="key"),
        pytest.param(
            HEAD + "loop: {rate: [1, 2, ..., 1000000000000]}",
            "line 5: loop.rate: .*100,000 values",
            id="range",
        ),
        pytest.param(
            HEAD + "repeat: 0\nloop: {rate: [1, 2, ..., 100000], a: [1, 2, ..., 100000]}",
            "line 6: loop: .* 10,000,000,000 runs, .* 100,000",
            id="never repeated",
        ),
        pytest.param(
            HEAD + "loop:\n" + "".join(f"  v{n}: [1, 2, 3]\n" for n in range(9_000)),
            "line 5: loop: .*more than 1,000,000,000,000,000 runs, .* 100,000",
            id="variables",
        ),
        pytest.param(f"name: {'x' * 100_000}", "line 1: name: expected text", id="long name"),
    ],
)
def test_more_than_a_plan_can_be(tmp_path: Path, text: str, told: str) -> None:
    assert re.match(told, refused(tmp_path, text))


def test_the_command_says_it_in_one_error(tmp_path: Path) -> None:
    path = tmp_path / "plan.yml"
    path.write_text("[" * 100_000)
    ended = subprocess.run(
        [sys.executable, "-m", "tailtrim.cli", "run", str(path), "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    (error,) = ended.stderr.splitlines()
    assert error.startswith(f"error: {path}: line 1: {DEEP}")


@pytest.mark.long
def test_the_longest_honest_plan(tmp_path: Path) -> None:
    assert bounded_yaml.MOST_NODES > MOST_RUNS
    path = tmp_path / "plan.yml"
    values = [
        f"    - {1_000_000 + value}.1234567890123456789012345\n" for value in range(MOST_RUNS)
    ]
    text = f"{HEAD}loop:\n  rate:\n{''.join(values)}"
    assert len(text) < bounded_yaml.MOST_BYTES
    root = bounded_yaml.compose(text)
    assert root is not None
    assert len(bounded_yaml.data(root)["loop"]["rate"]) == MOST_RUNS
    # All of it takes a while: each run is looked at.
    path.write_text(f"{HEAD}loop: {{rate: [1000, 1001, ..., 10999]}}")
    _, runs = plans.load(path)
    assert [run.traffic.rate_pps for run in runs] == list(range(1_000, 11_000))


def test_anchors_and_merge_keys_of_honest_plans(tmp_path: Path) -> None:
    path = tmp_path / "plan.yml"
    path.write_text(
        "name: x\n"
        "dut: {preset: forward, batch: $batch}\n"
        "traffic: {rate_pps: $rate, duration_s: &time 3}\n"
        "loop:\n"
        "  rate: &values [1, 2, 4]\n"
        "  batch: *values\n"
        "limits: {<<: {ready_s: 7.0, sent_share: 0.5}, sent_share: 0.25}\n"
        "skip_s: *time\n"
    )
    with pytest.raises(PlanError, match=r"line 8: skip_s: .*traffic\.duration_s"):
        plans.load(path)
    path.write_text(path.read_text().replace("skip_s: *time\n", ""))
    plan, runs = plans.load(path)
    assert len([run for run in runs if not run.floor]) == 9
    assert (plan.limits.ready_s, plan.limits.sent_share) == (7.0, 0.25)
    # Merged entries have lines of their own; entries of the mapping itself have precedence.
    merged = "limits:\n  <<:\n    ready_s: {}\n    sent_share: 5.0\n  sent_share: {}\n"
    text = path.read_text().partition("limits")[0]
    path.write_text(text + merged.format("-7.0", "0.25"))
    with pytest.raises(PlanError, match=r"line 9: limits\.ready_s: .*greater than 0"):
        plans.load(path)
    path.write_text(text + merged.format("7.0", "3.0"))
    with pytest.raises(PlanError, match=r"line 11: limits\.sent_share: .*less than"):
        plans.load(path)
