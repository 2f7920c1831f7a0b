"""``tailtrim simulate-interrupts``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.analysis.options import nanoseconds
from tailtrim.cli import options
from tailtrim.cli.console import say, say_json
from tailtrim.errors import OutputError
from tailtrim.report import pictures, write_files

if TYPE_CHECKING:
    from tailtrim.explain import Simulation

EXAMPLES = """\b
Examples (the first is Figure 4a of "5G QoS: Impact of Security Functions on Latency"):
  tailtrim simulate-interrupts --figure interrupts.svg
  tailtrim simulate-interrupts --rate 10000 --frequency 250 --drift 5
  tailtrim simulate-interrupts --schedule poisson
"""


def command(  # noqa: PLR0913 - one parameter an option
    *,
    rate: Annotated[
        str, typer.Option(metavar="PPS", help="Packets per second. Default: as published.")
    ] = "10007.84",
    frequency: Annotated[
        str, typer.Option(metavar="HZ", help="Interrupts per second. Default: as published.")
    ] = "249.9878",
    stall: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME",
            help="Duration of an interrupt, such as 7.5us. If given several times, interrupts"
            " have these durations in turn. Default: 7.5us, 7.5us and 10.4us.",
        ),
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="TIME", help="Start of the first interrupt, such as 5us.")
    ] = "0us",
    latency: Annotated[
        str, typer.Option(metavar="TIME", help="Latency of undisturbed packets, such as 3.1us.")
    ] = "3.1us",
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Simulated time, such as 30s.")
    ] = "30s",
    drift: Annotated[
        str, typer.Option(metavar="PPM", help="How much the clock of the packets is slow.")
    ] = "0",
    schedule: Annotated[
        str, typer.Option(metavar="SCHEDULE", help="cbr, golden, poisson, burst:N or jitter:SHARE.")
    ] = "cbr",
    json: Annotated[bool, options.json("Print all latencies as JSON.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw latency over time: .svg or .pdf.")
    ] = None,
) -> None:
    """Simulate what packets observe of periodic interrupts (aliasing)."""
    from tailtrim.explain import Interrupt, simulate  # noqa: PLC0415 - other commands start without

    if figure is not None:
        pictures.require()
    stalls_ns = tuple(_microseconds("--stall", t) for t in stall or ("7.5", "7.5", "10.4"))
    start_ns = _microseconds("--start", start)
    simulation = simulate(
        rate_pps=rate,
        interrupts=[Interrupt(frequency, stalls_ns, start_ns=start_ns)],
        run_s=str(Decimal(nanoseconds("--duration", duration)).scaleb(-9)),
        latency_ns=_microseconds("--latency", latency),
        drift_ppm=drift,
        schedule=schedule,
    )
    if figure is not None:
        _draw(simulation, figure)
    if json:
        say_json(simulation.as_json())
        return
    from tailtrim.report import units  # noqa: PLC0415

    (sampling,) = simulation.sampling
    highest_ns = max(simulation.latencies_ns, default=simulation.latency_ns)
    beat_hz = sampling["beat_hz"]
    say(f"packets      {units.count(simulation.packets)}")
    say(f"interrupts   {units.count(sampling['occurrences'])}")
    say(f"met          {units.count(simulation.delayed)} ({100 * sampling['met']:.1f} %)")
    say(f"at random    {100 * sampling['expected']:.1f} %")
    say(f"highest      {units.time(highest_ns)}")
    say(f"beat         {'-' if beat_hz is None else f'{beat_hz:.4g} Hz'}")
    if sampling["aliased"]:
        say(
            "warning: packets and interrupts are almost in phase (aliasing), so a run shows only"
            " a few phases; use a Poisson schedule or another rate",
            err=True,
        )


def _microseconds(name: str, time: str) -> int:
    """Return a time in nanoseconds; a number without a unit is one of microseconds."""
    return nanoseconds(name, time, unit_ns=1000)


def _draw(simulation: Simulation, path: Path) -> None:
    from tailtrim.report.figures.drawing import render  # noqa: PLC0415 - matplotlib
    from tailtrim.report.figures.simulated_interrupts import observed  # noqa: PLC0415

    suffix = path.suffix.removeprefix(".")
    if suffix not in ("svg", "pdf"):
        raise OutputError(f"{path}: expected a name that ends in .svg or .pdf")
    write_files.write(path, render(observed(simulation), ["simulated"], formats=[suffix])[suffix])
