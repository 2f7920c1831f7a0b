"""``pos nodes``."""

from ._asking import ask, each, flags


def list_all(filter_s=None, json=False):
    """Return all nodes."""
    return ask("nodes", "list", *flags(filter=filter_s, json=json)), None


def show(node, limits=None, all=False):  # noqa: A002 - pos calls it so
    """Return what a node is, by its name."""
    return ask("nodes", "show", node, *flags(limit=limits, all=all)), None


def image(node, image, staging=False, user=None):
    """Choose the image of a node."""
    return ask("nodes", "image", node, image, *flags(staging=staging, user=user))


def bootparameters(node, bootparameter, delete=False, raw=None):
    """Choose what the kernel of a node is booted with."""
    options = flags(delete=bool(delete), raw=bool(raw))
    return ask("nodes", "bootparameters", *options, "--", node, *each(bootparameter))


bootparameter = bootparameters


def reset(node, blocking=True, queued=False, access_levels=None):
    """Boot nodes."""
    del access_levels
    options = flags(non_blocking=not blocking, queued=queued)
    return ask("nodes", "reset", *each(node), *options)


start = reset


def bootstrap(node, blocking=True, queued=False, access_levels=None):
    """Let a node know the variables as they are now."""
    del blocking, queued, access_levels
    return ask("nodes", "bootstrap", node)


def copy(node, source, dest=None, blocking=True, recursive=False, timeout=None, queued=False):
    """Copy a file or a folder to a node."""
    options = flags(dest=dest, recursive=recursive, timeout=timeout, queued=queued)
    return ask("nodes", "copy", node, source, *options, *flags(non_blocking=not blocking))
