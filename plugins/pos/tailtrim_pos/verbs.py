"""Verbs of ``pos``, as the controller answers the script of an experiment."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, PlanError, RunError
from tailtrim_pos import grammar, naming, variables
from tailtrim_pos import layout as names
from tailtrim_pos.jobs import Launch
from tailtrim_pos.naming import now
from tailtrim_pos.tools import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tailtrim_pos.grammar import Call
    from tailtrim_pos.node_registry import Machine
    from tailtrim_pos.session import Session

    Verb = Callable[[Session, Request, Call], Awaitable[Reply]]


async def answer(at: Session, request: Request) -> Reply:
    """Answer the script."""
    try:
        verb = grammar.verb_of(request.words)
        call = grammar.parsed(f"pos {' '.join(verb)}", grammar.VERBS[verb], request.words[2:])
        return await VERBS[verb](at, request, call)
    except PlanError as error:
        return Reply(stderr=f"{error}\n", code=2)
    except (HostError, RunError) as error:
        return Reply(stderr=f"{error}\n", code=1)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, default=str) + "\n"


async def _allocate(at: Session, _: Request, call: Call) -> Reply:
    machines = [at.machines.machine(name) for name in dict.fromkeys(call.arguments)]
    for machine in machines:
        if machine.allocation is not None:
            raise RunError(f"{machine.name}: is in allocation {machine.allocation.number} already")
    allocation = at.allocate(machines)
    folder = allocation.layout.folder
    told = f"Allocation ID: {allocation.number}\nResults in {folder}\n"
    return Reply(told, data=[allocation.number, allocation.nodes, str(folder)])


async def _add(at: Session, _: Request, call: Call) -> Reply:
    allocation = at.allocation(call.arguments[0])
    machines = [at.machines.machine(name) for name in call.arguments[1:]]
    for machine in machines:
        if machine.allocation is not None:
            raise RunError(f"{machine.name}: is in allocation {machine.allocation.number} already")
        machine.allocation = allocation
    allocation.add([machine.name for machine in machines])
    return Reply()


async def _free(at: Session, _: Request, call: Call) -> Reply:
    for name in call.arguments:
        if name.isdigit() and int(name) not in at.allocations:
            raise RunError(f"{name}: Resource is neither allocation nor node")
        allocation = at.known(name)
        if allocation is not None:
            await at.free(allocation)
    return Reply()


async def _allocations(at: Session, _: Request, __: Call) -> Reply:
    described = [allocation.described() for allocation in at.allocations.values()]
    return Reply(_json(described), data=described)


async def _show_allocation(at: Session, _: Request, call: Call) -> Reply:
    described = at.allocation(call.arguments[0]).described()
    return Reply(_json(described), data=described)


async def _set_variables(at: Session, request: Request, call: Call) -> Reply:
    name, path = call.arguments
    if call.has("as-global") and call.has("as-loop"):
        raise PlanError(
            "pos allocations set_variables: --as-global and --as-loop exclude each other"
        )
    allocation = at.allocation(name)
    kind = "global" if call.has("as-global") else "loop" if call.has("as-loop") else "local"
    if kind == "local" and name not in allocation.nodes:
        raise PlanError(f"{name}: local variables are those of a node, expected its name")
    text, source = text_of(request, path)
    as_json = call.options.get("extension", Path(source).suffix.lstrip(".")) == "json"
    given = variables.read(text, source, json_text=as_json)
    allocation.set(name, given, source, kind)
    return Reply(_json(given) if call.has("print") else "")


async def _get_variable(at: Session, _: Request, call: Call) -> Reply:
    name, path = call.arguments
    allocation = at.allocation(name)
    known = allocation.variables["global"] if call.has("from-global") else allocation.of(name)
    try:
        value = variables.look_up(known, path, call.options.get("delimiter", "/"))
    except KeyError:
        return Reply(stderr=f"variable {path} unknown\n", code=1)
    return Reply(f"{variables.printed(value)}\n", data=value)


async def _nodes(at: Session, _: Request, call: Call) -> Reply:
    rows = [
        {
            "name": one.name,
            "type": "host",
            "state": one.state,
            "allocation": one.allocation and one.allocation.number,
            "image": one.image,
        }
        for one in at.machines
    ]
    lines = [" ".join(str(value) for value in row.values()) for row in rows]
    told = _json(rows) if call.has("json") else "".join(f"{line}\n" for line in lines)
    return Reply(told, data=rows)


async def _show_node(at: Session, _: Request, call: Call) -> Reply:
    shown = {one.name: at.machines.described(one) for one in at.named(call.arguments[0])}
    return Reply(_json(shown), data=shown)


async def _image(at: Session, _: Request, call: Call) -> Reply:
    for machine in at.named(call.arguments[0]):
        at.set_image(machine, call.arguments[1])
    return Reply()


async def _boot_parameters(at: Session, _: Request, call: Call) -> Reply:
    name, *given = call.arguments
    words = [word for text in given for word in text.split()]
    for machine in at.named(name):
        why = at.machines.provider.unbootable(machine.name)
        if why:
            raise RunError(f"{machine.name}: {why}")
        known = [one for one in machine.boot_parameters if one not in words]
        machine.boot_parameters = known if call.has("delete") else known + words
    return Reply()


async def _reset(at: Session, _: Request, call: Call) -> Reply:
    machines = [machine for name in call.arguments for machine in at.named(name)]
    for machine in machines:
        machine.allocated()
    work = [at.later(machine, partial(at.boot, machine)) for machine in machines]
    if not (call.has("non-blocking") or call.has("queued")):
        await asyncio.gather(*work)
    return Reply()


async def _bootstrap(at: Session, _: Request, call: Call) -> Reply:
    for machine in at.named(call.arguments[0]):
        machine.bootstrap()
    return Reply()


async def _copy(at: Session, request: Request, call: Call) -> Reply:
    name, given = call.arguments
    source = (Path(request.folder) / given).absolute()
    if not source.exists():
        raise RunError(f"{given}: No such file or directory")
    if source.is_dir() and not call.has("recursive"):
        raise RunError(f"{given}: Is a directory (--recursive copies it)")
    target = call.options.get("dest", "/root/")

    async def copy(machine: Machine) -> None:
        await _put(at, machine, source, target)
        machine.done.append(partial(_put, at, machine, source, target))
        folder = machine.allocated().layout.scripts(machine.name)
        folder.mkdir(parents=True, exist_ok=True)
        told = f"copy {source} {target}\n"
        (folder / f"{now()}_copy_{source.name}.command").write_text(told, "utf-8")

    work = [at.later(one, partial(copy, one)) for one in at.named(name)]
    if not (call.has("queued") or call.has("non-blocking")):
        await asyncio.gather(*work)
    return Reply()


async def _put(at: Session, machine: Machine, source: Path, target: str) -> None:
    node = await at.machines.booted(machine)
    await asyncio.to_thread(node.put, source, target)


async def _launch(at: Session, request: Request, call: Call) -> Reply:
    name, *command = call.arguments
    script = None
    called = call.options.get("name") or naming.UNNAMED
    if call.has("infile"):
        script, source = text_of(request, call.options["infile"])
        if command:
            raise PlanError("pos commands launch: --infile and a command exclude each other")
        if not call.has("name") and at.experiment.published is names.Published.NEW:
            called = Path(source).stem or called
    elif not command:
        raise PlanError("pos commands launch: expected --infile FILE or -- COMMAND")
    launch = Launch(called, script, command, call.has("loop"), _only(call))
    jobs = [at.jobs.launch(machine, launch) for machine in at.named(name)]
    told = "".join(f"{job.number}\n" for job in jobs) if call.has("queued") else ""
    data: list[Any] = [job.number for job in jobs]
    if not (call.has("queued") or call.has("non-blocking")):
        await asyncio.wait([job.task for job in jobs if job.task])
        failed = any(job.failed for job in jobs)
        told = "".join(job.printed() for job in jobs) if call.has("verbose") else ""
        errors = "".join(f"{job.launch.name}: {job.last_lines()}\n" for job in jobs if job.failed)
        data = [job.described() | {"stdout": job.printed()} for job in jobs]
        return Reply(told, errors, int(failed), [jobs[0].number, data[0]])
    return Reply(told, data=[jobs[0].number, data[0]])


def _only(call: Call) -> range | None:
    """Return the runs that options such as ``--loop-only`` name; ``None`` for all."""
    try:
        if call.has("loop-only"):
            return range(int(call.options["loop-only"]), int(call.options["loop-only"]) + 1)
        if call.has("loop-from") or call.has("loop-to"):
            last = int(call.options.get("loop-to", variables.MOST_RUNS))
            return range(int(call.options.get("loop-from", 0)), last + 1)
    except ValueError as error:
        raise PlanError(f"pos commands launch: {error}") from error
    return None


async def _await(at: Session, _: Request, call: Call) -> Reply:
    job = at.job(call.arguments[0])
    if job.task:
        await asyncio.wait([job.task])
    full = call.options.get("verbose", "").lower() in {"1", "true", "yes", "t", "y"}
    known = job.described() | {"stdout": job.printed(), "stderr": job.printed("stderr")}
    return Reply(_json(known) if full else job.printed(), "", int(job.failed), known)


async def _abort(at: Session, _: Request, call: Call) -> Reply:
    await at.jobs.abort(at.job(call.arguments[0]))
    return Reply()


async def _show_command(at: Session, _: Request, call: Call) -> Reply:
    described = at.job(call.arguments[0]).described()
    return Reply(_json(described), data=described)


async def _commands(at: Session, _: Request, call: Call) -> Reply:
    wanted = set(call.arguments)
    rows = [job.described() for job in at.jobs.all.values()]
    rows = [row for row in rows if not wanted or row["node"] in wanted]
    lines = [" ".join(str(value) for value in row.values()) for row in rows]
    told = _json(rows) if call.has("json") else "".join(f"{line}\n" for line in lines)
    return Reply(told, data=rows)


async def _roles(at: Session, _: Request, call: Call) -> Reply:
    role, *nodes = call.arguments
    allocation = at.allocation(nodes[0])
    for node in nodes:
        if node not in allocation.nodes:
            raise PlanError(f"{node}: not in allocation {allocation.number}")
    known = allocation.roles.setdefault(role, [])
    known += [node for node in nodes if node not in known]
    allocation.save()
    return Reply()


async def _list_roles(at: Session, _: Request, call: Call) -> Reply:
    found = [at.allocation(name) for name in call.arguments] or list(at.allocations.values())
    roles = {role: nodes for one in found for role, nodes in one.roles.items()}
    return Reply(_json(roles), data=roles)


async def _results(at: Session, _: Request, call: Call) -> Reply:
    folder = at.allocation(call.arguments[0]).layout.folder
    paths = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    return Reply("".join(f"{path}\n" for path in paths), data=paths)


def text_of(request: Request, path: str) -> tuple[str, str]:
    """Return the text of a file that a script names, and its name.

    Raises:
        PlanError: it cannot be read.

    """
    if path in request.files:
        given = request.files[path]
        return str(given["text"]), str(given["name"])
    place = Path(request.folder) / path
    if path == "-":
        place = Path(f"/proc/{request.pid}/fd/0")
    elif path.startswith("/dev/fd/"):
        place = Path(f"/proc/{request.pid}/fd/{Path(path).name}")
    try:
        return place.read_text("utf-8"), path
    except (OSError, UnicodeDecodeError) as error:
        told = getattr(error, "strerror", None) or "is not text"
        raise PlanError(f"{path}: cannot be read: {told}") from error


VERBS: dict[tuple[str, str], Verb] = {
    ("allocations", "allocate"): _allocate,
    ("allocations", "add"): _add,
    ("allocations", "free"): _free,
    ("allocations", "list"): _allocations,
    ("allocations", "show"): _show_allocation,
    ("allocations", "set_variables"): _set_variables,
    ("allocations", "variables"): _set_variables,
    ("allocations", "get_variable"): _get_variable,
    ("nodes", "list"): _nodes,
    ("nodes", "show"): _show_node,
    ("nodes", "image"): _image,
    ("nodes", "bootparameter"): _boot_parameters,
    ("nodes", "bootparameters"): _boot_parameters,
    ("nodes", "reset"): _reset,
    ("nodes", "start"): _reset,
    ("nodes", "bootstrap"): _bootstrap,
    ("nodes", "copy"): _copy,
    ("commands", "launch"): _launch,
    ("commands", "await"): _await,
    ("commands", "abort"): _abort,
    ("commands", "list"): _commands,
    ("commands", "show"): _show_command,
    ("roles", "add"): _roles,
    ("roles", "list"): _list_roles,
    ("results", "list"): _results,
}
