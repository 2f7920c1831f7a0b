"""``tailtrim predict``."""

from __future__ import annotations

import json as encoding
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say_json, say_lines, warn
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from tailtrim.analysis.queueing import Prediction

EXAMPLES = """\b
Examples:
  tailtrim predict results/load/run-000
  tailtrim predict results/snort --floor results/l2fwd --rate 60kpps,80kpps
  tailtrim predict results/load/run-000 --without tick --faster 20%
  tailtrim predict results/bursts --batch 4 --assert 'p99.9 < 200us'
  tailtrim predict results/load --out prediction    # an experiment: from its lowest rate
"""

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN…",
        help="Run directories, or an experiment. The prediction is made from the first run (of an"
        " experiment: that at the lowest rate) and compared with the others.",
    ),
]
Floor = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="A run of a forwarder that does nothing, on the same path. Its median latency is"
        " taken as the transport. Default: the wire of the experiment, where too few packets"
        " wait for the one ahead to tell transport and service apart.",
    ),
]
Rate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RATE",
        help="Rates to predict, such as 20kpps,40kpps. Default: several up to R_max. Repeatable.",
    ),
]
Burst = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Packets come in bursts of N. Default: as measured."),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CAUSE", help="Take a cause away: a part of its name, or tick. Repeatable."
    ),
]
Faster = Annotated[
    str, typer.Option(metavar="SHARE", help="A faster CPU, such as 20%; slower: -20%.")
]
Batch = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="The device takes up to N packets at once."),
]
Asserts = Annotated[
    list[str] | None,
    options.asserts(
        "Find the highest rate and the largest burst at which these hold, such as 'p99.9 < 200us'."
    ),
]
Out = Annotated[
    Path | None,
    options.out("Write prediction.json and the figure (SVG, CSV) there."),
]


def command(  # noqa: PLR0913 - one parameter an option
    runs: Runs,
    *,
    floor: Floor = None,
    rate: Rate = None,
    burst: Burst = None,
    without: Without = None,
    faster: Faster = "0%",
    batch: Batch = None,
    asserts: Asserts = None,
    cpu: options.Cpu = None,
    json: Annotated[bool, options.json("Print the prediction as JSON.")] = False,
    out: Out = None,
) -> None:
    """Predict the highest rate of a device, and its latency at other rates and in bursts."""
    from tailtrim.analysis.options import packets_per_s, share  # noqa: PLC0415 - other commands start without
    from tailtrim.analysis.queueing import predicted  # noqa: PLC0415
    from tailtrim.analysis.queueing.run_selection import chosen  # noqa: PLC0415

    speed = share("faster", faster, "20% or -20%")
    if not -1 < speed < float("inf"):
        raise ValueError(f"--faster {faster!r}: expected a share above -100%, such as 20%")
    one = chosen(runs)
    found = predicted(
        one.source,
        floor=floor,
        spare=one.floor,
        others=one.others,
        rates_pps=[
            float(packets_per_s(each.strip())) for text in rate or () for each in text.split(",")
        ],
        burst=burst,
        without=without or (),
        faster=speed,
        batch=batch,
        promise=", ".join(asserts or ()) or None,
        cpu=cpu,
    )
    if out is not None:
        _write(found, out)
    if json:
        say_json(found.as_json(), indent=2, ensure_ascii=False)
    else:
        from tailtrim.publishing.report.terminal.prediction_text import lines  # noqa: PLC0415

        say_lines(lines(found))
    for warning in found.warnings:
        warn(warning)


def _write(found: Prediction, out: Path) -> None:
    from tailtrim.publishing.report.figures.drawing import render  # noqa: PLC0415 - the table does without
    from tailtrim.publishing.report.figures.predicted_load import predicted_load  # noqa: PLC0415
    from tailtrim.publishing.report.figures.values import csv  # noqa: PLC0415

    files = {
        "prediction.json": encoding.dumps(found.as_json(), indent=2, ensure_ascii=False).encode()
    }
    figure = predicted_load(found)
    if figure is not None:
        files[f"{figure.key}.svg"] = render(figure, ())["svg"]
        files[f"{figure.key}.csv"] = csv(figure, ())
    write_files.store(out, files)
