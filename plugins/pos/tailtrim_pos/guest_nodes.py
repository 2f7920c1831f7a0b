"""Nodes that are virtual machines of this host, with the live images that a folder asks for."""

from __future__ import annotations

import asyncio
import os
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host, namespace, wiring
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.ports import Port, redirect
from tailtrim.laboratory.nodes.vm import image, kernel
from tailtrim.laboratory.nodes.vm.guest import Guest, GuestSettings
from tailtrim.laboratory.nodes.vm.machine import Wired
from tailtrim_pos import programs
from tailtrim_pos.cabling import MTU
from tailtrim_pos.guest_node import GuestNode
from tailtrim_pos.local_nodes import LocalNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.laboratory.nodes.vm.image import Image
    from tailtrim.laboratory.nodes.vm.machine import Machine
    from tailtrim_pos.cabling import Cable, End
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.provider import Boot

_CONSOLE = "console.log"
_PYTHON = "/usr/bin/python3"
#: Of scripts, and of the tools of a node; other needs of scripts go into an image that is given.
_PACKAGES = ("python3",)
#: Emulated CPUs of a busy host boot in minutes.
_BOOT_S, _MEMORY_MIB = 300.0, 1024


def images_of(given: Sequence[str], told: Callable[[str], None]) -> dict[str, Image]:
    """Return the live images of nodes, by names of images or patterns of them.

    Args:
        given: as users write them, ``NAME=KERNEL``: Debian's RELEASE/FLAVOUR, with the programs of
            the same release, or the folder of an image.
        told: is called with what takes long.

    Raises:
        HostError: one is missing or cannot be made.
        OutputError: the cache cannot be written.

    """
    images = {}
    for text in given:
        name, _, what = text.partition("=")
        if kernel.NAME.fullmatch(what):
            recipe = image.Recipe(what, what.partition("/")[0], _PACKAGES)
            images[name] = image.built(recipe, told)
        else:
            live = images[name] = image.opened(Path(what))
            if "python3" not in live.record.get("packages", ()):
                why = "has no python3, expected an image built with --package python3"
                raise HostError(f"{what}: {why}")
    return images


class GuestNodes(LocalNodes):
    """Makes virtual machines on this host, and the cables between them.

    Args:
        images: by names or patterns.
        cables: those that are given; without, there are the usual ones.
        told: is called with what takes long.

    """

    tools = namespace.TOOLS

    def __init__(
        self, images: Mapping[str, Image], cables: Sequence[Cable], told: Callable[[str], None]
    ) -> None:
        """Boot nothing yet."""
        super().__init__(cables)
        self._images, self._told = dict(images), told
        self._fibres: Namespace | None = None
        self._guests: dict[str, Guest] = {}
        self._ports: dict[str, list[tuple[Cable, End]]] = {}

    def ignores(self, parameters: Sequence[str]) -> None:
        """Ignore none: each is booted with its own."""
        del parameters

    async def prepare(self, name: str, wanted: Boot, old: PosNode | None) -> None:
        """Boot the machine."""
        live = self._image(name, wanted.image)
        del old  # It ends with its machine.
        self._end(name)
        ends = [
            (cable, end)
            for cable in self._cables(wanted.allocated)
            for end in (cable.one, cable.other)
            if end.node == name
        ]
        ports = {
            f"d{number}": Wired(f"tap{number}", cable.mac(end))
            for number, (cable, end) in enumerate(ends)
        }
        line = " ".join(wanted.parameters)
        self._told(f"{name}: booting {live.name} with {line or 'no boot parameters'}")
        settings = GuestSettings(
            memory_mib=_MEMORY_MIB, pinned=sorted(os.sched_getaffinity(0)), boot_s=_BOOT_S
        )
        began: list[Machine] = []
        boot = partial(Guest, live, line, settings, wanted.shared / _CONSOLE, role=name)
        try:
            guest = await asyncio.to_thread(boot, ports=ports, began=began.append)
        except asyncio.CancelledError:
            # The thread cannot be interrupted, and boots may take minutes.
            for machine in began:
                machine.kill()
            raise
        self._guests[name], self._ports[name] = guest, ends

    def _image(self, name: str, wanted: str) -> Image:
        plain = wanted.partition("@")[0]
        for pattern, live in self._images.items():
            if fnmatchcase(wanted, pattern) or fnmatchcase(plain, pattern):
                return live
        expected = ", ".join(self._images)
        raise HostError(f"{name}: no live image for {wanted!r}, expected one of {expected}")

    def boot(
        self, name: str, shared: Path, old: PosNode | None, others: Mapping[str, PosNode | None]
    ) -> GuestNode:
        """Make a node of the machine that has booted, and lay its cables to the others."""
        del old
        tools = shared / "there"
        guest, ends = self._guests[name], self._ports[name]
        programs.write_tools(tools, _PYTHON, guest.session.agent, own_kernel=True)
        self.write_repositories(name, others, tools, _PYTHON)
        ports = [f"d{number}={end.port}" for number, (_, end) in enumerate(ends)]
        node = GuestNode(name, guest, ports, MTU, tools)
        self._connect(name)
        return node

    def _connect(self, name: str) -> None:
        """Lay the cables of a machine; those of one that was there before went with it."""
        if self._fibres is None:
            self._fibres = Namespace("cables")
        fibres = self._fibres
        ends = self._ports[name]
        taps = [_tap(cable, end) for cable, end in ends]
        self._guests[name].plug(fibres, taps)
        for (cable, end), tap in zip(ends, taps, strict=True):
            port = Port(fibres, tap, "")
            fibres.run("ip", "link", "set", tap, "mtu", str(MTU))
            wiring.carry(port)
            far = cable.other if end == cable.one else cable.one
            other = Port(fibres, _tap(cable, far), "")
            if fibres.call("ip", "link", "show", other.name).returncode != 0:
                continue
            # Its way to the tap that was there before leads nowhere.
            fibres.call("tc", "qdisc", "del", "dev", other.name, "ingress")
            redirect(port, other)
            redirect(other, port)

    def facts(self, name: str) -> Facts:
        """Return the facts of the machine; before it boots, those of this host."""
        guest = self._guests.get(name)
        return guest.session.facts if guest is not None else local_host.facts()

    def clock(self, name: str) -> str:
        """Return the machine: each has a clock of its own."""
        return name

    def _end(self, name: str) -> None:
        guest = self._guests.pop(name, None)
        if guest is not None:
            guest.__exit__()

    def close(self) -> None:
        """End all machines, also one that did not become a node, and give the cables up."""
        for name in list(self._guests):
            self._end(name)
        if self._fibres is not None:
            self._fibres.__exit__()


def _tap(cable: Cable, end: End) -> str:
    return f"c{cable.number}-{1 if end == cable.one else 2}"
