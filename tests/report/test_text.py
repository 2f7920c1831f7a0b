from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tailtrim.publishing.report import ReportError
from tailtrim.publishing.report.terminal.run_text import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory


def printed(*runs: RunDirectory, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width)
    console.print(render([run.summary for run in runs], [run.name for run in runs]))
    return file.getvalue()


def row(text: str, start: str) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return next(line for line in lines if line.startswith(start))


@pytest.mark.published
def test_table_2_of_the_paper_to_the_last_digit(published: Callable[[str], RunDirectory]) -> None:
    text = printed(published("dpdk-l2fwd/hw"))
    head = row(text, "kpkt/s")
    assert head == "kpkt/s loss % 50 90 99 99.9 99.99 99.999 Max"
    assert row(text, "10.0") == ("10.0 0 3.14 3.17 3.36 7.71* 12.2* 13.4* 13.6")


@pytest.mark.published
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("dpdk-l2fwd/vm", "3.34 3.56 3.98 14.7 17.6 19.0 19.2"),
        ("snort-fwd/hw", "14.54 17.18 24.65 29.67 32.36 33.09 33.14"),
    ],
)
def test_other_rows_of_table_2(
    published: Callable[[str], RunDirectory], name: str, values: str
) -> None:
    cells = row(printed(published(name)), "10.0").replace("*", "").split()[2:]
    assert cells == values.split()


@pytest.mark.published
def test_table_1_of_the_paper_to_the_last_digit(published: Callable[[str], RunDirectory]) -> None:
    text = printed(published("motivation"))
    cells = row(text, "10.0").replace("*", "")
    assert cells == "10.0 0 68.9 74.2 88.1 107 1,673 2,518 2,655"
    # Three spikes decide p99.99 and slow changes the body: too few episodes of either.
    assert "50 % of packets within 68.9 µs" in " ".join(text.split())


def test_counts_add_up(testpmd: RunDirectory) -> None:
    text = printed(testpmd, width=200)
    for side in (testpmd.summary.ingress, testpmd.summary.egress):
        line = next(line for line in text.splitlines() if f"{side.packets:,} = " in line)
        total, _, terms = line.partition(" = ")
        numbers = [int(term.split()[0].replace(",", "")) for term in terms.split(" + ")]
        assert sum(numbers) == side.packets
        assert total.split()[-1] == f"{side.packets:,}"


def test_a_lost_packet_is_infinitely_late(make_run: Callable[..., RunDirectory]) -> None:
    text = printed(make_run([5_000] * 500 + [None] * 20 + [5_000] * 480))
    assert row(text, "10.0").split()[1] == "2.0"
    assert row(text, "adj.") == "adj. 5.00* 5.00* ∞* ∞"
    assert "980 matched + 20 lost" in text
    for fact in ("20 of 1,000 packets (2.0 %)", "not delivered"):
        assert fact in text


@pytest.mark.parametrize("width", [80, 30])
def test_copies_by_the_device_are_in_the_table_where_there_are_any(
    make_run: Callable[..., RunDirectory], width: int
) -> None:
    run = make_run([5_000] * 50, copied=3)
    assert run.summary.egress.copy == 3
    text = printed(run, width=width)
    if width < 80:
        assert "synthetic: 10.0 kpkt/s, loss % 0, 3 copies" in " ".join(text.split())
    else:
        assert row(text, "kpkt/s").split()[:4] == ["kpkt/s", "loss", "%", "copies"]
        assert row(text, "10.0").split()[:3] == ["10.0", "0", "3"]
    other = printed(run, make_run([5_000] * 50, name="other"), width=80)
    assert sorted(line.split()[2] for line in other.splitlines() if "10.0 " in line) == ["0", "3"]
    assert "copies" not in printed(make_run([5_000] * 50), width=width)


def test_what_the_samples_do_not_support_is_said(make_run: Callable[..., RunDirectory]) -> None:
    text = printed(make_run([5_000 + number for number in range(100)]), width=120)
    for fact in ("not supported", "100 samples", "10,000 are needed"):
        assert fact in row(text, "99.9 %")
    beyond = "Too few samples .*99.9, 99.99, 99.999, 99.9999 from Max"
    assert re.search(beyond, " ".join(text.split()))


def test_without_a_match_there_is_no_table(make_run: Callable[..., RunDirectory]) -> None:
    text = printed(make_run([None] * 10))
    assert "No packet was matched" in text
    assert "kpkt/s" not in text


@pytest.mark.parametrize("width", [40, 80, 132])
def test_lines_fit_the_console(testpmd: RunDirectory, width: int) -> None:
    assert max(map(len, printed(testpmd, testpmd, width=width).splitlines())) <= width


def test_names_do_not_reach_the_terminal_raw(make_run: Callable[..., RunDirectory]) -> None:
    text = printed(make_run([5_000] * 10, name="[red]\x1b[31mname"))
    assert "\x1b" not in text
    assert "[red]\\x1b[31mname" in text


def test_names_and_summaries_are_as_many(testpmd: RunDirectory) -> None:
    with pytest.raises(ReportError, match=r"2 names .*1 run"):
        render([testpmd.summary], ["a", "b"])


def test_importing_it_brings_nothing_heavy() -> None:
    code = "import sys, tailtrim.publishing.report.terminal.run_text; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8"
    )
    assert not {"numpy", "matplotlib", "pyarrow", "jinja2"} & set(done.stdout.split())


def test_writing_a_report_brings_neither_matplotlib_nor_pandas(
    testpmd: RunDirectory, tmp_path: Path
) -> None:
    code = (
        "import sys, tailtrim; from tailtrim.publishing import report\n"
        "report.write([tailtrim.RunDirectory(sys.argv[1])], sys.argv[2])\n"
        "print(*sys.modules)"
    )
    words = [sys.executable, "-c", code, str(testpmd.path), str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, encoding="utf-8")
    assert not {"matplotlib", "pandas"} & set(done.stdout.split())
