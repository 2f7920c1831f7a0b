"""``tailtrim pos``."""

from __future__ import annotations

import itertools
import math
from contextlib import closing
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tailtrim import units
from tailtrim.cli import options
from tailtrim.cli.console import complain, say
from tailtrim.errors import ExitCode, PicturesError, PlanError
from tailtrim_pos.layout import Published

if TYPE_CHECKING:
    from tailtrim.results.experiments import Outcome
    from tailtrim_pos.conduct import Ended
    from tailtrim_pos.experiment import PosExperiment
    from tailtrim_pos.jobs import RunEnded, Waiting
    from tailtrim_pos.journal import Journal
    from tailtrim_pos.provider import Provider

EXAMPLES = """\b
Examples:
  tailtrim pos experiment.sh tartu vilnius
  tailtrim pos experiment.sh tartu vilnius --dry-run     # only check nodes and cables
  tailtrim pos experiment.sh tartu vilnius --image 'debian-*' --order random --seed 7
  tailtrim pos experiment.sh tartu vilnius --resume      # go on after an interruption
  tailtrim pos experiment.sh tartu vilnius --cable tartu:eno7=vilnius:eno7
  tailtrim pos experiment.sh tartu vilnius -- --duration 30    # options of the script
  tailtrim pos experiment.sh tartu vilnius --testbed lab.yml --map tartu=gen --map vilnius=dut
  tailtrim pos experiment.sh tartu vilnius --image debian-bookworm=bookworm/cloud    # in VMs
  tailtrim pos experiment.sh tartu vilnius --repository https://github.com/gallenmu/MoonGen=moongen
"""


class Order(StrEnum):
    """Orders of runs."""

    GRID = "grid"
    RANDOM = "random"


_Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="NODE…", help="Its arguments: names of nodes, and whatever it takes."),
]
_Out = Annotated[
    Path | None,
    options.out("Directory of the results. Default: results/NAME of the script's folder."),
]
_Images = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=KERNEL]",
        help="Image, or a pattern such as 'debian-*', for which the host's files stand in. With a"
        " KERNEL (bookworm/cloud, or a folder of tailtrim image) nodes are virtual machines.",
    ),
]
_Cables = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NODE:PORT=NODE:PORT",
        help="A cable. Default: two between each pair of nodes, ports eth1, eth2, ….",
    ),
]
_Testbed = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Nodes are the hosts of a testbed file. Default: this host makes them."
    ),
]
_Repositories = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL=FOLDER",
        help="Folder that `git clone URL` copies on nodes, which reach no network; URL=moongen:"
        " tailtrim's stand-in for MoonGen.",
    ),
]
_Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="NODE=HOST",
        help="With --testbed: which host a node is; NODE:PORT=HOST.PORT, which port has its name."
        " Default: the names of the file.",
    ),
]
_Deadline = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="End each command, and each run of a repeated one, after a time such as 90s.",
    ),
]
_Layout = Annotated[
    Published,
    typer.Option(metavar="YEAR", help="Result folder as pos had it in 2020 or has it in 2026."),
]


