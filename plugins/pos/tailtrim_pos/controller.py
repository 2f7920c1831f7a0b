"""Controller: answers the script and the nodes, by JSON lines on unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from dataclasses import asdict
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, TailtrimError
from tailtrim_pos import tools, verbs
from tailtrim_pos.programs import SOCKET
from tailtrim_pos.tools import Reply, Request

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim_pos.node_registry import Machine
    from tailtrim_pos.session import Session

_LONGEST_LINE = 64 * 1024 * 1024


class Controller:
    """Answers for a session."""

    def __init__(self, folder: Path, session: Session) -> None:
        """Answer nothing yet; ``folder`` is that of the script's socket."""
        self._folder, self._session = folder, session
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> None:
        """Begin to answer the script."""
        await self._listen(self._folder / SOCKET, None)

    async def _listen(self, place: Path, machine: Machine | None) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await self._answer(reader, writer, machine)

        try:
            server = await asyncio.start_unix_server(answer, place, limit=_LONGEST_LINE)
        except OSError as error:
            refused = HostError(f"{place}: no socket: {error}")
            refused.add_note("its path may be too long: TMPDIR names another place")
            raise refused from error
        os.chmod(place, 0o600)  # noqa: PTH101 - pathlib counts as waiting here
        self._servers.append(server)

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        machine: Machine | None,
    ) -> None:
        """Answer one program; it may go away before."""
        try:
            request = Request(**json.loads(await reader.readline()))
            request.pid = _peer(writer)
            work = asyncio.ensure_future(self._reply(request, machine))
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if not work.done():
                # A program that is killed while it waits at a barrier has not arrived.
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
                return
            writer.write(json.dumps(asdict(work.result()), default=str).encode() + b"\n")
            await writer.drain()
        finally:
            writer.close()

    async def _reply(self, request: Request, machine: Machine | None) -> Reply:
        try:
            if machine is not None:
                return await tools.answer(machine, request)
            if request.program != "pos":
                return Reply(stderr=f"{request.program}: only on nodes\n", code=2)
            reply = await verbs.answer(self._session, request)
            for one in self._session.machines:
                if not (one.shared / SOCKET).exists():
                    await self._listen(one.shared / SOCKET, one)
        except (TailtrimError, OSError) as error:
            return Reply(stderr=f"{request.program}: {error}\n", code=1)
        return reply

    async def end(self) -> None:
        """Close all sockets."""
        for server in self._servers:
            server.close()


def _peer(writer: asyncio.StreamWriter) -> int:
    """Return the process at the other end, by its number here."""
    link = writer.get_extra_info("socket")
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[0])
