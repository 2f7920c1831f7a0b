"""Nodes on the hosts of a testbed file, and which host each of them is on."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, PlanError
from tailtrim.laboratory.nodes.boot.host import BootRequest, rebooted
from tailtrim.laboratory.nodes.power_control import PowerRecovery
from tailtrim.laboratory.nodes.ssh.address import SshHost
from tailtrim.laboratory.nodes.ssh.session import STALE_S
from tailtrim.tool import Tool
from tailtrim_pos import programs
from tailtrim_pos.provider import Provider
from tailtrim_pos.ssh_node import SshPosNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.laboratory.nodes.meters import Reader
    from tailtrim.laboratory.nodes.ssh.session import SshSession
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.provider import Boot

#: The tools of a node are programs of Python, as those of pos are.
_PYTHON = Tool("python3", "python3")
_LOOK_S = 1.0
_MAP = re.compile(r"([^:=\s]+)(?::([^:=\s]{1,15}))?=([^.=\s]+)(?:\.([^.=\s]+))?")


class Map:
    """Assignment of nodes to hosts, and of their ports to those of the hosts.

    Args:
        given: as users write it, ``NODE=HOST`` and ``NODE:PORT=HOST.PORT``.
        description: of the hosts.

    Raises:
        PlanError: one is not written like that, or names what there is not.

    """

    def __init__(self, given: Sequence[str], description: TestbedDescription) -> None:
        """Read it."""
        self._hosts: dict[str, str] = {}
        self._ports: dict[tuple[str, str], str] = {}
        self._known = description.nodes
        for text in given:
            found = _MAP.fullmatch(text)
            if found is None or (found[2] is None) != (found[4] is None):
                told = "expected NODE=HOST or NODE:PORT=HOST.PORT, such as a:eth1=dut.left"
                raise PlanError(f"map {text!r}: {told}")
            node, port, host, there = found.groups()
            if host not in self._known:
                expected = ", ".join(self._known)
                raise PlanError(f"map {text!r}: unknown host {host!r}, expected one of {expected}")
            if self._hosts.setdefault(node, host) != host:
                raise PlanError(f"map {text!r}: {node} is {self._hosts[node]} already")
            if port is not None:
                if there not in self._known[host].ports:
                    expected = ", ".join(self._known[host].ports)
                    told = f"{host} has no port {there!r}, expected one of {expected}"
                    raise PlanError(f"map {text!r}: {told}")
                self._ports[host, there] = port
        hosts = list(self._hosts.values())
        for host in hosts:
            if hosts.count(host) > 1:
                raise PlanError(f"map: {host} is two nodes, expected one")

    def host(self, name: str) -> str | None:
        """Return the host of a node; ``None`` where there is none."""
        taken = name in self._hosts.values() and name not in self._hosts
        found = self._hosts.get(name, name)
        return found if found in self._known and not taken else None

    def node(self, host: str) -> str:
        """Return the node that a host is."""
        return next((node for node, one in self._hosts.items() if one == host), host)

    def port(self, host: str, port: str) -> str:
        """Return the name that a port of a host has on its node."""
        return self._ports.get((host, port), self._known[host].ports[port].interface)


class TestbedNodes(Provider):
    """Makes nodes on hosts; each host is reserved when it is needed first."""

    __test__ = False  # of pytest

    def __init__(
        self,
        description: TestbedDescription,
        places: Map,
        experiment: str,
        told: Callable[[str], None],
    ) -> None:
        """Connect nothing yet.

        Args:
            description: of the hosts.
            places: which host each node is.
            experiment: the experiment that hosts are reserved for.
            told: is called with what takes long, and what is to be known.

        """
        self._description, self._map, self._told = description, places, told
        self._experiment = experiment
        self._sessions: dict[str, SshSession] = {}
        self._recovery = PowerRecovery()
        #: The boot parameters that hosts were booted with here.
        self._booted: dict[str, str] = {}
        self.testbed = description.model_dump(mode="json")

    def check(self, name: str) -> None:
        """Make sure that a node is a host."""
        if self._map.host(name) is None:
            expected = ", ".join(self._description.nodes)
            told = f"unknown node {name!r}, expected one of the testbed file: {expected}"
            raise PlanError(f"{told} (--map {name}=HOST says which one it is)")

    def _host(self, name: str) -> tuple[str, SshHost]:
        self.check(name)
        host = str(self._map.host(name))
        entry = self._description.nodes[host]
        if not isinstance(entry, SshHost):
            raise PlanError(
                f"nodes.{host}.kind: {entry.kind}, expected ssh: pos needs hosts by SSH"
            )
        return host, entry

    def reserve(self, names: Sequence[str]) -> None:
        """Reserve the hosts of those names that are nodes; where none is, all hosts."""
        found = [name for name in names if self._map.host(name) is not None]
        for name in found or map(self._map.node, self._description.nodes):
            self._session(name)

    def _session(self, name: str) -> SshSession:
        """Return the session with the host of a node: a new one if it was lost."""
        host, entry = self._host(name)
        known = self._sessions.get(host)
        if known is not None and known.lost:
            self._close(host)
            known = None
        if known is None:
            known = self._sessions[host] = entry.reserve(host, self._experiment)
            if known.stale is not None:
                self._told(f"{host}: a stale reservation was taken: {known.stale}")
        return known

    def _close(self, host: str) -> None:
        session = self._sessions.pop(host, None)
        if session is not None:
            session.close()

    def unbootable(self, name: str) -> str | None:
        """Return why a host may not be booted with boot parameters; ``None`` where it may."""
        host, entry = self._host(name)
        why = self._description.forbids(host, "reboot", "bootline")
        if entry.boot is None:
            why.append(f"add nodes.{host}.boot to the testbed file, which says how it is booted")
        return "; ".join(why) or None

    def ignores(self, parameters: Sequence[str]) -> None:
        """Ignore none."""
        del parameters

    async def prepare(self, name: str, wanted: Boot, old: PosNode | None) -> None:
        """Boot the host, if it has other parameters than it should, or is dead."""
        host, entry = self._host(name)
        line, session = " ".join(wanted.parameters), self._sessions.get(host)
        if line != self._booted.get(host, ""):
            kernel = self._session(name).facts.kernel
            if old is not None:
                old.end()
            self._close(host)
            self._told(f"{host}: booting with {line or 'no boot parameters'}")
            await asyncio.to_thread(rebooted, host, entry, BootRequest(kernel, line))
            self._booted[host] = line
        elif session is not None and session.lost:
            if not await asyncio.to_thread(entry.answers, host):
                await asyncio.to_thread(self._recovery.recover, host, entry, self._told)
            await self._reserved_again(name)

    async def _reserved_again(self, name: str) -> None:
        """Wait until the host has taken back what was there, and is free."""
        until_s = time.monotonic() + STALE_S
        while True:
            try:
                self._session(name)
            except HostError:
                if time.monotonic() > until_s:
                    raise
            else:
                return
            await asyncio.sleep(_LOOK_S)

    def boot(
        self, name: str, shared: Path, old: PosNode | None, others: Mapping[str, PosNode | None]
    ) -> SshPosNode:
        """Make a node on its host, with all ports that the testbed file names."""
        if old is not None:
            old.end()
        host, entry = self._host(name)
        session = self._session(name)
        session.require(_PYTHON)
        tools = shared / "there"
        python = str(session.find(_PYTHON))
        programs.write_tools(tools, python, session.agent)
        self.write_repositories(name, others, tools, python)
        ports = [
            f"{port.interface}={self._map.port(host, key)}" for key, port in entry.ports.items()
        ]
        return SshPosNode(name, session, ports, shared, tools)

    def interfaces(self, name: str, allocated: Sequence[str]) -> list[dict[str, str]]:
        """Return the ports of a host, and the ports that they are cabled to."""
        del allocated
        host, entry = self._host(name)
        rows = []
        for key, port in entry.ports.items():
            row = {"port": self._map.port(host, key), "mac": port.mac or ""}
            far = self._description.far((host, key))
            if far is not None:
                row |= {"peer": self._map.node(far[0]), "peer_port": self._map.port(*far)}
            rows.append(row)
        return rows

    def facts(self, name: str) -> Facts:
        """Return the facts of a node's host."""
        return self._session(name).facts

    def meter(self, name: str) -> Reader | None:
        """Open the meter of the host, as the testbed file says it."""
        _, entry = self._host(name)
        if entry.meter is None:
            return None
        return entry.meter.opened(entry.starting(self._session(name)))

    def clock(self, name: str) -> str:
        """Return the host of a node."""
        return self._map.host(name) or name

    def close(self) -> None:
        """Give the hosts up."""
        for host in list(self._sessions):
            self._close(host)