def command(  # noqa: PLR0913 - one parameter an option
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT",
            help="The script of the experiment; it runs in its folder.",
        ),
    ],
    arguments: _Arguments = None,
    *,
    out: _Out = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Only check options, hosts and cables; start nothing.")
    ] = False,
    resume: options.Resume = False,
    image: _Images = None,
    cable: _Cables = None,
    repository: _Repositories = None,
    testbed: _Testbed = None,
    places: _Map = None,
    order: Annotated[
        Order, typer.Option(metavar="ORDER", help="Order of the runs: grid or random.")
    ] = Order.GRID,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of --order random.")] = 1,
    deadline: _Deadline = None,
    layout: _Layout = Published.NEW,
    skip: options.Skip = "1s",
) -> None:
    """Run an experiment folder of pos as it is, on nodes of this host or on hosts."""
    from tailtrim.analysis.options import nanoseconds  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415
    from tailtrim_pos.experiment import PosExperiment  # noqa: PLC0415
    from tailtrim_pos.journal import Journal  # noqa: PLC0415
    from tailtrim_pos.repositories import repositories_of  # noqa: PLC0415

    words = arguments or []
    script = script / "experiment.sh" if script.is_dir() else script
    name = script.absolute().parent.name
    if not script.is_file():
        raise PlanError(f"{script}: not a file")
    deadline_s = nanoseconds("deadline", deadline) / 10**9 if deadline else None
    nanoseconds("skip", skip)
    seeded = seed if order is Order.RANDOM else None
    about = {"script": str(script), "arguments": words, "layout": str(layout), "seed": seeded}
    about |= {"testbed": str(testbed), "map": places or []} if testbed else {}
    about |= {"repositories": repository} if repository else {}
    images = tuple(one.partition("=")[0] for one in image or ())
    where = _Where(testbed, places or [], cable or [], image or [])
    with closing(_nodes(name, where)) as nodes:
        nodes.repositories = repositories_of(repository or [])
        nodes.reserve(words)
        if dry:
            _check(script, words, nodes)
            return
        if testbed is None:
            become_root()
        experiment = PosExperiment(
            name=name,
            script=script,
            arguments=words,
            nodes=nodes,
            published=layout,
            images=images,
            deadline_s=deadline_s,
            seed=seeded,
            skip_s=skip,
        )
        with Journal(out or Path("results") / name, about, resume=resume) as journal:
            failed = _run(experiment, journal)
    if failed:
        raise typer.Exit(ExitCode.FAILED)


class _Where(NamedTuple):
    """Options that say where nodes come from."""

    testbed: Path | None
    places: list[str]
    cables: list[str]
    images: list[str]


def _nodes(name: str, where: _Where) -> Provider:
    """Return where nodes come from."""
    from tailtrim.laboratory.plan.testbed import load_testbed  # noqa: PLC0415 - the help does without
    from tailtrim_pos import cabling, guest_nodes  # noqa: PLC0415
    from tailtrim_pos.local_nodes import LocalNodes  # noqa: PLC0415
    from tailtrim_pos.testbed_nodes import Map, TestbedNodes  # noqa: PLC0415

    testbed, places, cables, images = where
    told = partial(say, err=True)
    machines = [one for one in images if "=" in one]
    if machines and (testbed or len(machines) < len(images)):
        raise PlanError("--image NAME=KERNEL is for all nodes, and not for --testbed FILE")
    if testbed is None:
        if places:
            raise PlanError("--map is for --testbed FILE")
        if machines:
            live = guest_nodes.images_of(machines, told)
            return guest_nodes.GuestNodes(live, cabling.cables_of(cables), told)
        return LocalNodes(cabling.cables_of(cables))
    if cables:
        raise PlanError("--cable is for nodes of this host: the testbed file has the cables")
    description = load_testbed(testbed)
    return TestbedNodes(description, Map(places, description), f"pos {name}", told)


def _check(script: Path, words: list[str], nodes: Provider) -> None:
    """Print the nodes that the arguments name, with their cables and limits."""
    before = itertools.takewhile(lambda word: not word.startswith("-"), words)
    names = [word for word in before if _is_node(word, nodes)]
    for name in names:
        rows = nodes.interfaces(name, names)
        ports = (
            f"{row['port']} to {row['peer']}:{row['peer_port']}" if "peer" in row else row["port"]
            for row in rows
        )
        say(f"{name}: {', '.join(ports) or 'no ports'}")
        why = nodes.unbootable(name)
        if why is not None:
            say(f"{name}: boot parameters are refused: {why}")
    say(f"{script}: {len(names)} nodes; what the script asks for is seen when it runs")


