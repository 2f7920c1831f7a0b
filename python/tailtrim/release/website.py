"""The website of a release: pages that need nothing from elsewhere; only the report has scripts.

``index.html`` has the runs, the loop variables and the figures; ``site/run-000.html`` a run,
``site/loop-0-0.html`` the runs with one value of a loop variable, ``site/report/`` the report. The
same release gives the same bytes with the same versions.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.experiment import recorded
from tailtrim.release import tree
from tailtrim.release.derivation import captures_of
from tailtrim.release.layout import CLAIMS, EXPERIMENT, INDEX, PLAN, RECORD, REPORT, SITE
from tailtrim.report import pictures

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.experiment import RecordedExperiment, RecordedRun
    from tailtrim.rundir.summary import Quantile

_SHOWN = ("0.5", "0.9", "0.99", "0.999", "0.9999")


def write(root: Path) -> None:
    """Write the website of a release.

    Raises:
        RunDirectoryError: a table is missing or damaged.
        ReleaseError: a record is.

    """
    report(root, Path(REPORT))
    for name, page in pages(root).items():
        (root / name).write_bytes(page)


def report(root: Path, out: Path) -> None:
    """Write the report of a release.

    Args:
        root: the release.
        out: where to, from there on.

    Raises:
        RunDirectoryError: a table is missing or damaged.
        PicturesError: what makes pages and figures is not installed.

    """
    pictures.require()
    from tailtrim import factors  # noqa: PLC0415 - brings matplotlib, which takes long
    from tailtrim.report import write_experiment  # noqa: PLC0415

    # From there, so that pages name the runs as readers find them.
    with contextlib.chdir(root):
        place = Path(EXPERIMENT)
        experiment = recorded(place)
        if not experiment.complete:
            return
        if factors.has_factors(place):
            factors.write(factors.effects_of(place), experiment, out)
            return
        write_experiment(experiment, out)
        if factors.has_boots(place):
            factors.write(factors.boots_of(place), experiment, out)


def pages(root: Path) -> dict[str, bytes]:
    """Return the pages beside the report, by path."""
    render = _renderer()
    record = tree.record(root / RECORD)
    experiment = recorded(root / EXPERIMENT)
    site = _Site(root, experiment, record)
    found = {INDEX: render("index.html.j2", site=site, up="")}
    runs = site.runs
    for place, run in enumerate(runs):
        before = runs[place - 1] if place else None
        after = runs[place + 1] if place + 1 < len(runs) else None
        around = {"before": before, "after": after}
        found[run.page] = render("run.html.j2", site=site, run=run, up="../", **around)
    for variable in site.variables:
        for value in variable.values:
            found[value.page] = render("value.html.j2", site=site, value=value, up="../")
    return found


def _renderer() -> Callable[..., bytes]:
    import jinja2  # noqa: PLC0415 - of the extra `pictures`

    from tailtrim.report.pages.assets import assets, policy  # noqa: PLC0415 - as above

    environment, _, styles = assets()
    styles = [*styles[1:], _style()]
    environment = environment.overlay(loader=jinja2.PackageLoader("tailtrim.release"))

    def render(name: str, **values: Any) -> bytes:
        allowed = policy([], styles) + "; img-src 'self'"
        page = environment.get_template(name).render(policy=allowed, styles=styles, **values)
        return page.encode("utf-8")

    return render


def _style() -> Any:
    from importlib import resources  # noqa: PLC0415 - of the extra `pictures`, as above

    from markupsafe import Markup  # noqa: PLC0415

    text = resources.files("tailtrim.release").joinpath("templates/site.css").read_text("utf-8")
    return Markup(text)  # noqa: S704 - our own


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as pages show it; ``loop`` has its values with the pages of those."""

    recorded: RecordedRun
    loop: tuple[_Value, ...]
    quantiles: tuple[Quantile | None, ...]
    files: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return self.recorded.outcome.run

    @property
    def page(self) -> str:
        return f"{SITE}/{self.name}.html"


@dataclass(slots=True)
class _Value:
    """A value of a loop variable, and the runs that have it."""

    variable: str
    value: Any
    page: str
    runs: list[_Run]

    @property
    def told(self) -> str:
        return f"{self.variable} = {self.value}"


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    values: tuple[_Value, ...]


class _Site:
    """What all pages know."""

    def __init__(self, root: Path, experiment: RecordedExperiment, record: dict[str, Any]) -> None:
        self.experiment, self.record = experiment, record
        self.columns = [f"p{_percent(p)}" for p in _SHOWN]
        self.claims = (root / CLAIMS).is_file()
        self.plan = (root / EXPERIMENT / PLAN).is_file()
        report = root / REPORT
        self.report = f"{REPORT}/report.html" if (report / "report.html").is_file() else None
        self.boots = f"{REPORT}/boots.html" if (report / "boots.html").is_file() else None
        figures = sorted((report / "figures").glob("*.svg")) if self.report else []
        self.figures = [place.stem for place in figures]
        self.folder = f"{REPORT}/figures"
        self.variables = _variables(experiment)
        values = {(one.name, _key(v.value)): v for one in self.variables for v in one.values}
        self.runs = [self._run(root, run, values) for run in experiment.runs]
        told = [run.recorded.problem for run in self.runs if run.recorded.problem]
        self.doubtful = len(told)
        complete = [run.outcome.run for run, _ in experiment.complete]
        self.complete = len(complete)
        self.captured = sum(captures_of(root / EXPERIMENT / name) is not None for name in complete)

    def _run(self, root: Path, run: RecordedRun, values: dict[tuple[str, str], _Value]) -> _Run:
        folder = root / EXPERIMENT / run.outcome.run
        names = tree.files(folder) if folder.is_dir() else []
        files = tuple((name, (folder / name).stat().st_size) for name in names)
        latency = (
            {}
            if run.directory is None
            else {one.p: one for one in run.directory.summary.latency_ns.quantiles}
        )
        loop = tuple(values[name, _key(value)] for name, value in run.loop.items())
        shown = _Run(run, loop, tuple(latency.get(p) for p in _SHOWN), files)
        for value in loop:
            value.runs.append(shown)
        return shown


def _variables(experiment: RecordedExperiment) -> list[_Variable]:
    """Return the loop variables with their values, in the order of the runs."""
    found: dict[str, dict[str, Any]] = {}
    for run in experiment.runs:
        for name, value in run.loop.items():
            found.setdefault(name, {}).setdefault(_key(value), value)
    return [
        _Variable(
            name,
            tuple(
                _Value(name, value, f"{SITE}/loop-{place}-{number}.html", [])
                for number, value in enumerate(values.values())
            ),
        )
        for place, (name, values) in enumerate(found.items())
    ]


def _key(value: Any) -> str:
    return f"{type(value).__name__} {value}"


def _percent(share: str) -> str:
    from tailtrim.report.units import percent  # noqa: PLC0415 - as above

    return percent(share)
