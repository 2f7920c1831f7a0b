"""Tools on the nodes, as the controller answers them."""

from __future__ import annotations

import asyncio
import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, MissingPackageError, PlanError, RunError
from tailtrim_pos import energy, grammar, naming, variables
from tailtrim_pos.naming import now
from tailtrim_pos.node_registry import Background

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tailtrim.laboratory.nodes.meters import Reader
    from tailtrim_pos.grammar import Call
    from tailtrim_pos.node_registry import Machine

    Tool = Callable[[Machine, "Request", Call], Awaitable["Reply"]]


#: Answer of pos where a node has no meter.
_NO_METER = "400 Bad Request: Node does not provide energy measurements"


@dataclass(slots=True)
class Request:
    """Request of a program: its words, and where it was started."""

    program: str
    words: list[str]
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    #: Files that the program has open and the controller cannot: name and content.
    files: dict[str, Any] = field(default_factory=dict)
    pid: int = 0


@dataclass(slots=True)
class Reply:
    """Answer to a program: its output and exit code; ``data`` is for Python."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0
    data: Any = None


async def answer(machine: Machine, request: Request) -> Reply:
    """Answer a tool on a node."""
    name = request.program
    try:
        if name in grammar.IDLE:
            return Reply(stderr=f"{name}: nothing done: {grammar.IDLE[name]}\n")
        tool = grammar.tool_of(name)
        return await _TOOLS[name](machine, request, grammar.parsed(name, tool, request.words))
    except PlanError as error:
        return Reply(stderr=f"{error}\n", code=2)
    except RunError as error:
        return Reply(stderr=f"{name}: {error}\n", code=1)


async def _get_variable(machine: Machine, _: Request, call: Call) -> Reply:
    allocation, path = machine.allocated(), call.arguments[0]
    if call.has("from-loop"):
        known = machine.run[1] if machine.run else {}
    elif call.has("remote"):
        own = {"hostname": machine.name} | allocation.of(machine.name)
        known = allocation.variables["global"] if call.has("from-global") else own
    else:
        known = machine.cached["global" if call.has("from-global") else "local"]
    try:
        value = variables.look_up(known, path)
    except KeyError:
        return Reply(stderr=f"variable {path} unknown\n", code=1)
    return Reply(f"{variables.printed(value)}\n")


async def _set_variable(machine: Machine, _: Request, call: Call) -> Reply:
    allocation = machine.allocated()
    path, value = call.arguments
    own = allocation.of(machine.name)
    variables.put(allocation.variables["global"] if call.has("as-global") else own, path, value)
    allocation.save()
    return Reply()


async def _sync(machine: Machine, _: Request, call: Call) -> Reply:
    allocation = machine.allocated()
    members = allocation.members(call.options.get("role"), call.arguments)
    run = machine.run[0] if call.has("loop") and machine.run else None
    timeout_s = _seconds(call.options.get("timeout"), "pos_sync")
    tag = (call.options.get("tag", ""), run)
    if machine.catching_up:
        return Reply(stderr="pos_sync: passed before the node was booted again\n")
    await allocation.barriers.arrive(tag, members, machine.name, timeout_s)
    return Reply()


async def _run(machine: Machine, request: Request, call: Call) -> Reply:
    name, *command = call.arguments
    if not command:
        raise PlanError("pos_run: expected NAME -- COMMAND")
    where = request.folder, request.environment
    await _begin(machine, name, command, where, of_run=call.has("loop"))
    return Reply()


async def _begin(
    machine: Machine,
    name: str,
    command: Sequence[str],
    where: tuple[str, Mapping[str, str]],
    *,
    of_run: bool,
) -> None:
    """Start a command in the background.

    Args:
        machine: the node.
        name: its name.
        command: program and arguments.
        where: working directory and environment.
        of_run: whether its files are those of the current run.

    Raises:
        RunError: one of this name runs, or the node has died.

    """
    run = machine.run if of_run else None
    key = (name, run[0] if run else None)
    known = machine.background.get(key)
    if known is not None and known.process.running:
        raise RunError(f"{name}: runs already")
    layout = machine.allocated().layout
    folder = layout.scripts(machine.name)
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"{now()}_{name}{run[2] if run else ''}"
    base.with_name(f"{base.name}.command").write_text(f"{list(command)!r}\n", "utf-8")
    if machine.node is None:
        raise RunError(f"{machine.name}: the node has died")
    outputs = [base.with_name(f"{base.name}.{kind}") for kind in ("stdout", "stderr")]
    for place in (*outputs, base.with_name(f"{base.name}.command")) if run else ():
        machine.left(place)
    with outputs[0].open("wb") as output, outputs[1].open("wb") as errors:
        folder_there, environment = where
        process = await machine.node.start(
            command, output, errors, folder=folder_there, environment=environment
        )
    machine.background[key] = Background(layout, base, process)


def _found(machine: Machine, name: str, *, of_run: bool) -> Background | None:
    """Return the process of a name: first that of the current run, or first the other one."""
    number = machine.run[0] if machine.run else None
    keys = [(name, number), (name, None)]
    for key in keys if of_run else reversed(keys):
        known = machine.background.get(key)
        if known is not None:
            return known
    return None


async def _kill(machine: Machine, _: Request, call: Call) -> Reply:
    process = _found(machine, call.arguments[0], of_run=call.has("loop"))
    if process is None or not process.process.running:
        # Scripts end what may have ended, under `set -e`: pos lets them.
        if process is not None:
            await process.wait()
        return Reply(stderr="WARNING  No running process found\n")
    await process.stop()
    return Reply()


async def _wait(machine: Machine, _: Request, call: Call) -> Reply:
    name = call.arguments[0]
    process = _found(machine, name, of_run=call.has("loop"))
    if process is None:
        return Reply(stderr="WARNING  No running process found\n")
    timeout_s = _seconds(call.options.get("timeout"), "pos_wait")
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        raise RunError(f"{name}: still runs after {timeout_s:g} s") from None
    return Reply()


async def _upload(machine: Machine, request: Request, call: Call) -> Reply:
    if machine.node is None:
        raise RunError("the node has died")
    if call.has("outfile") and len(call.arguments) > 1:
        raise PlanError("pos_upload: --outfile takes one PATH")
    target = machine.allocated().layout.files(machine.name)
    for path in call.arguments:
        node, here = machine.node, request.folder
        if not await asyncio.to_thread(node.has, path, folder=here):
            raise RunError(f"{path}: No such file or directory")
        is_folder = await asyncio.to_thread(node.is_folder, path, folder=here)
        if is_folder and not call.has("recursive"):
            raise RunError(f"{path}: Is a directory (--recursive uploads it)")
        # A folder such as . has its name where it is.
        there = posixpath.normpath(posixpath.join(here, path))
        name = call.options.get("outfile") or posixpath.basename(there)
        if call.has("loop") and machine.run:
            name = naming.of_run(name, machine.run[2])
        place = _below(target, name)
        if place.exists():
            _make_room(machine, place, force=call.has("force"))
        place.parent.mkdir(parents=True, exist_ok=True)
        if call.has("loop"):
            machine.left(place)
        await asyncio.to_thread(node.get, path, place, folder=here)
    return Reply()


def _make_room(machine: Machine, place: Path, *, force: bool) -> None:
    """Move a result away that an upload would replace, if it may."""
    allocation = machine.allocated()
    if machine.catching_up or place.lstat().st_ctime < allocation.began_s:
        aside = allocation.aside(machine.name)
        aside.mkdir(parents=True, exist_ok=True)
        place.rename(aside / place.name)
    elif force:
        _remove(place)
    else:
        raise RunError(f"{place.name}: is in the results already (--force replaces it)")


async def _download(machine: Machine, request: Request, call: Call) -> Reply:
    if machine.node is None:
        raise RunError("the node has died")
    path = call.arguments[0]
    folder = machine.allocated().layout
    places = [_below(top, path) for top in (folder.files(machine.name), folder.folder)]
    place = next((place for place in places if place.exists()), None)
    if place is None:
        raise RunError(f"{path}: not in the results")
    name = call.options.get("outfile") or Path(path).name
    await asyncio.to_thread(machine.node.put, place, str(Path(request.folder) / name))
    return Reply()


async def _run_number(machine: Machine, _: Request, __: Call) -> Reply:
    if machine.run is None:
        raise RunError("this command is not repeated for runs")
    return Reply(f"{machine.run[0]}\n")


async def _energy_start(machine: Machine, _: Request, call: Call) -> Reply:
    if machine.measuring is not None:
        raise RunError(f"energy is measured already, for {machine.measuring.place.name}")
    of_run = call.has("loop") and machine.run is not None
    name = energy.named(call.options.get("filename"))
    if of_run and machine.run:
        name = naming.of_run(name, machine.run[2])
    place = _below(machine.allocated().layout.energy(machine.name), name)
    reader = await asyncio.to_thread(_opened, machine)
    if reader is None:
        return Reply(stderr=f"{_NO_METER}\n", code=1)
    machine.measuring = energy.Measuring(reader, place, of_run=of_run)
    return Reply()


async def _energy_stop(machine: Machine, _: Request, __: Call) -> Reply:
    if machine.measuring is None:
        reader = await asyncio.to_thread(_opened, machine)
        if reader is None:
            return Reply(stderr=f"{_NO_METER}\n", code=1)
        reader.__exit__()
        raise RunError("energy is not measured (pos_energy_start begins)")
    place = machine.measuring.place
    if place.exists():
        _make_room(machine, place, force=True)
    if machine.measuring.of_run:
        machine.left(place)
    measured = await asyncio.to_thread(machine.measured)
    problem = measured.problem if measured is not None else None
    return Reply(stderr=f"WARNING  {problem}\n" if problem else "")


def _seconds(text: str | None, what: str) -> float | None:
    """Return a time in seconds that a script gives.

    Raises:
        PlanError: it is not a number.

    """
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise PlanError(f"{what}: invalid time {text!r}, expected seconds") from error


def _opened(machine: Machine) -> Reader | None:
    try:
        return machine.meter()
    except (HostError, MissingPackageError) as error:
        raise RunError("; ".join([str(error), *getattr(error, "__notes__", ())])) from error


def _below(folder: Path, name: str) -> Path:
    """Return a file of a folder, which a name from a node must not leave."""
    place = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise RunError(f"{name}: leads out of the results")
    if place == folder:
        raise RunError(f"{name or '/'}: is the folder of all results, expected a name within it")
    return place


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        for path in place.iterdir():
            _remove(path)
        place.rmdir()
    else:
        place.unlink()


_TOOLS: dict[str, Tool] = {
    "pos_get_variable": _get_variable,
    "pos_set_variable": _set_variable,
    "pos_sync": _sync,
    "pos_run": _run,
    "pos_kill": _kill,
    "pos_wait": _wait,
    "pos_upload": _upload,
    "pos_download": _download,
    "pos_get_run_number": _run_number,
    "pos_energy_start": _energy_start,
    "pos_energy_stop": _energy_stop,
}
