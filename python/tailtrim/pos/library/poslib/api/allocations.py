"""``pos allocations``."""

from ._asking import ask, each, flags, opened


def allocate(node, result_folder=None, duration=None):
    """Allocate nodes; return the ID, the nodes and the result folder."""
    options = flags(result_folder=result_folder, duration=duration)
    return tuple(ask("allocations", "allocate", *each(node), *options))


def add(allocation, node, duration=None, add_to_parent_event=False):
    """Add a node to an allocation."""
    options = flags(duration=duration, add_to_parent_event=add_to_parent_event)
    return ask("allocations", "add", allocation, *each(node), *options)


def free(allocation, force=False, trim=False):
    """Free an allocation, by its ID or one of its nodes."""
    return ask("allocations", "free", allocation, *flags(force=force), *([] if trim else ["-k"]))


def list_all(filter_s=None, json=False):
    """Return all allocations."""
    return ask("allocations", "list", *flags(filter=filter_s, json=json)), None


def show(allocation):
    """Return an allocation."""
    return ask("allocations", "show", allocation), None


def set_variables(
    allocation,
    datafile,
    extension=None,
    as_global=False,
    as_loop=False,
    print_variables=False,
):
    """Set variables that a file has."""
    options = flags(
        extension=extension, as_global=as_global, as_loop=as_loop, print=print_variables
    )
    files = opened(datafile, f"variables.{extension or 'yml'}")
    return ask("allocations", "set_variables", *options, "--", allocation, "-", files=files)


def get_variable(allocation, variable, from_global=False, delimiter="/"):
    """Return a variable."""
    options = flags(from_global=from_global, delimiter=delimiter)
    return ask("allocations", "get_variable", allocation, variable, *options)
