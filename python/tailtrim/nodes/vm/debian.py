"""Files of Debian packages of any release: written to an archive, never installed here."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.nodes import host
from tailtrim.nodes.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MMDEBSTRAP = Tool("mmdebstrap", "mmdebstrap")

#: What a guest has no use for.
_LEFT_OUT = ("doc", "info", "locale", "man")


def archive(
    release: str,
    packages: Iterable[str],
    out: Path,
    *,
    variant: str,
    hooks: Sequence[str] = (),
) -> None:
    """Write the files of packages, with all that they depend on, as a tar archive.

    Args:
        release: Debian's, by name, such as ``bookworm``.
        packages: which.
        out: the archive.
        variant: mmdebstrap's: ``extract`` for files only, ``essential`` for a whole system.
        hooks: commands for when all is there; ``$1`` is the root.

    Raises:
        HostError: mmdebstrap is missing, or it cannot.

    """
    if host.find(MMDEBSTRAP) is None:
        raise MMDEBSTRAP.missing()
    packages = list(packages)
    command = ["mmdebstrap", "--quiet", f"--variant={variant}", "--format=tar"]
    command += ['--aptopt=APT::Install-Recommends "false"', *_age_of_lists()]
    # What is half written after a power cut is thrown away anyway.
    command += ["--dpkgopt=force-unsafe-io"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    command += [f"--include={package}" for package in packages]
    command += [f"--customize-hook={hook}" for hook in hooks]
    ended = subprocess.run(
        [*command, release, str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        # The same packages give the same bytes.
        env=host.environment() | {"SOURCE_DATE_EPOCH": "0"},
    )
    if ended.returncode != 0:
        told = [line for line in ended.stderr.splitlines() if line.startswith("E:")]
        why = told[0] if told else (ended.stderr.strip().splitlines() or ["no reason told"])[-1]
        raise HostError(f"mmdebstrap {release} {' '.join(packages)}: {why.removeprefix('E: ')}")


def _age_of_lists() -> list[str]:
    """Return what apt of this host is told of the age of lists: a mirror may be an old copy."""
    dumped = subprocess.run(
        ["apt-config", "dump"], capture_output=True, text=True, check=False, env=host.environment()
    )
    lines = dumped.stdout.splitlines()
    return [f"--aptopt={line}" for line in lines if line.startswith("Acquire::Check-")]
