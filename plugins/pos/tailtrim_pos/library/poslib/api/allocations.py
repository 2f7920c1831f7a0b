"""``pos allocations``."""

from typing import Any

from ._asking import ask, each, flags, opened


def allocate(node: Any, result_folder: Any = None, duration: Any = None) -> Any:
    """Allocate nodes; return the ID, the nodes and the result folder."""
    options = flags(result_folder=result_folder, duration=duration)
    return tuple(ask("allocations", "allocate", *each(node), *options))


def add(allocation: Any, node: Any, duration: Any = None, add_to_parent_event: Any = False) -> Any:
    """Add a node to an allocation."""
    options = flags(duration=duration, add_to_parent_event=add_to_parent_event)
    return ask("allocations", "add", allocation, *each(node), *options)


def free(allocation: Any, force: Any = False, trim: Any = False) -> Any:
    """Free an allocation, by its ID or one of its nodes."""
    return ask("allocations", "free", allocation, *flags(force=force), *([] if trim else ["-k"]))


def list_all(filter_s: Any = None, json: Any = False) -> Any:
    """Return all allocations."""
    return ask("allocations", "list", *flags(filter=filter_s, json=json)), None


def show(allocation: Any) -> Any:
    """Return an allocation."""
    return ask("allocations", "show", allocation), None


def set_variables(
    allocation: Any,
    datafile: Any,
    extension: Any = None,
    as_global: Any = False,
    as_loop: Any = False,
    print_variables: Any = False,
) -> Any:
    """Set variables that a file has."""
    options = flags(
        extension=extension, as_global=as_global, as_loop=as_loop, print=print_variables
    )
    files = opened(datafile, f"variables.{extension or 'yml'}")
    return ask("allocations", "set_variables", *options, "--", allocation, "-", files=files)


def get_variable(
    allocation: Any, variable: Any, from_global: Any = False, delimiter: Any = "/"
) -> Any:
    """Return a variable."""
    options = flags(from_global=from_global, delimiter=delimiter)
    return ask("allocations", "get_variable", allocation, variable, *options)
