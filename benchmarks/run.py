"""Times tailtrim and its peers on the same captures, on this machine, in one run.

    make bench                        # or, from the project's folder:
    python benchmarks/run.py --quick

README.md in this folder describes the measurements and how to read a record.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import machine
import record
from captures import BUILT_BY, Case, Pair, fifos, generate, pinned
from cluster import ClusterError, cluster
from integers import of_expected
from measure import fits
from options import disk_need, has_peers, parse, plan
from programs import (
    agent_program,
    command_line_programs,
    duckdb_programs,
    naive_programs,
    postgres_programs,
    truth,
)
from session import DATA, ROOT, Session, say

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

# The published pairs with the smallest and the largest latencies.
PUBLISHED = ("dpdk-l2fwd/hw", "motivation")
PUBLISHED_TRIM_S = 1


def main() -> int:
    """Run what the command line asks for; 1 if a program failed or gave a wrong answer."""
    arguments = parse()
    signal.signal(signal.SIGTERM, interrupt)
    cores = machine.cores()
    for program, how in (
        (arguments.agent, "cargo build --release -p tailtrim-agent"),
        (arguments.synthesize, BUILT_BY),
    ):
        if not program.is_file():
            say(f"{program} is missing: {how}")
            return 2
    cases = plan(arguments)
    need = disk_need(cases, arguments)
    free = shutil.disk_usage(arguments.scratch).free
    say(f"needs {need / 1e9:.1f} GB in {arguments.scratch}, {free / 1e9:.1f} GB are free")
    if free < need:
        say("not enough: choose fewer --sizes or another --scratch")
        return 2
    started = datetime.now(tz=UTC)
    try:
        with ExitStack() as stack:
            scratch = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="tailtrim-bench-", dir=arguments.scratch)
                )
            )
            # PostgreSQL runs as another user, who has to reach the folder of its cluster.
            scratch.chmod(0o711)
            agent, synthesize = copies(scratch, arguments.agent, arguments.synthesize)
            facts = machine.facts(ROOT, agent, len(cores))
            session = Session(agent, synthesize, scratch, cores, arguments.only)
            # The sampler keeps off the core on which single-core programs are measured.
            os.sched_setaffinity(0, session.others)
            start_server(session, stack)
            for case in cases:
                synthetic(session, case, arguments)
            if "published" in session.groups:
                published(session, arguments)
    except KeyboardInterrupt:
        say("interrupted: cleaned up, nothing recorded")
        return 130
    name = f"{started:%Y-%m-%d}-{machine.name(len(cores))}"
    folder = record.folder_for(arguments.runs, name)
    record.write(folder, session.rows, facts, invocation())
    say(f"recorded in {folder}")
    print((folder / "summary.md").read_text())
    return int(any(row.status.startswith(("failed", "refused")) for row in session.rows))


def copies(scratch: Path, *programs: Path) -> list[Path]:
    """Copy programs, so that a build during the run does not change what is measured."""
    folder = scratch / "programs"
    folder.mkdir()
    return [Path(shutil.copy2(program, folder)) for program in programs]


def invocation() -> str:
    """Return this run's command line without this machine's folders."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return shlex.join(["python", "benchmarks/run.py", *words])


def start_server(session: Session, stack: ExitStack) -> None:
    """Start PostgreSQL if it is asked for and possible; it ends with the stack."""
    if "postgres" not in session.groups:
        return
    if find_spec("psycopg") is None:
        session.server_problem = "psycopg is not installed"
        return
    try:
        folder = session.scratch / "postgres"
        session.server = stack.enter_context(cluster(folder, pinned(session.cores)))
    except ClusterError as error:
        session.server_problem = str(error)


def synthetic(session: Session, case: Case, arguments: argparse.Namespace) -> None:
    """Measure everything that applies to one synthetic pair."""
    folder = session.scratch / case.name
    folder.mkdir()
    try:
        if case.through == "fifo":
            through_fifos(session, case, folder, arguments.fifo_repeat)
        else:
            through_files(session, case, folder, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def through_fifos(session: Session, case: Case, folder: Path, repeat: int) -> None:
    """Measure the agent alone, while generators write to its inputs."""

    def generators() -> AbstractContextManager[Pair]:
        return fifos(session.synthesize, case, folder, session.others)

    programs = [agent_program(session, case.pairs)]
    session.compare(
        case.name,
        programs,
        pairs=case.pairs,
        repeat=repeat,
        folder=folder,
        expected=session.truths.get(case.pairs),
        around=generators,
    )


def through_files(
    session: Session, case: Case, folder: Path, arguments: argparse.Namespace
) -> None:
    """Measure the agent and its peers on the same files."""
    say(f"{case.name}: writing {case.pair_bytes / 1e9:.2f} GB")
    pair = generate(session.synthesize, case, folder)
    problem = fits(pair)
    if problem:
        say(f"{case.name}: {problem}")
    if find_spec("numpy"):
        session.truths[case.pairs] = truth(case, pair)
    programs = [agent_program(session, case.pairs, pair, problem or "")]
    if len(session.cores) > 1:
        programs.append(agent_program(session, case.pairs, pair, problem or "", cores=2))
    if has_peers(case) and "naive" in session.groups:
        programs += naive_programs(session, case, pair)
    if has_peers(case) and "duckdb" in session.groups:
        programs += duckdb_programs(session, case, pair)
    if has_peers(case) and "postgres" in session.groups:
        if case.pairs <= arguments.postgres_limit:
            programs += postgres_programs(session, case.name, case.pairs, pair, skip_s=0)
        else:
            limit = f"skipped: more than {arguments.postgres_limit} pairs (--postgres-limit)"
            session.skip(case.name, case.pairs, "PostgreSQL", limit)
    session.compare(
        case.name,
        programs,
        pairs=case.pairs,
        repeat=arguments.repeat,
        folder=folder,
        expected=session.truths.get(case.pairs),
    )


def published(session: Session, arguments: argparse.Namespace) -> None:
    """Measure published pairs, for which the right answer is known."""
    known_file = DATA.parent / "expected.json"
    known = json.loads(known_file.read_text()) if known_file.is_file() else {}
    for name in PUBLISHED[: 1 if arguments.quick else None]:
        case = f"published {name}"
        found = sorted((DATA / name).glob("*latencies-pre-*.pcap.zst"))
        key = found[0].relative_to(DATA).as_posix() if found else ""
        if key not in known:
            session.skip(
                case, 0, "tailtrim analyze", "skipped: the published captures are not here"
            )
            continue
        pair = (found[0], found[0].with_name(found[0].name.replace("-pre-", "-post-")))
        pairs = known[key]["ingress"]
        programs = [agent_program(session, None, pair)]
        programs += command_line_programs(session, case, pairs, pair)
        if "postgres" in session.groups:
            programs += postgres_programs(session, case, pairs, pair, skip_s=PUBLISHED_TRIM_S)
        session.compare(
            case,
            programs,
            pairs=pairs,
            repeat=arguments.repeat,
            folder=session.scratch,
            expected=of_expected(known[key]),
        )


def interrupt(_signal: int, _frame: object) -> NoReturn:
    """Turn a termination into Ctrl-C, so that everything is cleaned up."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
