"""``tailtrim decode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tailtrim.cli import options
from tailtrim.cli.console import Progress, tell, warn
from tailtrim.cli.signals import stop_event

EXAMPLES = """\b
Examples:
  tailtrim decode ingress.pcap.zst egress.pcap.zst --out decoded
  tailtrim decode in-*.pcap out-*.pcap --out decoded --mask nat
  tailtrim decode --follow 'in-*.pcapng' 'out-*.pcapng' --out decoded
  tailtrim analyze decoded
"""


def command(  # noqa: PLR0913 - one parameter an option
    captures: Annotated[
        list[str],
        typer.Argument(
            help="Captures: pcap, pcapng, ERF or mscap, also .zst or .gz; ingress, then egress."
        ),
    ],
    *,
    out: Annotated[
        Path,
        options.out("Directory for the Parquet files. An interrupted decoding is continued."),
    ],
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="OFFSET:LENGTH,…", help="Bytes that identify a packet, as for analyze."
        ),
    ] = None,
    mask: Annotated[
        list[options.Mask] | None,
        typer.Option(
            metavar="FIELDS",
            help="Fields that the device rewrites, as for analyze. Repeatable.",
        ),
    ] = None,
    stamps: options.StampSource = options.Stamps.HEADER,
    salvage: options.Salvage = False,
    buckets: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of buckets of signatures, a power of two up to 512. Default: about 2"
            " million packets of a capture in each bucket; 64 with --follow.",
        ),
    ] = None,
    following: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Decode files of rotating captures as soon as they are complete, until"
            " interrupted. Each capture is a folder or a quoted pattern of file names.",
        ),
    ] = False,
) -> None:
    """Write captures as Parquet: engines match captures larger than one machine's memory."""
    from tailtrim.analysis.decode import decode, follow  # noqa: PLC0415 - only this verb needs it

    decoding: dict[str, Any] = {
        "signature": signature,
        "masks": mask or (),
        "x552_trailer": stamps is options.Stamps.X552,
        "nanoseconds": stamps is options.Stamps.NANOSECONDS,
        "salvage": salvage,
        "buckets": buckets,
    }
    if following:
        with stop_event() as stop:
            decoded = follow(captures, out, stop=stop, tell=_tell_file, **decoding)
    else:
        with Progress("decoding") as progress:
            decoded = decode(captures, out, progress=progress, **decoding)
    for captured in decoded.captures:
        tell(f"{captured.number}  {captured.rows:>15,} packets  {captured.name}")
        if wrapped := captured.encapsulations():
            counts = ", ".join(f"{name} {packets:,}" for name, packets in wrapped.items())
            # Of VLAN tags the signature is free anyway.
            inner = options.Mask.TUNNEL in (mask or ()) or set(wrapped) == {"VLAN"}
            signed = "innermost packets" if inner else "outer packets; inner ones: --mask tunnel"
            tell(f"   encapsulations: {counts} (signed: {signed})")
        for left_out in captured.left_out():
            warn(f"{captured.name}: {left_out}")


def _tell_file(source: str, file: str, packets: int) -> None:
    tell(f"{source}: {file}: {packets:,} packets", err=True)