def _is_node(word: str, nodes: Provider) -> bool:
    """Whether a word can be the name of a node; a number is the one of an allocation."""
    try:
        nodes.check(word)
    except PlanError:
        return False
    return not word.isdigit()


def _run(experiment: PosExperiment, journal: Journal) -> bool:
    """Run it, and report; return whether something failed."""
    from tailtrim.results.experiments import is_experiment  # noqa: PLC0415 - the help does without
    from tailtrim_pos.conduct import conduct  # noqa: PLC0415
    from tailtrim_pos.run_analysis import analyse  # noqa: PLC0415

    progress = _Progress()
    try:
        ended = conduct(experiment, journal, progress)
    except (KeyboardInterrupt, SystemExit):
        say(f"interrupted: what was done is in {journal.folder}, --resume does the rest", err=True)
        raise
    outcomes = analyse(journal, experiment, ended, _told)
    for allocation in ended.allocations:
        say(f"Results:    {allocation.layout.folder}")
    if is_experiment(journal.folder):
        _report(journal.folder)
    return _tell(ended, outcomes)


def _told(what: str) -> None:
    say(f"{units.printable(what)} …", err=True)


def _report(folder: Path) -> None:
    from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - not where nothing was captured
    from tailtrim.publishing.report import write_experiment  # noqa: PLC0415
    from tailtrim.publishing.report.terminal.run_text import render  # noqa: PLC0415
    from tailtrim.results.experiments import recorded  # noqa: PLC0415

    experiment = recorded(folder)
    complete = experiment.complete
    if not complete:
        return
    runs = [run.summary for _, run in complete]
    Terminal().print(render(runs, [run.name for run, _ in complete]))
    say(f"Experiment: {folder}")
    try:
        page, *_ = write_experiment(experiment, folder / "report")
        say(f"Report:     {page}")
    except PicturesError as error:
        complain(error, "warning")


def _tell(ended: Ended, outcomes: list[Outcome]) -> bool:
    for doubt in ended.doubts:
        say(f"warning: {units.printable(doubt)}", err=True)
    for told in ended.failed:
        say(f"error: {units.printable(told)}", err=True)
    for outcome in outcomes:
        if outcome.failed:
            say(f"error: {units.printable(f'{outcome.run}: {outcome.failed}')}", err=True)
    if ended.code:
        say(f"error: the script ended with {ended.code}", err=True)
    return bool(ended.code or ended.failed or any(outcome.failed for outcome in outcomes))


class _Progress:
    """A line for each run that ended, and how long the others will take."""

    def __init__(self) -> None:
        self._took_s: list[float] = []

    def __call__(self, event: RunEnded | Waiting) -> None:
        """Report a run, or commands that the script left."""
        from tailtrim_pos.jobs import Waiting  # noqa: PLC0415 - the help does without

        if isinstance(event, Waiting):
            left = ", ".join(event.commands)
            say(
                units.printable(f"the script has ended, waiting for {left} (Ctrl-C ends them)"),
                err=True,
            )
        else:
            self._run(event)

    def _run(self, run: RunEnded) -> None:
        self._took_s.append(run.duration_s)
        label = ", ".join(f"{name}={value}" for name, value in run.loop.items())
        became = f"failed: {', '.join(run.failed)}" if run.failed else "finished"
        done = f"run {run.number} ({label}): {became} after {run.duration_s:.1f} s"
        done += f" (repeated: {'; '.join(run.repeated)})" if run.repeated else ""
        say(units.printable(f"{done}; {self._left(run)}"), err=True)

    def _left(self, run: RunEnded) -> str:
        if not run.left:
            return f"{run.runs} of {run.runs} runs done"
        left_s = run.left * sum(self._took_s) / len(self._took_s)
        ends = datetime.now(UTC).astimezone() + timedelta(seconds=left_s)
        about = f"about {math.ceil(left_s / 60)} min, until {ends:%a %H:%M}"
        return f"{run.left} of {run.runs} runs left, {about}"
