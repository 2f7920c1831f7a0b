"""The programs that are timed: their commands, and how their answers are read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from captures import Case, Pair, pinned
from integers import Integers, of_histogram, of_summary
from measure import ProgramError
from record import AGENT
from session import BENCHMARKS, Program, Session, say


def agent_program(
    session: Session,
    pairs: int | None,
    pair: Pair | None = None,
    note: str = "",
    *,
    cores: int = 1,
) -> Program:
    """Build the command of the agent.

    Args:
        session: for the paths.
        pairs: how many samples a synthetic pair gives; None for published ones, which are trimmed.
        pair: the captures; None for named pipes in the working directory.
        note: a remark on the data.
        cores: how many it may use.

    """

    def answer(text: str) -> tuple[Integers, str]:
        integers = of_summary(json.loads(text))
        if pairs is not None and integers.samples != pairs:
            raise ProgramError(f"{integers.samples} samples of {pairs} pairs")
        return integers, ""

    names = list(map(str, pair)) if pair and pairs is None else ["ingress.pcap", "egress.pcap"]
    options = ["--skip", "1s" if pairs is None else "0"]
    options += ["--jobs", str(cores)]
    on = session.core if cores == 1 else session.cores[-cores:]
    command = [*pinned(on), str(session.agent), "analyze", *options, *names]
    name = AGENT if cores == 1 else f"tailtrim-agent ({cores} cores)"
    return Program(name, command, answer, pair or (), note=note)


def command_line_programs(session: Session, case: str, pairs: int, pair: Pair) -> list[Program]:
    """Build the command of the tool with report data, on all cores as a user would run it."""
    tailtrim = Path(sys.executable).with_name("tailtrim")
    name = "tailtrim analyze --out"
    asked = [str(tailtrim), "analyze", "--help"]
    works = (
        tailtrim.is_file()
        and not subprocess.run(asked, capture_output=True, check=False).returncode
    )
    if not works:
        session.skip(
            case,
            pairs,
            name,
            f"skipped: {session.neutral(str(tailtrim))} analyze --help does not work",
        )
        return []
    out = session.scratch / "out"
    shutil.rmtree(out, ignore_errors=True)

    def answer(_: str) -> tuple[Integers, str]:
        summary = json.loads((out / "summary.json").read_text())
        shutil.rmtree(out)
        return of_summary(summary), ""

    command = [str(tailtrim), "analyze", *map(str, pair), "--skip", "1s", "--out", str(out)]
    return [Program(name, [*pinned(session.cores), *command], answer, pair)]


def duckdb_programs(session: Session, case: Case, pair: Pair) -> list[Program]:
    """Decode the pair and build the commands of DuckDB, on two cores and on one."""
    missing = [name for name in ("duckdb", "numpy", "pyarrow") if find_spec(name) is None]
    if missing:
        reason = f"skipped: {', '.join(missing)} not installed"
        session.skip(case.name, case.pairs, "DuckDB", reason)
        return []
    say(f"{case.name}: decoding to Parquet")
    decoded = (pair[0].with_suffix(".parquet"), pair[1].with_suffix(".parquet"))
    for capture, parquet in zip(pair, decoded, strict=True):
        decode = [str(BENCHMARKS / "decode.py"), str(capture), str(case.frame_bytes), str(parquet)]
        subprocess.run([sys.executable, *decode], check=True)
    programs = []
    for form in ("plain", "unique"):
        for cores in (session.cores[-2:], session.core):
            threads = str(len(cores))
            query = [str(BENCHMARKS / "peers" / "duckdb_join.py"), "ingress.parquet"]
            options = ["egress.parquet", "--form", form, "--threads", threads]
            command = [*pinned(cores), sys.executable, *query, *options]
            name = f"DuckDB {form} join ({'1 core' if cores == session.core else '2 cores'})"
            programs.append(Program(name, command, histogram_answer, decoded))
    return programs


def postgres_programs(
    session: Session, case: str, pairs: int, pair: Pair, *, skip_s: int
) -> list[Program]:
    """Build the commands of the papers' pipeline, on all cores."""
    names = list(map(str, pair)) if skip_s else ["ingress.pcap", "egress.pcap"]
    if session.server is None:
        session.skip(case, pairs, "PostgreSQL", f"skipped: {session.server_problem}")
        return []
    programs = []
    for form in ("lean", "papers"):
        pipeline = [str(BENCHMARKS / "peers" / "postgres_pipeline.py"), *names]
        options = ["--form", form, "--socket", str(session.server.socket)]
        options += ["--skip-s", str(skip_s)] if skip_s else []
        command = [*pinned(session.cores), sys.executable, *pipeline, *options]
        name = f"PostgreSQL {form} pipeline"
        programs.append(Program(name, command, histogram_answer, pair, session.server.pid))
    return programs


def naive_match(folder: Path) -> Path | None:
    """Compile the naive matcher in a folder; ``None`` without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    built, source = folder / "naive_match", BENCHMARKS / "peers" / "naive_match.c"
    subprocess.run([compiler, "-O3", "-march=native", "-o", built, source], check=True)
    return built


def naive_programs(session: Session, case: Case, pair: Pair) -> list[Program]:
    """Compile the naive matcher and build its command on one core."""
    name = "naive C"
    built = naive_match(session.scratch / "programs")
    if built is None:
        session.skip(case.name, case.pairs, name, "skipped: no C compiler")
        return []
    command = [*pinned(session.core), str(built), "ingress.pcap", "egress.pcap"]
    return [Program(name, command, histogram_answer, pair)]


def truth(case: Case, pair: Pair) -> Integers:
    """Compute the right answer of a synthetic pair without matching."""
    count = [str(BENCHMARKS / "truth.py"), *map(str, pair), str(case.frame_bytes)]
    ended = subprocess.run([sys.executable, *count], check=True, stdout=subprocess.PIPE, text=True)
    return histogram_answer(ended.stdout)[0]


def histogram_answer(text: str) -> tuple[Integers, str]:
    """Read the answer of a peer."""
    result = json.loads(text)
    integers = of_histogram(result["histogram"])
    note = result.get("note", "")
    own = result.get("percentiles")
    if own and own != list(integers.values.values())[2:]:
        note += "; its own percentile function is off by a rank"
    return integers, note
