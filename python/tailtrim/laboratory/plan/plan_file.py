"""The file of a plan: where in it something is wrong, in words that say what is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from tailtrim.errors import PlanError
from tailtrim.laboratory.plan import bounded_yaml
from tailtrim.laboratory.plan.fields import kinds_of, kinds_of_values

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from tailtrim.kinds import Kinds

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str, ...]
_MISSING = "is missing"
_UNKNOWN = "unknown key"
#: Mistakes that are told at once.
_MOST_TOLD = 20
#: Characters of an error: values that are shown in it may be long.
_LONGEST = 1_000


class Source:
    """A YAML file, as data and as lines.

    Args:
        path: the file.
        keys: some that it has.
        entries: it is a list of entries with these keys: ``data`` has each by its number, as text.

    Raises:
        PlanError: it cannot be read, is not YAML, or says a thing twice.

    """

    def __init__(
        self,
        path: Path,
        keys: tuple[str, ...] = ("name", "dut", "traffic"),
        *,
        entries: bool = False,
    ) -> None:
        """Read the file."""
        self._path = path
        self._entries = entries
        text = _text(path)
        try:
            root = bounded_yaml.compose(text)
            if root is not None:
                # Before data is made: a merged key may be there once more.
                self._nothing_twice(root, ())
            data = None if root is None else bounded_yaml.data(root)
        except bounded_yaml.TooMuch as error:
            raise PlanError(f"{path}: {_line(error.problem_mark)}: {error.problem}") from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise PlanError(f"{path}: line {line}: {error.reason}, expected YAML") from error
        except yaml.MarkedYAMLError as error:
            where = _line(error.problem_mark or error.context_mark)
            raise PlanError(f"{path}: {where}: {error.problem}, expected YAML") from error
        if entries and isinstance(data, list):
            data = {str(number): entry for number, entry in enumerate(data)}
        elif entries:
            data = None
        if not isinstance(data, dict) or root is None:
            of = "a list of entries with " if entries else ""
            raise PlanError(f"{path}: expected {of}keys such as {', '.join(keys)}")
        self._root = root
        self.data: dict[str, Any] = data

    def fail(self, where: Place, problem: str) -> NoReturn:
        """Say what is wrong with what is at a place."""
        raise PlanError(self._told(where, problem))

    def _told(self, where: Place, problem: str) -> str:
        # The line says which entry of a list it is.
        named = where[1:] if self._entries else where
        place = f"{'.'.join(named)}: " if named else ""
        told = _shortened(f"line {self._line(where)}: {place}{problem}")
        return f"{self._path}: {told}"

    def at(self, where: Place) -> Any:
        """Return what the file says at a place; ``None`` where it says nothing."""
        value: Any = self.data
        for key in where:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def refuse(self, mistakes: Iterable[tuple[Place, str]]) -> None:
        """Tell all mistakes at once, if there are any.

        Raises:
            PlanError: there are.

        """
        found = sorted(mistakes, key=lambda one: self._line(one[0]))
        told = [self._told(*one) for one in found]
        if told:
            raise PlanError(*dict.fromkeys(told[:_MOST_TOLD]))

    def validated(self, model: type[Model], value: Any, within: Place = ()) -> Model:
        """Make a model of data that the file, with its variables filled in, holds.

        Args:
            model: which.
            value: the data.
            within: where in the file it is.

        Raises:
            PlanError: the data does not fit; all that is wrong is told at once.

        """
        try:
            return model.model_validate(value)
        except ValidationError as error:
            found = [self._problem(one, model, within) for one in error.errors()]
            # A key that is misspelt is unknown, and the one that is meant is missing: told once.
            unknown = [place for place, problem in found if problem.startswith(_UNKNOWN)]
            kept = [one for one in found if not (one[1] == _MISSING and _meant(one[0], unknown))]
            try:
                self.refuse(((*within, *place), problem) for place, problem in kept)
            except PlanError as told:
                raise told from error
            raise

    def _problem(  # noqa: C901, PLR0911 - one case a kind of error
        self, first: ErrorDetails, model: type[BaseModel], within: Place
    ) -> tuple[Place, str]:
        """Return the place in the file of an error that pydantic found, and its text."""
        at = _Spot.of(model, tuple(map(str, first["loc"])))
        place = at.place
        problem = first["msg"].removeprefix("Value error, ")
        problem = problem.replace("Input should be ", "expected ")
        match first["type"]:
            case "union_tag_invalid":
                *others, last = map(repr, at.names)
                given = first["input"][at.tag_key]
                expected = f"{', '.join(others)} or {last}" if others else last
                told = f"expected {expected}, not {given!r}"
                told += at.hint(str(given))
                return self._of_variable((*place, at.tag_key), told)
            case "union_tag_not_found":
                return (*place, at.tag_key), _MISSING
            case "model_attributes_type" if at.kinds:
                told = f"{{{at.tag_key}: {at.names[0]}}} or another one"
                return place, f"expected {told}, not {first['input']!r}"
            case "extra_forbidden":
                return place, at.unknown()
            case "string_pattern_mismatch":
                told = f"expected text that {first['ctx']['pattern']} matches"
                return self._of_variable(place, told)
            case "missing" if at.tag:
                return place[:-1], f"{place[-1]}: {at.tag_key} {at.tag} needs one"
            case "missing":
                return place, _MISSING
            case "literal_error":
                known = re.findall("'([^']*)'", problem)
                problem += f", not {first['input']!r}{close(str(first['input']), known)}"
                return self._of_variable(place, problem)
        key, colon, rest = problem.partition(": ")
        inner = (*place, *key.split("."))
        if colon and self.at((*within, *inner)) is not None:
            # A contradiction is reported at the key that does not fit.
            place, problem = inner, rest
        elif not isinstance(first.get("input"), dict):
            problem = f"{problem}, not {first.get('input')!r}"
        return self._of_variable(place, problem)

    def _of_variable(self, place: Place, problem: str) -> tuple[Place, str]:
        """Return the place of the loop variable or factor whose value is wrong, if it is one."""
        said = self.at(place)
        for key in ("loop", "factors"):
            if isinstance(said, str) and said.startswith("$") and self.at((key, said[1:])):
                return (key, said[1:]), f"as {'.'.join(place)}: {problem}"
        return place, problem

    def _line(self, where: Place) -> int:
        node, line = self._root, self._root.start_mark.line
        for key in where:
            if isinstance(node, yaml.SequenceNode) and key.isdecimal():
                node = node.value[int(key)]
                line = node.start_mark.line
                continue
            if not isinstance(node, yaml.MappingNode):
                break
            # Merged entries come first, and later ones have precedence.
            for name, value in reversed(node.value):
                if name.value == key:
                    node, line = value, name.start_mark.line
                    break
            else:
                break
        return line + 1

    def _nothing_twice(self, node: yaml.Node, where: Place) -> None:
        if self._entries and isinstance(node, yaml.SequenceNode):
            for entry in node.value:
                self._nothing_twice(entry, where)
        if not isinstance(node, yaml.MappingNode):
            return
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                # It makes no key, which is told when data is made.
                continue
            key = str(name.value)
            if key in seen:
                line = name.start_mark.line + 1
                told = _shortened(f"line {line}: {'.'.join((*where, key))}")
                raise PlanError(f"{self._path}: {told}: given twice")
            seen.add(key)
            self._nothing_twice(value, (*where, key))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(bounded_yaml.MOST_BYTES + 1)
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from error
    if len(found) > bounded_yaml.MOST_BYTES:
        raise PlanError(f"{path}: more than {bounded_yaml.MOST_BYTES:,} bytes, too long for a plan")
    try:
        # Line ends as a text file has them.
        return found.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: cannot be read: not UTF-8 text") from error


def _shortened(told: str) -> str:
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}…"


def _line(mark: yaml.Mark | None) -> str:
    return "somewhere" if mark is None else f"line {mark.line + 1}"


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where an error of pydantic's is.

    ``place`` is where in the file. Where a part is one of several ``kinds``, pydantic's location
    has a ``tag`` between, the value of ``tag_key``. ``model`` has the place's last key.
    """

    place: Place
    model: type[BaseModel]
    kinds: Kinds | None = None
    tag: str = ""

    @classmethod
    def of(cls, model: type[BaseModel], location: Place) -> _Spot:
        """Find it from a model on."""
        spot, keys = cls((), model), iter(location)
        for key in keys:
            place = (*spot.place, key)
            known = spot.model.model_fields.get(key)
            inner = known.annotation if known else None
            if known and (several := kinds_of(known)):
                tag = next(keys, "")
                found = several.load(tag) if tag in several else spot.model
                spot = cls(place, found, several, tag)
            elif part := _part(inner):
                spot = cls(place, part)
            elif known and (part := _part_by_name(inner)):
                # Its location has the name next, and the tag behind that.
                place = (*place, name) if (name := next(keys, "")) else place
                several = kinds_of_values(inner)
                tag = next(keys, "") if several else ""
                found = several.load(tag) if several and tag in several else part
                spot = cls(place, found, several, tag)
            else:
                spot = replace(spot, place=place)
        return spot

    @property
    def tag_key(self) -> str:
        """The key whose value is the tag."""
        return self.kinds.key if self.kinds else ""

    @property
    def names(self) -> list[str]:
        """The tags that there are."""
        return self.kinds.names() if self.kinds else []

    def hint(self, given: str) -> str:
        """Return which tag may be meant, or which package has it, as the end of a sentence."""
        package = self.kinds.elsewhere.get(given) if self.kinds else None
        return f": pip install {package}" if package else close(given, self.names)

    def unknown(self) -> str:
        """Say which of the kinds have a key that is unknown there, or which keys are known."""
        models = self.kinds.models() if self.kinds else {}
        owners = [tag for tag, kind in models.items() if self.place[-1] in kind.model_fields]
        if owners:
            belongs = f"it belongs to {', '.join(owners)}"
            return f"{self.tag_key} {self.tag} has none, {belongs}"
        known = [one.alias or name for name, one in self.model.model_fields.items()]
        return f"{_UNKNOWN}, expected one of {', '.join(known)}{close(self.place[-1], known)}"


def _part(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation is, or may be."""
    several = () if get_origin(annotation) in {dict, list} else get_args(annotation)
    for kind in (annotation, *several):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _part_by_name(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a dictionary's values."""
    return _part(get_args(annotation)[1]) if get_origin(annotation) is dict else None


def close(given: str, known: Iterable[str]) -> str:
    """Return which of the known words may be meant, as the end of a sentence."""
    found = get_close_matches(given, known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def _meant(missing: Place, unknown: Iterable[Place]) -> bool:
    """Whether one of the unknown keys next to a missing one is similar to it."""
    beside = [place[-1] for place in unknown if place[:-1] == missing[:-1]]
    return bool(get_close_matches(missing[-1], beside))
