"""``tailtrim decode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli.analyze import Mask, Stamps
from tailtrim.cli.console import USAGE, Progress, complain
from tailtrim.errors import TailtrimError

EXAMPLES = """\b
Examples:
  tailtrim decode ingress.pcap.zst egress.pcap.zst --out decoded
  tailtrim decode in-*.pcap out-*.pcap --out decoded --mask nat
  tailtrim analyze decoded
"""


def command(  # noqa: PLR0913 - one parameter an option
    captures: Annotated[
        list[str],
        typer.Argument(
            help="Captures: pcap, pcapng or mscap, also .zst or .gz; ingress first, then egress."
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where to put them. What was interrupted is completed."),
    ],
    signature: Annotated[
        str | None,
        typer.Option(metavar="OFFSET:LENGTH,…", help="Bytes that identify a packet, see analyze."),
    ] = None,
    mask: Annotated[
        list[Mask] | None,
        typer.Option(help="What the device rewrites, see analyze. May be given several times."),
    ] = None,
    stamps: Annotated[
        Stamps,
        typer.Option(
            help="header: stamps of the capture file; x552: the last eight bytes of each frame."
        ),
    ] = Stamps.HEADER,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Use what precedes damage instead of failing.")
    ] = False,
    buckets: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Split packets by signature into this many, a power of two up to 256. Default: "
            "so many that each has about 4 million packets of a capture.",
        ),
    ] = None,
) -> None:
    """Turn captures into Parquet, for engines that match what one machine cannot hold."""
    from tailtrim.decode import decode  # noqa: PLC0415 - only this verb needs it

    with Progress("decoding") as progress:
        try:
            decoded = decode(
                captures,
                out,
                signature=signature,
                masks=mask or (),
                x552_trailer=stamps is Stamps.X552,
                salvage=salvage,
                buckets=buckets,
                progress=progress,
            )
        except (TailtrimError, ValueError) as error:
            complain(error)
            raise typer.Exit(USAGE) from error
    for captured in decoded.captures:
        typer.echo(f"{captured.number}  {captured.rows:>15,} packets  {captured.name}")
