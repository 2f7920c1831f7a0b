"""What a shell script uses of pos and of the node that it runs on."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailtrim.errors import MissingPackageError, PlanError
from tailtrim.pos import grammar
from tailtrim.pos.lacking import REASONS, reason_of
from tailtrim.pos.use import Use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A word that is known only when the script runs.
UNKNOWN = "\0"
_BUILTINS = frozenset(
    re.findall(
        r"\S+",
        """. : [ alias bg bind break builtin caller cd command compgen complete continue
        declare dirs disown echo enable eval exec exit export false fc fg getopts hash
        help history jobs kill let local logout mapfile popd printf pushd pwd read
        readarray readonly return set shift shopt source suspend test times trap true
        type typeset ulimit umask unalias unset wait""",
    )
)
#: What starts the program behind it.
_BEFORE = frozenset({"sudo", "nohup", "exec", "command", "time", "builtin"})
_TEXTS = {"word", "number", "string_content", "raw_string", "extglob_pattern", "regex"}
_SPLIT = {"simple_expansion", "expansion", "command_substitution"}


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        told = f"{name} is not installed, expected it for reading the scripts of a folder"
        missing = MissingPackageError(told)
        missing.add_note("pip install 'tailtrim[pos]', or --no-scan")
        raise missing from error


def uses(path: Path) -> Iterator[Use]:
    """Yield what a script uses, from its first line to its last.

    Raises:
        MissingPackageError: what reads shell scripts is not installed.
        PlanError: the script cannot be read.

    """
    sitter, bash = _module("tree_sitter"), _module("tree_sitter_bash")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from error
    root = sitter.Parser(sitter.Language(bash.language())).parse(text).root_node
    nodes = list(_walk(root))
    known = _constants(nodes)
    functions = {
        _text(node.child_by_field_name("name")) for node in _of(nodes, "function_definition")
    }
    for node in nodes:
        if node.type == "command":
            words, counted = _words(node, known)
            yield _use(node.start_point[0] + 1, words, functions, counted=counted)
        elif node.type == "file_redirect":
            target = _literal(node.children[-1], known)
            reason = reason_of(target) if ">" in _text(node) else None
            if reason:
                yield Use(node.start_point[0] + 1, [f"{target}: {reason}"])


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _of(nodes: list[Any], kind: str) -> list[Any]:
    return [node for node in nodes if node.type == kind]


def _text(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace")) if node is not None else ""


def _constants(nodes: list[Any]) -> dict[str, str]:
    """Return the variables that have one value in the whole script, and which."""
    values: dict[str, list[str]] = {}
    for node in _of(nodes, "variable_assignment"):
        value = node.child_by_field_name("value")
        given = "" if value is None else _literal(value, {})
        values.setdefault(_text(node.child_by_field_name("name")), []).append(given)
    for node in _of(nodes, "for_statement"):
        values.setdefault(_text(node.child_by_field_name("variable")), []).append(UNKNOWN)
    read = {_text(word) for node in _of(nodes, "command") for word in node.children[1:]}
    return {
        name: given[0]
        for name, given in values.items()
        if len(given) == 1 and UNKNOWN not in given[0] and name not in read
    }


def _words(node: Any, known: dict[str, str]) -> tuple[list[str], bool]:
    """Return the words of a command, and whether their number is known."""
    wanted = [child for child in node.children if "redirect" not in child.type]
    wanted = [child for child in wanted if child.type != "variable_assignment"]
    words = [_literal(child, known) for child in wanted]
    counted = not any(
        (child.type in _SPLIT and UNKNOWN in word) or "[@]" in _text(child) or "$@" in _text(child)
        for child, word in zip(wanted, words, strict=True)
    )
    return words, counted


def _literal(node: Any, known: dict[str, str]) -> str:
    """Return a word as the shell makes it, with :data:`UNKNOWN` for what is not known."""
    if node.type in {"simple_expansion", "expansion"}:
        name = _text(node).strip('${}"')
        return known.get(name, UNKNOWN)
    if node.type == "raw_string":
        return _text(node).strip("'")
    if node.type in _TEXTS:
        return _text(node).replace("\\", "")
    if node.type in {"string", "concatenation", "command_name"}:
        if not node.children:
            return _text(node).strip('"')
        return "".join(_literal(child, known) for child in node.children if child.type != '"')
    return UNKNOWN


def _use(line: int, words: list[str], functions: set[str], *, counted: bool) -> Use:
    """Return what a command uses."""
    use = Use(line)
    while words and words[0] in _BEFORE and len(words) > 1 and not words[1].startswith("-"):
        words = words[1:]
    if not words or UNKNOWN in words[0]:
        return use
    name = words[0]
    try:
        if name == "pos":
            _pos(use, words[1:], counted=counted)
        elif name.startswith("pos_") and name not in functions:
            call = grammar.parsed(name, grammar.tool_of(name), words[1:], counted=counted)
            _started(use, name, call, functions)
        elif name not in functions:
            _program(use, name, words[1:])
    except PlanError as error:
        use.problems.append(str(error))
    return use


def _pos(use: Use, words: list[str], *, counted: bool) -> None:
    if any(UNKNOWN in word for word in words[:2]):
        return
    if not words or words[0].startswith("-"):
        raise PlanError(f"pos {' '.join(words)}: expected a group such as allocations")
    verb = grammar.verb_of(words)
    call = grammar.parsed(f"pos {' '.join(verb)}", grammar.VERBS[verb], words[2:], counted=counted)
    last = call.arguments[-1] if call.arguments else UNKNOWN
    if verb in {("nodes", "bootparameter"), ("nodes", "bootparameters")}:
        node = call.arguments[0] if call.arguments else UNKNOWN
        use.boots = node if UNKNOWN not in node else ""
    if verb == ("nodes", "image") and UNKNOWN not in last:
        use.image = last
    if verb in {("allocations", "set_variables"), ("allocations", "variables")}:
        use.variables = last if UNKNOWN not in last else None
        use.loop = call.has("as-loop")
    infile = call.options.get("infile", UNKNOWN)
    if UNKNOWN not in infile:
        use.script = infile
    if verb == ("commands", "launch") and counted and len(call.arguments) > 1:
        _program(use, call.arguments[1], call.arguments[2:])


def _started(use: Use, tool: str, call: grammar.Call, functions: set[str]) -> None:
    """Look at what ``pos_run`` starts."""
    words = call.arguments[1:]
    if tool == "pos_run" and words and words[0] not in functions:
        _program(use, words[0], words[1:])


def _program(use: Use, name: str, words: list[str]) -> None:
    """Look at a program that a script starts."""
    if UNKNOWN in name or name in _BUILTINS or name in grammar.TOOLS or name == "tailtrim-agent":
        return
    for reason in REASONS:
        if reason.applies(name, words):
            use.problems.append(f"{name}: {reason.why}")
            return
    paths = (
        [word for word in words if reason_of(word)] if name in {"tee", "cp", "ln", "rsync"} else []
    )
    if paths:
        use.problems.append(f"{paths[0]}: {reason_of(paths[0])}")
    elif "/" not in name or name.startswith("/"):
        use.programs.append(name)
