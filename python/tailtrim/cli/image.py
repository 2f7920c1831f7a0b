"""``tailtrim image``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli.console import doing, say
from tailtrim.laboratory.nodes.vm import image
from tailtrim.laboratory.nodes.vm.kernel import FLAVOURS

EXAMPLES = """\b
Examples:
  tailtrim image build images/rt --kernel trixie/rt
  tailtrim image build images/own --kernel ./bzImage --modules ./lib/modules/6.18.0
  tailtrim image build images/nft --kernel sid/cloud --debian trixie --package nftables
  tailtrim image build images/ips --debian trixie --package suricata   # for containers
"""


class Action(StrEnum):
    """Actions on images."""

    BUILD = "build"


def command(  # noqa: PLR0913 - one parameter an option
    action: Annotated[
        Action, typer.Argument(metavar="build", help="Build an image, or copy it from the cache.")
    ],
    out: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of the image: new, or empty.")
    ],
    *,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="KERNEL",
            help=f"Debian's kernel by RELEASE/FLAVOUR ({', '.join(FLAVOURS)}), or a bzImage."
            " Without one the image is for containers only.",
        ),
    ] = None,
    modules: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Modules of a bzImage: its lib/modules/RELEASE."),
    ] = None,
    debian: Annotated[
        str, typer.Option(metavar="NAME", help="Debian release of the programs.")
    ] = image.RELEASE,
    package: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Debian package of guest or container; may be repeated."),
    ] = None,
) -> None:
    """Build an image of Debian packages, for devices in virtual machines and containers."""
    del action
    packages = tuple(package or ())

    given = str(modules) if modules else None
    built = image.built(image.Recipe(kernel, debian, packages, given), doing)
    made = image.copied(built, out)
    sums = made.record["sha256"]
    say(f"Image:   {made.folder}")
    if kernel is not None:
        say(f"Kernel:  {made.kernel} (sha256 {sums['vmlinuz']})")
    say(f"Root:    Debian {debian}, {len(made.record['packages'])} packages")
    say(f"         (sha256 {sums['root.squashfs']})")
