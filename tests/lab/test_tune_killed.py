"""Plans killed at each state that a journal can be in, and taken back: the fixture compares all.

The kernel ends a process as abruptly as by SIGKILL when it writes beyond the largest file that it
may have. So it dies at a known byte of its journal, and always at the same one.

| what it died at | what is there then |
|---|---|
| the first journal, which has no steps | no journal: no value has changed |
| the journal with all old values | one without steps: no value has changed |
| the first mark | all old values, nothing begun |
| half of the first mark | the same, and a torn mark, which means nothing |
| the mark that a value is set | a value that is set, and begun by its mark |
| the mark that the next one begins | a value that is set and done, others that are not begun |
| the last mark | all values set, not said so |
| the mark that all is restored | all values as before, not said so |
| putting the journal away | the same, and said so |

The whole plan of this host, whose length no one knows before, is killed in the middle of its marks.
``crates/localhost/tests/it/tune`` kills at every single operation, on a host in memory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from changed_host import Tune

CPUS = os.cpu_count() or 1
pytestmark = [
    pytest.mark.faults,
    pytest.mark.alone,
    pytest.mark.skipif(CPUS < 2, reason="isolating a CPU needs two"),
]
PLAN = ("--profile", "latency-poll", "--isolate", str(CPUS - 1), "--smt", "keep")
#: Three values that all kernels of Debian have.
THREE = ("kernel.hung_task_timeout_secs", "vm.stat_interval", "vm.swappiness")
FEW = (*PLAN, *(word for name in THREE for word in ("--only", name)))


def killed(tune: Tune, verb: str, *words: str, journal_bytes: int) -> None:
    """Run a verb as ``Tune.json`` does; it dies once a file of it would be longer."""
    limits = ("/usr/bin/env", "prlimit", f"--fsize={journal_bytes}", "--core=0")
    command = [*limits, *tune.command(verb, *words, "--json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == -signal.SIGXFSZ, ended


def values() -> list[str]:
    """Return the three values."""
    return [Path("/proc/sys", name.replace(".", "/")).read_text().strip() for name in THREE]


def lines(tune: Tune) -> list[bytes]:
    """Return the lines of the journal, if there is one."""
    try:
        return (tune.state / "journal").read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []


def records(tune: Tune) -> list[str]:
    """Return the kinds of all whole lines behind what was there before; sums stand in front."""
    whole = [line for line in lines(tune) if line.endswith(b"\n")]
    kinds: list[str] = [json.loads(line.split(b" ", 1)[1])["record"] for line in whole]
    return [kind for kind in kinds if kind not in {"begin", "step"}]


@pytest.fixture
def whole(host: Tune) -> list[bytes]:
    """Return the lines of the journal of three values, which have their old ones again."""
    assert host.json("apply", *FEW)["took"] == len(THREE)
    journal = lines(host)
    assert records(host) == [*["start", "done"] * len(THREE), "applied"]
    assert host.json("revert")["restored"] == len(THREE)
    return journal


def length(journal: list[bytes], marks: float) -> int:
    """Return the bytes of the header, all steps and so many of the marks behind them."""
    first, rest = 1 + len(THREE) + int(marks), marks % 1
    torn = int(rest * len(journal[first])) if rest else 0
    return sum(map(len, journal[:first])) + torn


BEGUN = ["start"]
ALL = ["start", "done"] * len(THREE)


@pytest.mark.parametrize(
    ("marks", "left", "changed"),
    [
        pytest.param(0, [], 0, id="recorded"),
        pytest.param(0.5, [], 0, id="torn"),
        pytest.param(1, BEGUN, 1, id="begun"),
        pytest.param(2, [*BEGUN, "done"], 1, id="between"),
        pytest.param(2 * len(THREE), ALL, len(THREE), id="unsaid"),
    ],
)
def test_applying_dies_at_a_mark(
    host: Tune, whole: list[bytes], marks: float, left: list[str], changed: int
) -> None:
    before = values()
    killed(host, "apply", *FEW, journal_bytes=length(whole, marks))
    journal = lines(host)
    assert records(host) == left
    assert sum(map(len, journal)) == length(whole, marks)
    assert journal[-1].endswith(b"\n") == (marks == int(marks))
    assert changed == sum(now != old for now, old in zip(values(), before, strict=True))
    assert not host.json("status")["complete"]
    # Old values that are not restored would be lost to a second journal.
    assert host.run("apply", *FEW).returncode == 2
    reverted = host.json("revert")
    assert (reverted["restored"], reverted["left"]) == (changed, [])
    assert values() == before


@pytest.mark.parametrize(("short_by", "left"), [(None, 0), (1, 1)], ids=["absent", "no steps"])
def test_no_value_changes_before_all_are_recorded(
    host: Tune, whole: list[bytes], short_by: int | None, left: int
) -> None:
    before = values()
    journal_bytes = 10 if short_by is None else length(whole, 0) - short_by
    killed(host, "apply", *FEW, journal_bytes=journal_bytes)
    assert (len(lines(host)), values()) == (left, before)
    # There is nothing to take back first.
    assert host.json("apply", *FEW)["took"] == len(THREE)


def revert_dies(host: Tune) -> None:
    """Have the restored values not be said so."""
    assert host.json("apply", *FEW)["took"] == len(THREE)
    killed(host, "revert", journal_bytes=sum(map(len, lines(host))))
    assert records(host) == [*ALL, "applied"]


def stays_behind(host: Tune) -> None:
    """Have the journal say that all is restored, and still be there."""
    assert host.json("apply", *FEW)["took"] == len(THREE)
    before = set(host.state.iterdir())
    assert host.json("revert")["restored"] == len(THREE)
    (put_away,) = set(host.state.iterdir()) - before
    put_away.rename(host.state / "journal")
    assert records(host) == [*ALL, "applied", "reverted"]


@pytest.mark.parametrize("dies", [revert_dies, stays_behind])
def test_reverting_dies_at_its_end(host: Tune, dies: Callable[[Tune], None]) -> None:
    before = values()
    dies(host)
    assert values() == before
    # There is nothing left to restore, and the journal goes.
    reverted: dict[str, Any] = host.json("revert")
    assert (reverted.get("restored", 0), reverted.get("left", [])) == (0, [])
    assert lines(host) == []
    assert host.json("apply", *FEW)["took"] == len(THREE)


@pytest.mark.fast
def test_killed_in_the_middle_and_taken_back(host: Tune) -> None:
    # Kernel threads come and go: each is a step, of a hundredth of the marks.
    host.json("apply", *PLAN)
    journal = lines(host)
    steps = sum(map(len, journal[: -2 * host.records() - 1]))
    marks, whole = sum(map(len, journal)) - steps, host.records()
    host.json("revert")
    killed(host, "apply", *PLAN, journal_bytes=steps + marks // 2)
    assert 1 < host.records() < whole
    status = host.json("status")
    assert not status["complete"]
    standing = [value["standing"] for value in status["values"]]
    assert 0 < standing.count("in-place") < len(standing)
    reverted = host.json("revert")
    assert reverted["restored"] > 1
    assert reverted["left"] == []
