"""Parts of tailtrim that packages can add by entry points, each loaded when it is first needed.

A package adds a part by an entry point in a group, such as this device under test::

    [project.entry-points."tailtrim.devices"]
    vpp = "tailtrim_vpp:Vpp"

Groups: ``tailtrim.devices``, ``tailtrim.nodes``, ``tailtrim.power``, ``tailtrim.meters``: models of
parts of a plan or a testbed file (:mod:`.kinds`); ``tailtrim.commands``: modules with a command of
that name; ``tailtrim.imports``: likewise, of ``tailtrim import NAME``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailtrim.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint


class Registry:
    """The parts of a group by their names: tailtrim's own, then those of other packages.

    Args:
        group: the group of entry points.
        own: tailtrim's own parts, as ``module:name``; no package replaces one.

    """

    def __init__(self, group: str, own: Mapping[str, str]) -> None:
        """Keep the names; nothing is loaded."""
        self.group = group
        self._own = own

    def names(self) -> list[str]:
        """Return all names, in the order in which they are told."""
        return [*self._own, *sorted(_installed(self.group).keys() - self._own)]

    def __contains__(self, name: object) -> bool:
        """Return whether there is a part of this name."""
        return name in self._own or name in _installed(self.group)

    def summary(self, name: str) -> str:
        """Return what the package of a part that is not tailtrim's says of itself, in a line."""
        package = _installed(self.group)[name][0].dist
        return (package.metadata["Summary"] if package else None) or ""

    def load(self, name: str) -> Any:
        """Return a part.

        Raises:
            KeyError: there is none of this name.
            MissingPackageError: its package cannot be loaded, or several packages have the name.

        """
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            return getattr(import_module(module), attribute)
        entry, *others = _installed(self.group)[name]
        package = entry.dist.name if entry.dist else entry.module
        if others:
            more = [other.dist.name if other.dist else other.module for other in others]
            failed = MissingPackageError(
                f"{name} of {self.group}: in several packages, {', '.join([package, *more])}"
            )
            failed.add_note("expected one of them: pip uninstall the others")
            raise failed
        try:
            return entry.load()
        except Exception as error:  # a package of others may raise anything
            failed = MissingPackageError(
                f"{name} of {self.group}: package {package} cannot be loaded: {error!r}"
            )
            failed.add_note(f"mend the package or remove it: pip uninstall {package}")
            raise failed from error


@cache
def _installed(group: str) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - a third of a start without

    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found
