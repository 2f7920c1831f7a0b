"""Names and contents of files are text on a terminal: they move no cursor."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import tailtrim
from tailtrim.cli.console import complain, escaped
from tailtrim.cli.terminal import Terminal
from tailtrim.errors import TailtrimError

CLI = Path(tailtrim.__file__).parent / "cli"
#: Names a window, colours, goes up a line, and says an error of its own.
HOSTILE = "a\x1b]0;named\x07\x1b[31mb\x1b[Ac\nerror: d\x9b1me"
SHOWN = r"a\x1b]0;named\x07\x1b[31mb\x1b[Ac\nerror: d\x9b1me"
#: Sequences with which rich sets colours.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(*arguments: str | Path) -> str:
    """Return what a command writes to a terminal, in lines."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tailtrim.cli", *map(str, arguments)]
    # Without a progress bar, which moves the cursor.
    quiet = {"TTY_INTERACTIVE": "0"}
    environment = {**os.environ, **quiet, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the command has closed its end
            break
        if not part:
            break
        written += part
    os.close(ours)
    process.wait()
    return written.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def run(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("escaping") / HOSTILE
    tailtrim.analyze(*testpmd, skip_s=1, out=place)
    return place


def shows_only(written: str) -> str:
    """Check that nothing but lines and colours is in it, and return it without colours."""
    plain = COLOURS.sub("", written)
    assert re.findall(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f]", plain) == []
    return plain


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", HOSTILE),
        ("explain", HOSTILE),
        ("compare", HOSTILE, HOSTILE),
        ("convert", HOSTILE, "--format", "hgrm"),
        ("analyze", HOSTILE, HOSTILE),
        ("decode", HOSTILE, "--out", "decoded"),
        ("load", HOSTILE),
        ("import", HOSTILE, "--out", "run"),
        ("run", HOSTILE),
        ("query", "SELECT 1", HOSTILE),
        ("query", f"SELECT '{HOSTILE}' FROM nowhere"),  # noqa: S608 - of ours
    ],
)
def test_errors(arguments: tuple[str, ...], tmp_path: Path) -> None:
    del tmp_path
    told = shows_only(on_terminal(*arguments))
    errors = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, told


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = TailtrimError(f"{HOSTILE}: no")
    error.add_note(HOSTILE)
    complain(error)
    assert capsys.readouterr().err == f"error: {SHOWN}: no\nhint: {SHOWN}\n"


def test_names_of_runs(run: Path) -> None:
    told = shows_only(on_terminal("report", run, "--out", run.parent / "report"))
    assert told.startswith("Page: ")
    told = shows_only(on_terminal("compare", run, run))
    assert SHOWN in told
    told = shows_only(on_terminal("query", 'SELECT DISTINCT run AS "[b]" FROM worst', run))
    assert told.splitlines()[0].strip() == "[b]"
    assert r"a\x1b]0;named\x07\x1b[31mb\x1b[Ac" in told
    for form in ("csv", "json"):
        shows_only(on_terminal("query", "FROM worst LIMIT 1", run, "--format", form))


def test_names_of_captures(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    captures = [tmp_path / f"{HOSTILE}{side}.pcap.zst" for side in range(2)]
    for capture, original in zip(captures, testpmd, strict=True):
        shutil.copy(original, capture)
    out = tmp_path / HOSTILE
    told = shows_only(on_terminal("analyze", *captures, "--out", out))
    assert f"{SHOWN}: " in told.splitlines()[0]
    told = shows_only(on_terminal("decode", *captures, "--out", tmp_path / "decoded"))
    assert len(told.splitlines()) == 2


def test_values_of_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yml"
    dut = {"preset": "command", "command": "x $what"}
    plan.write_text(
        json.dumps(
            {
                "name": "x",
                "dut": dut,
                "traffic": {"rate_pps": 1, "duration_s": 2},
                "loop": {"what": [HOSTILE, "other"]},
                "floor": False,
            }
        )
    )
    told = shows_only(on_terminal("run", plan, "--dry-run"))
    runs = [line for line in told.splitlines() if line.startswith("run-")]
    assert len(runs) == 2
    assert f"what={SHOWN}" in runs[0]


def test_lines_for_people_have_120_columns(run: Path) -> None:
    told = shows_only(on_terminal("explain", run)).splitlines()
    assert "without a trace of the host" in " ".join(" ".join(told).split())
    assert max(map(len, told)) <= 120


def test_data_in_tables_is_no_markup() -> None:
    terminal = Terminal()
    terminal.file = written = io.StringIO()
    table = Table("[b]x[/b]", box=None)
    table.add_row("[/nothing] :smile: [red]\x1b[31m")
    table.add_row(Text("\x1b]0;named\x07"))
    terminal.print(table)
    terminal.print("[/b]\x9b1m")
    lines = [line.strip() for line in written.getvalue().splitlines()]
    assert lines == [
        "[b]x[/b]",
        r"[/nothing] :smile: [red]\x1b[31m",
        # rich itself removes a bell from its own text.
        r"\x1b]0;named",
        r"[/b]\u009b1m",
    ]


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.lists(st.text()))))
def test_json_still_says_the_same(value: dict[str, object]) -> None:
    for options in ({}, {"ensure_ascii": False}, {"ensure_ascii": False, "indent": 2}):
        told = escaped(json.dumps(value, **options))
        assert json.loads(told) == value
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", told)


def test_names_that_are_no_utf8() -> None:
    assert escaped(os.fsdecode(b"a\xff")) == r"a\udcff"
    assert escaped("µ…é 5\N{NO-BREAK SPACE}µs\n\tb") == "µ…é 5\N{NO-BREAK SPACE}µs\n\tb"


def test_nothing_else_prints() -> None:
    writers = {"console.py", "terminal.py"}
    for path in CLI.glob("*.py"):
        if path.name not in writers:
            text = path.read_text()
            assert not re.search(r"typer\.(echo|secho)|(?<![._\w])print\(|\bConsole\(", text), path


def test_an_output_without_unicode_has_escapes(testpmd: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "tailtrim.cli", "analyze", *map(str, testpmd)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    text = subprocess.run(command, check=True, capture_output=True, env=environment).stdout.decode()
    assert re.search(r"[0-9.]+\s+\\xb5s", text)
