"""Grammar of the words behind ``pos`` and behind each tool of the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Form:
    """Options and the number of arguments of a verb.

    ``names`` has each spelling of an option with its name; those in ``valued`` take a value.
    """

    least: int
    most: int | None
    names: Mapping[str, str]
    valued: frozenset[str]


@dataclass(slots=True)
class Call:
    """A parsed call: arguments in order, and options by their names."""

    arguments: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.options


def form(least: int, most: int | None, *options: str) -> Form:
    """Return a form.

    Args:
        least: how many arguments it has at least.
        most: how many at most; ``None`` for any number.
        options: the spellings of each, with ``=`` at the end where it takes a value.

    """
    names: dict[str, str] = {}
    valued = set()
    for option in options:
        spellings = option.rstrip("=").split()
        name = spellings[-1].lstrip("-")
        names |= dict.fromkeys(spellings, name)
        if option.endswith("="):
            valued.add(name)
    return Form(least, most, names, frozenset(valued))


_BLOCKING = ("-b --blocking", "-n --non-blocking")
_BOOT = form(1, None, *_BLOCKING, "--queued")
_SET = form(2, 2, "-e --extension=", "-g --as-global", "-l --as-loop", "-p --print")
_BOOT_LINE = form(1, None, "-d --delete", "-r --raw")
_COPY = ("-d --dest=", "-r --recursive", "-t --timeout=", "--name=", "--queued", *_BLOCKING)
_LAUNCH = (
    *("-i --infile=", *_BLOCKING, "-q --queued", "--name=", "-l --loop", "-v --verbose"),
    *("--quiet", "--no-logging", "--loop-from=", "--loop-to=", "--loop-only="),
)
_LOOP = "-l --loop"

#: The verbs of ``pos``.
VERBS = {
    ("allocations", "allocate"): form(1, None, "-r --result-folder=", "-d --duration="),
    ("allocations", "add"): form(2, None, "-d --duration=", "-a --add-to-parent-event"),
    ("allocations", "free"): form(1, None, "-f --force", "-k --keep", "-s --show"),
    ("allocations", "list"): form(0, 0, "-f --filter=", "-j --json"),
    ("allocations", "show"): form(1, 1, "-j --json"),
    ("allocations", "set_variables"): _SET,
    ("allocations", "variables"): _SET,
    ("allocations", "get_variable"): form(2, 2, "-g --from-global", "-d --delimiter="),
    ("nodes", "list"): form(0, 0, "-f --filter=", "-j --json"),
    ("nodes", "show"): form(1, 1, "-l --limit=", "-a --all", "-j --json"),
    ("nodes", "image"): form(2, 2, "-s --staging", "-u --user="),
    ("nodes", "bootparameter"): _BOOT_LINE,
    ("nodes", "bootparameters"): _BOOT_LINE,
    ("nodes", "reset"): _BOOT,
    ("nodes", "start"): _BOOT,
    ("nodes", "bootstrap"): _BOOT,
    ("nodes", "copy"): form(2, 2, *_COPY),
    ("commands", "launch"): form(1, None, *_LAUNCH),
    ("commands", "await"): form(1, 1, "-v --verbose="),
    ("commands", "abort"): form(1, 1),
    ("commands", "list"): form(0, 1, "-f --filter=", "-a --all-users", "-j --json"),
    ("commands", "show"): form(1, 1, "-j --json"),
    ("roles", "add"): form(2, None),
    ("roles", "list"): form(0, 1, "-j --json"),
    ("results", "list"): form(1, 1),
}

#: Verbs that pos has and nodes here do not, and why.
UNSUPPORTED = {
    ("nodes", "spawn_vm"): "nodes start no virtual machines",
    ("nodes", "stop"): "nodes cannot be switched",
    ("nodes", "cmd"): "nodes have no serial console",
    ("commands", "flush"): "queues of other users do not exist",
    ("results", "publish"): "nothing is sent to other hosts",
    ("calendar", "*"): "this host has no calendar of reservations",
    ("images", "*"): "this host has no images of pos",
    ("hooks", "*"): "hooks are settings of a pos server",
    ("jobs", "*"): "jobs are what a pos server does for all users",
}

#: The tools on the nodes.
TOOLS = {
    "pos_get_variable": form(1, 1, "-g --from-global", "-l --from-loop", "-r --remote"),
    "pos_set_variable": form(2, 2, "-g --as-global"),
    "pos_sync": form(0, None, "-t --tag=", "-l --role=", "--timeout=", "--loop"),
    "pos_run": form(1, None, _LOOP),
    "pos_kill": form(1, 1, _LOOP),
    "pos_wait": form(1, 1, _LOOP, "-t --timeout="),
    "pos_upload": form(
        1, None, _LOOP, "-r --recursive", "-f --force", "-t --timeout=", "-o --outfile="
    ),
    "pos_download": form(1, 1, "-o --outfile=", "-t --timeout="),
    "pos_get_run_number": form(0, 0),
    "pos_energy_start": form(0, 0, "--loop", "--filename="),
    "pos_energy_stop": form(0, 0, "--loop", "--filename="),
    "pos_heartbeat": form(0, None),
    "pos_timesync": form(0, None),
}
#: Tools that do nothing on nodes here, and why.
IDLE = {
    "pos_heartbeat": "the controller sees nodes without it",
    "pos_timesync": "nodes have the clock of their host",
}


def verb_of(words: Sequence[str]) -> tuple[str, str]:
    """Return the verb that words behind ``pos`` begin with.

    Raises:
        PlanError: pos has none of this name, or nodes here lack it.

    """
    group, verb = [*words, "", ""][:2]
    if (group, verb) in VERBS:
        return group, verb
    reason = UNSUPPORTED.get((group, verb)) or UNSUPPORTED.get((group, "*"))
    told = f"pos {group} {verb}".strip()
    if reason is not None:
        raise PlanError(f"{told}: not supported: {reason}")
    known = [name for of_group, name in VERBS if of_group == group]
    expected = known or list(dict.fromkeys(of_group for of_group, _ in VERBS))
    raise PlanError(f"{told}: unknown, expected one of {', '.join(expected)}")


def tool_of(name: str) -> Form:
    """Return the form of a tool of the nodes.

    Raises:
        PlanError: there is none of this name.

    """
    if name not in TOOLS:
        raise PlanError(f"{name}: unknown tool, expected one of {', '.join(TOOLS)}")
    return TOOLS[name]


def parsed(name: str, grammar: Form, words: Sequence[str]) -> Call:
    """Return the call that words make.

    Args:
        name: of the verb or tool, for errors.
        grammar: its form.
        words: those behind it.

    Raises:
        PlanError: an option is unknown or lacks its value, or there are too few or many arguments.

    """
    call = Call()
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            call.arguments += left
            break
        if not word.startswith("-") or word == "-":
            call.arguments.append(word)
            continue
        for option in _options(name, grammar, word, left):
            call.options |= option
    number = len(call.arguments)
    if number < grammar.least or number > (grammar.most or number):
        expected = f"{grammar.least}" if grammar.most == grammar.least else "another number"
        raise PlanError(f"{name}: {number} arguments, expected {expected}")
    return call


def _options(name: str, grammar: Form, word: str, left: list[str]) -> list[dict[str, str]]:
    """Return the options of a word; takes their value from the words that follow."""
    spelling, equals, value = word.partition("=")
    if spelling in grammar.names:
        option = grammar.names[spelling]
        if option not in grammar.valued:
            if equals:
                raise PlanError(f"{name}: {spelling} takes no value")
            return [{option: ""}]
        if not equals:
            if not left:
                raise PlanError(f"{name}: {spelling} lacks its value")
            value = left.pop(0)
        return [{option: value}]
    letters = [f"-{letter}" for letter in word[1:]]
    if not word.startswith("--") and all(one in grammar.names for one in letters):
        found = [_options(name, grammar, one, left) for one in letters]
        return [option for of_letter in found for option in of_letter]
    known = ", ".join(grammar.names) or "none"
    raise PlanError(f"{name}: unknown option {spelling}, expected one of {known}")
