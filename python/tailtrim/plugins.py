"""Parts of tailtrim that packages can add by entry points, each loaded when it is first needed.

A package adds a part by an entry point in a group, such as this device under test::

    [project.entry-points."tailtrim.devices"]
    vpp = "tailtrim_vpp:Vpp"

Groups: ``tailtrim.devices``, ``tailtrim.power``, ``tailtrim.meters``: models of what a plan or a
testbed file may say; ``tailtrim.commands``: commands; ``tailtrim.imports``: formats of results.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError, SchemaValidator, core_schema

from tailtrim.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from pydantic import GetJsonSchemaHandler


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


class Kinds(Registry):
    """The models of a part of a plan or testbed file, told apart by the value of one key.

    As an annotation of the models' base class it makes pydantic load and apply the one that the
    key names. Errors have the type and place of those of a discriminated union.

    Args:
        group: the group of entry points.
        key: the key, such as ``kind``.
        own: as of :class:`Registry`.

    """

    def __init__(self, group: str, key: str, own: Mapping[str, str]) -> None:
        """Keep the names; nothing is loaded."""
        super().__init__(group, own)
        self.key = key
        self._validators: dict[str, SchemaValidator] = {}

    def models(self) -> dict[str, Any]:
        """Return all models by name; each is loaded."""
        return {name: self.load(name) for name in self.names()}

    def __get_pydantic_core_schema__(self, source: Any, _handler: Any) -> Any:
        """Return how pydantic validates an annotated value: by the model that its key names."""

        def validate(given: Any) -> Any:
            return given if isinstance(given, source) else self._validator(given)(given)

        return core_schema.no_info_plain_validator_function(validate)

    def __get_pydantic_json_schema__(self, _: Any, handler: GetJsonSchemaHandler) -> Any:
        """Return the JSON Schema of one of all that are installed."""
        schemas = {name: kind.__pydantic_core_schema__ for name, kind in self.models().items()}
        return handler(core_schema.tagged_union_schema(schemas, self.key))

    def _validator(self, given: Any) -> Any:
        if not isinstance(given, dict):
            raise PydanticKnownError("model_attributes_type")
        if self.key not in given:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": repr(self.key)})
        name = given[self.key]
        if not isinstance(name, str) or name not in self:
            told = {
                "discriminator": repr(self.key),
                "tag": str(name),
                "expected_tags": ", ".join(map(repr, self.names())),
            }
            raise PydanticKnownError("union_tag_invalid", told)
        if name not in self._validators:
            # A union of one: the place of an error has the name, as it has in larger ones.
            model: Any = self.load(name).__pydantic_core_schema__
            union = core_schema.tagged_union_schema({name: model}, self.key)
            self._validators[name] = SchemaValidator(union)
        return self._validators[name].validate_python


@cache
def _installed(group: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found
