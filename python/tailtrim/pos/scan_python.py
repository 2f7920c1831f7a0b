"""What a Python script uses of the API of pos."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from typing import TYPE_CHECKING

from tailtrim.pos.use import Use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_API = "tailtrim.pos.library.poslib.api"
_GROUPS = ("allocations", "commands", "nodes", "results", "roles")
_ERRORS = "restapi"


def uses(path: Path) -> Iterator[Use]:
    """Yield the uses of the API that have to be looked at."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        yield Use(getattr(error, "lineno", None) or 1, [f"cannot be read: {error}"])
        return
    names = dict(_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = _dotted(node.func, names)
            if words is not None:
                yield _use(node, words)


def _names(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that the script has for parts of the API, each with its place there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                place = alias.name.split(".")
                if place[0] == "poslib":
                    way = place[1:] if alias.asname else []
                    yield alias.asname or "poslib", _inside(way)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "poslib":
            way = (node.module or "").split(".")[1:]
            for alias in node.names:
                yield alias.asname or alias.name, _inside([*way, alias.name])


def _inside(way: list[str]) -> tuple[str, ...]:
    return tuple(way[1:] if way[:1] == ["api"] else way)


def _dotted(node: ast.expr, names: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the place of what is called; ``None`` where it is not of the API."""
    way: list[str] = []
    while isinstance(node, ast.Attribute):
        way.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    start = names[node.id]
    return start + tuple(way[1:] if not start and way[:1] == ["api"] else way)


def _use(node: ast.Call, place: tuple[str, ...]) -> Use:
    use = Use(node.lineno)
    told = f"poslib.api.{'.'.join(place)}"
    if place[:1] == (_ERRORS,):
        return use
    if len(place) != 2 or place[0] not in _GROUPS:  # noqa: PLR2004 - a group and a function
        use.problems.append(f"{told}: not supported, expected one of {', '.join(_GROUPS)}")
        return use
    module = import_module(f"{_API}.{place[0]}")
    function = getattr(module, place[1], None)
    if function is None or place[1].startswith("_"):
        public = inspect.getmembers(module, inspect.isfunction)
        known = ", ".join(name for name, one in public if one.__module__ == module.__name__)
        use.problems.append(f"{told}: not supported, expected one of {known}")
        return use
    allowed = inspect.signature(function).parameters
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in allowed:
            expected = ", ".join(allowed)
            use.problems.append(f"{told}: unknown argument {keyword.arg}, expected {expected}")
    if place == ("nodes", "image"):
        given = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "image")]
        use.image = next(filter(None, map(_text, given)), None)
    if place == ("nodes", "bootparameters"):
        given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "node")]
        use.boots = next(filter(None, map(_text, given)), "")
    return use


def _text(node: ast.expr) -> str | None:
    known = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(ast.literal_eval(node)) if known else None
