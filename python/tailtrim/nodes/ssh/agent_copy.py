"""The agent on a node: copied there once, by the checksum of what it is."""

from __future__ import annotations

import gzip
import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.nodes import agent

if TYPE_CHECKING:
    from tailtrim.nodes.ssh.connection import Connection

#: So much of the checksum is in the name of its folder.
_SHOWN = 16
_CACHE = "cache=${XDG_CACHE_HOME:-$HOME/.cache}/tailtrim; place=$cache/agent-$1/tailtrim-agent\n"
_LOOK = f"""{_CACHE}
printf '%s\\n' "$(uname -m)" "$place"
sha256sum <"$place" 2>/dev/null
"""
# A copy that was interrupted has another name.
_PUT = f"""{_CACHE}
draft=$place.$$
mkdir -p "${{place%/*}}" && gzip -dc >"$draft" && chmod 755 "$draft" && mv "$draft" "$place"
"""
_OTHERS = f'{_CACHE} ls -d "$cache"/agent-* 2>/dev/null | grep -v "/agent-$1$" | sed "s|.*/||"'
_REMOVE = f'{_CACHE} rm -rf "$cache"'


def place(connection: Connection, *, copy: bool = True) -> str:
    """Return where the agent is on the node: this host's, byte for byte.

    Args:
        connection: to the node.
        copy: copy it when it is not there, or not the same.

    Raises:
        HostError: it is not there, cannot be copied, or does not run there.
        RunError: the connection is lost.

    """
    local = Path(agent.program())
    wanted = _checksum(local)
    looked = connection.call("sh", "-c", _LOOK, "sh", wanted[:_SHOWN])
    machine, where, *found = looked.stdout.splitlines()
    name = connection.name
    if machine != platform.machine():
        raise HostError(
            f"{name}: its machine type is {machine}, and the agent here is for {platform.machine()}"
        )
    if not (found and found[0].split()[0] == wanted):
        if not copy:
            raise HostError(f"{name}: no agent of this version is there")
        packed = gzip.compress(local.read_bytes(), 6)
        ended = connection.send(packed, "sh", "-c", _PUT, "sh", wanted[:_SHOWN])
        if ended.returncode != 0:
            told = ended.stderr.decode(errors="replace").strip()
            raise HostError(f"{name}: the agent cannot be copied to {where}: {told}")
    ended_too = connection.call(where, "--version")
    if ended_too.returncode != 0:
        told = ended_too.stderr.strip() or f"ended with {ended_too.returncode}"
        raise HostError(f"{name}: {where} does not run: {told}")
    return where


def others(connection: Connection) -> list[str]:
    """Return the names of the agents of other versions on the node.

    Raises:
        RunError: the connection is lost.

    """
    wanted = _checksum(Path(agent.program()))
    return connection.call("sh", "-c", _OTHERS, "sh", wanted[:_SHOWN]).stdout.split()


def remove(connection: Connection) -> None:
    """Remove all agents that were copied to the node.

    Raises:
        HostError: they cannot be removed.
        RunError: the connection is lost.

    """
    ended = connection.call("sh", "-c", _REMOVE, "sh", "")
    if ended.returncode != 0:
        raise HostError(f"{connection.name}: {ended.stderr.strip()}")


@cache
def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
