"""Models of one part of a plan or testbed file, chosen by its ``kind``: :class:`Kinds`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError, SchemaValidator, core_schema

from tailtrim.plugins import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetJsonSchemaHandler


class Kinds(Registry):
    """The models of a part of a plan or testbed file, told apart by the value of one key.

    As an annotation of the models' base class it makes pydantic load and apply the one that the
    key names. Errors have the type and place of those of a discriminated union.

    Args:
        group: the group of entry points.
        key: the key, such as ``kind``.
        own: as of :class:`Registry`.
        elsewhere: names of kinds in packages of this project that may not be installed.
        default: the kind of a part that has not the key.

    """

    def __init__(
        self,
        group: str,
        key: str,
        own: Mapping[str, str],
        elsewhere: Mapping[str, str] | None = None,
        *,
        default: str | None = None,
    ) -> None:
        """Keep the names; nothing is loaded."""
        super().__init__(group, own)
        self.key = key
        self.elsewhere = elsewhere or {}
        self._default = default
        self._validators: dict[str, SchemaValidator] = {}

    def models(self) -> dict[str, Any]:
        """Return all models by name; each is loaded."""
        return {name: self.load(name) for name in self.names()}

    def __get_pydantic_core_schema__(self, source: Any, _handler: Any) -> Any:
        """Return how pydantic validates an annotated value: by the model that its key names."""

        def validate(given: Any) -> Any:
            if isinstance(given, source):
                return given
            if self._default is not None and isinstance(given, dict):
                given = {self.key: self._default} | given
            return self._validator(given)(given)

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
