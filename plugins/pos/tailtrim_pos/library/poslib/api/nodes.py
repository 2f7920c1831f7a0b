"""``pos nodes``."""

from typing import Any

from ._asking import ask, each, flags


def list_all(filter_s: Any = None, json: Any = False) -> Any:
    """Return all nodes."""
    return ask("nodes", "list", *flags(filter=filter_s, json=json)), None


def show(node: Any, limits: Any = None, all: Any = False) -> Any:  # noqa: A002 - pos calls it so
    """Return what a node is, by its name."""
    return ask("nodes", "show", node, *flags(limit=limits, all=all)), None


def image(node: Any, image: Any, staging: Any = False, user: Any = None) -> Any:
    """Choose the image of a node."""
    return ask("nodes", "image", node, image, *flags(staging=staging, user=user))


def bootparameters(node: Any, bootparameter: Any, delete: Any = False, raw: Any = None) -> Any:
    """Choose what the kernel of a node is booted with."""
    options = flags(delete=bool(delete), raw=bool(raw))
    return ask("nodes", "bootparameters", *options, "--", node, *each(bootparameter))


bootparameter = bootparameters


def reset(node: Any, blocking: Any = True, queued: Any = False, access_levels: Any = None) -> Any:
    """Boot nodes."""
    del access_levels
    options = flags(non_blocking=not blocking, queued=queued)
    return ask("nodes", "reset", *each(node), *options)


start = reset


def bootstrap(
    node: Any, blocking: Any = True, queued: Any = False, access_levels: Any = None
) -> Any:
    """Give a node the variables as they are now."""
    del blocking, queued, access_levels
    return ask("nodes", "bootstrap", node)


def copy(
    node: Any,
    source: Any,
    dest: Any = None,
    blocking: Any = True,
    recursive: Any = False,
    timeout: Any = None,
    queued: Any = False,
) -> Any:
    """Copy a file or a folder to a node."""
    options = flags(dest=dest, recursive=recursive, timeout=timeout, queued=queued)
    return ask("nodes", "copy", node, source, *options, *flags(non_blocking=not blocking))
