"""Questions to the controller, in the words of the command line."""

from typing import Any

from .._client import call
from ..restapi import RESTError


def ask(*words: Any, files: Any = None) -> Any:
    """Return what the controller knows.

    Raises:
        RESTError: it refuses.

    """
    answer = call("pos", words, files)
    if answer["code"] and answer["data"] is None:
        raise RESTError(answer["stderr"].strip())
    return answer["data"]


def flags(**given: Any) -> Any:
    """Return the options that were asked for, such as ``as_loop=True``."""
    found = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            found.append(option)
        elif value not in (None, False):
            found += [option, str(value)]
    return found


def each(names: Any) -> Any:
    """Return the names of one node or several."""
    return [names] if isinstance(names, str | int) else list(names)


def opened(file: Any, default: Any) -> Any:
    """Return a file that a script has open, or named, as the controller takes it."""
    if isinstance(file, str):
        with open(file, encoding="utf-8") as named:  # noqa: PTH123 - as scripts do
            return opened(named, default)
    text = file.read()
    if isinstance(text, bytes):
        text = text.decode()
    return {"-": {"text": text, "name": str(getattr(file, "name", default))}}
