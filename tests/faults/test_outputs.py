"""Files of commands that are killed at any state, and those on a full disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("tailtrim"))
#: Arguments of each command. {run}: a run directory; {in}, {out}: captures.
WRITING = {
    "analyze": "analyze {in} {out} --out result",
    "decode": "decode {in} {out} --out result",
    "csv": "convert {run} --format csv --out result",
    "openmetrics": "convert {run} --format openmetrics --out result",
    "hgrm": "convert {run} --format hgrm --out result",
    "report": "report {run} --out result",
    "query": "query 'select * from sample' {run} --format parquet --out result",
}
#: States of each command at which it is killed, evenly spread, and also the first and the last.
STATES = 3
#: Dates and durations differ.
DIFFERING = {"decode.json", "provenance.json", "report.html", "summary.json", "metrics.prom"}

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def run(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("faults") / "run"
    subprocess.run([PROGRAM, "analyze", *testpmd, "--out", place], check=True, capture_output=True)
    return place


@pytest.fixture(params=WRITING)
def line(request: pytest.FixtureRequest, testpmd: tuple[Path, Path], run: Path) -> str:
    return f"{PROGRAM} {WRITING[request.param]}".format(
        run=run, **{"in": testpmd[0], "out": testpmd[1]}
    )


def files(folder: Path) -> Files:
    """Return contents by path of what is in a folder; locks and folders have none."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def names(folder: Path) -> frozenset[str]:
    """Return what is there at this moment, which may change meanwhile."""
    try:
        return frozenset(str(path) for path in folder.rglob("*"))
    except OSError:
        return frozenset()


def states(line: str, folder: Path, kill_at: int | None = None) -> int:
    """Run a command, killed at the given state of its files; return how many states it had."""
    folder.mkdir()
    seen, before = 0, frozenset[str]()
    with subprocess.Popen(
        ["sh", "-c", f"exec {line}"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            if (now := names(folder)) != before:
                seen, before = seen + 1, now
            if seen == kill_at:
                process.kill()
    assert process.returncode == (0 if kill_at is None else -9) or seen < (kill_at or 0)
    return seen


def drafts(found: Files) -> list[str]:
    return [name for name in found if ".tailtrim-draft-" in name]


def test_killed_at_any_state(line: str, tmp_path: Path) -> None:
    """All that has its name is whole, and the next one leaves what it would have left."""
    count = states(line, tmp_path / "whole")
    whole = files(tmp_path / "whole")
    assert count > 1
    assert drafts(whole) == []
    for state in sorted({1, count, *range(1, count, max(1, count // STATES))}):
        folder = tmp_path / str(state)
        states(line, folder, state)
        for name, content in files(folder).items():
            if name in drafts({name: content}) or "/." in name:
                continue
            assert name in whole, f"state {state}"
            if Path(name).name not in DIFFERING:
                assert content == whole[name], f"{name} in state {state}"
            elif name.endswith(".json"):
                json.loads(content)
        again = subprocess.run(
            ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False
        )
        assert again.returncode == 0, again.stderr
        after = files(folder)
        assert after.keys() == whole.keys(), f"state {state}"
        assert drafts(after) == []


#: Run a command on a disk of so many KiB, and say what is there behind it.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=$1k none "$2" && cd "$2" || exit 99
{line} >/dev/null
code=$?
find . -type f -printf '%P %s\\n'
exit $code
"""


def test_a_full_disk(line: str, tmp_path: Path) -> None:
    """One error names the place, a file with its name is whole, and with more room it works."""
    room_kib, failures = 4, []
    while (ended := on_a_small_disk(line, room_kib, tmp_path)).returncode != 0:
        failures.append(ended)
        room_kib *= 4
    whole = dict(found.rsplit(" ", 1) for found in ended.stdout.splitlines())
    assert failures
    for failed in failures:
        assert failed.returncode in {2, 4}, failed.stderr
        assert failed.stderr.count("error: ") == 1, failed.stderr
        assert "cannot be written" in failed.stderr
        for name, size in (found.rsplit(" ", 1) for found in failed.stdout.splitlines()):
            # A decoder goes on with the parts that it has done so far.
            if "/." not in name:
                assert name in whole
                assert size == whole[name] or Path(name).name in DIFFERING, name


def on_a_small_disk(line: str, room_kib: int, folder: Path) -> subprocess.CompletedProcess[str]:
    script = ON_A_SMALL_DISK.format(line=line)
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    return subprocess.run(
        [*words, str(room_kib), folder], capture_output=True, text=True, check=False
    )
