"""Programs of other projects, each declared beside the code that starts it.

Errors, ``tailtrim doctor`` and ``packaging/prerequisites.sh`` tell packages from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: It exists where systemd runs: there, a package that brings a service starts it.
_SYSTEMD = Path("/run/systemd/system")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is not tailtrim's.

    Args:
        program: its name on the PATH.
        package: Debian's package with it; ``None`` where not every Debian has one.
        elsewhere: where it comes from otherwise.
        service: whether the package also starts a service.
        places: where it may be besides the PATH.

    """

    program: str
    package: str | None = None
    elsewhere: str = ""
    service: bool = False
    places: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The package to install, or another source."""
        return f"Debian package {self.package}" if self.package else self.elsewhere

    def missing(self) -> HostError:
        """Return the error for a host without it."""
        return HostError(f"{self.program} is not installed, expected {self.source}")


def packages(tools: Iterable[Tool]) -> list[str]:
    """Return the Debian packages of tools, each once, in the order of the tools."""
    return list(dict.fromkeys(tool.package for tool in tools if tool.package))


def installable(tools: Iterable[Tool]) -> tuple[list[str], list[str]]:
    """Return the packages to install for tools, and those that would start a service here."""
    tools = list(tools)
    started = packages(tool for tool in tools if tool.service and _SYSTEMD.is_dir())
    return [package for package in packages(tools) if package not in started], started
