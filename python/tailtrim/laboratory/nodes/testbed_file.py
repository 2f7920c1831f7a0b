"""Testbed files: nodes, how to reach them, their ports, cables and roles.

::

    nodes:
      gen:
        ssh: {host: gen.example.org, user: root}
        ports:
          out: {interface: enp1s0f0, mac: "02:00:00:00:00:01", cable: stamp.a0}
          back: {interface: enp1s0f1, cable: stamp.b1}
      …
    roles:
      loadgen: {node: gen, send: out, sink: back}
      timestamper: {node: stamp, tap_in: a0, tap_out: b0}
      dut: {node: dut, dut_in: left, dut_out: right}

What may be done to a node beside starting programs is what its ``may`` lists, and nothing else.

The timestamper has both taps, and so one clock. It is inline where the load generator's cables go
to its taps: whatever comes in at ``tap_in`` leaves at the port that is cabled to ``dut_in``, and
from ``tap_out`` at the one cabled to ``sink``. Where the load generator's cables go to the device,
the taps get copies, from optical splitters or the mirrors of a switch.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from tailtrim.laboratory.nodes.node_entry import MAY_NOT, AnyNode, Name
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tailtrim.laboratory.nodes.node_entry import May, PortEntry

#: A port as others name it: node and port.
Place = tuple[str, str]
#: A mistake: where in the file, and what is wrong there.
Mistake = tuple[tuple[str, ...], str]


class LoadgenRole(Strict):
    """The load generator."""

    node: Name = Field(description="Which node.")
    send: Name = Field(description="Its port that sends.")
    sink: Name = Field(description="Its port at which packets arrive again.")


class TimestamperRole(Strict):
    """The timestamper: both taps, one clock; on two nodes, two clocks."""

    node: Name = Field(description="Which node.")
    tap_in: Name = Field(description="Its port with what goes into the device.")
    tap_out: Name = Field(description="Its port with what comes out of the device.")
    tap_out_node: Name | None = Field(
        default=None,
        description="The node of tap_out, where that is another one. Its clock is another one, too:"
        " runs need PTP or NTP that bounds the difference.",
    )


class DutRole(Strict):
    """The device under test."""

    node: Name = Field(description="Which node.")
    dut_in: Name = Field(description="Its port at which packets enter.")
    dut_out: Name = Field(description="Its port at which they leave.")


class Roles(Strict):
    """Roles of nodes; one node may have several."""

    loadgen: LoadgenRole
    timestamper: TimestamperRole
    dut: DutRole

    @property
    def ports(self) -> dict[str, Place]:
        """The ports by what they are for."""
        return {
            "send": (self.loadgen.node, self.loadgen.send),
            "sink": (self.loadgen.node, self.loadgen.sink),
            "tap_in": (self.timestamper.node, self.timestamper.tap_in),
            "tap_out": (
                self.timestamper.tap_out_node or self.timestamper.node,
                self.timestamper.tap_out,
            ),
            "dut_in": (self.dut.node, self.dut.dut_in),
            "dut_out": (self.dut.node, self.dut.dut_out),
        }


#: Corning SMF-28 Ultra, group index 1.4676 at 1310 nm and 1.4682 at 1550 nm: 4.895 to 4.897 ns/m.
NS_PER_M = 4.9
NS_PER_M_IN_VACUUM = 3.3
#: Which role has which ports.
_OF_ROLE = {
    "loadgen": ("send", "sink"),
    "timestamper": ("tap_in", "tap_out"),
    "dut": ("dut_in", "dut_out"),
}
#: The role of the second tap's node, where that is another one.
SECOND_TAP = "timestamper_out"


class Inline(NamedTuple):
    """The ports of an inline timestamper that pass on what its taps receive."""

    to_dut: Place
    to_loadgen: Place


class TestbedDescription(Strict):
    """Nodes, and how they are wired."""

    __test__ = False  # of pytest

    nodes: dict[Name, AnyNode] = Field(description="Nodes by name.")
    roles: Roles
    ns_per_m: float = Field(
        default=NS_PER_M,
        ge=NS_PER_M_IN_VACUUM,
        le=10,
        description="What a metre of cable takes, in ns. The default is that of single-mode fibre.",
    )
    captures: Literal["auto", "fetch", "leave"] = Field(
        default="auto",
        description="fetch: captures are fetched and matched here; leave: they are matched on the"
        " timestamper and stay there; auto: fetched up to 118 MB, which a link of 1 Gbit/s carries"
        " in 1 s.",
    )

    def port(self, place: Place) -> PortEntry:
        """Return a port."""
        node, port = place
        return self.nodes[node].ports[port]

    def forbids(self, node: str, *wanted: May) -> list[str]:
        """Return why something may not be done to a node, and the words to add to its file."""
        allowed = self.nodes[node].may
        return [
            f"node {node} {MAY_NOT[one]}, add {one} to nodes.{node}.may of the testbed file"
            for one in wanted
            if one not in allowed
        ]

    @property
    def cables(self) -> list[tuple[Place, Place]]:
        """Each cable once, by its two ends."""
        found: dict[frozenset[Place], tuple[Place, Place]] = {}
        for one, other in self._ends():
            found.setdefault(frozenset((one, other)), (one, other))
        return list(found.values())

    @property
    def inline(self) -> Inline | None:
        """The ports that pass on what the taps receive; ``None`` where the taps get copies."""
        ports, far = self.roles.ports, self._far()
        if far.get(ports["send"]) != ports["tap_in"]:
            return None
        return Inline(far[ports["dut_in"]], far[ports["sink"]])

    @property
    def roles_of_nodes(self) -> dict[str, str]:
        """The node of each role; of the second tap, too, where that is another one."""
        roles = {role: getattr(self.roles, role).node for role in _OF_ROLE}
        second = self.roles.ports["tap_out"][0]
        return roles if second == roles["timestamper"] else roles | {SECOND_TAP: second}

    def used(self) -> dict[str, list[str]]:
        """Return the names of the ports that each role needs."""
        ports, inline = self.roles.ports, self.inline
        used = {role: [ports[one][1] for one in names] for role, names in _OF_ROLE.items()}
        second = used["timestamper"]
        if SECOND_TAP in self.roles_of_nodes:
            second = used[SECOND_TAP] = [used["timestamper"].pop()]
        if inline is not None:
            used["timestamper"].append(inline.to_dut[1])
            second.append(inline.to_loadgen[1])
        return used

    def interfaces(self, role: str) -> list[str]:
        """Return the interfaces that a role needs on its node."""
        ports = self.nodes[self.roles_of_nodes[role]].ports
        return [ports[name].interface for name in self.used()[role]]

    def far(self, place: Place) -> Place | None:
        """Return the port at the other end of a port's cable."""
        return self._far().get(place)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield what does not fit together."""
        wrong = [*self._unknown_roles(), *self._unknown_cables(), *self._twice()]
        yield from wrong
        if not wrong:
            yield from self._miswired()

    def _ends(self) -> Iterator[tuple[Place, Place]]:
        for node, entry in self.nodes.items():
            for name, port in entry.ports.items():
                if port.cable is not None:
                    far, _, peer = port.cable.partition(".")
                    yield (node, name), (far, peer)

    def _far(self) -> dict[Place, Place]:
        far = {}
        for one, other in self.cables:
            far[one], far[other] = other, one
        return far

    def _unknown_roles(self) -> Iterator[Mistake]:
        ports = self.roles.ports
        for role, names in _OF_ROLE.items():
            unknown: set[str] = set()
            for name in names:
                node, port = ports[name]
                if node not in self.nodes:
                    told = f"unknown node {node!r}, {_expected(self.nodes, node)}"
                    second = node != getattr(self.roles, role).node
                    if node not in unknown:
                        yield ("roles", role, "tap_out_node" if second else "node"), told
                    unknown.add(node)
                    continue
                if port not in self.nodes[node].ports:
                    told = f"{node} has no port {port!r}, {_expected(self.nodes[node].ports, port)}"
                    yield ("roles", role, name), told

    def _unknown_cables(self) -> Iterator[Mistake]:
        for (node, name), (far, peer) in self._ends():
            where = ("nodes", node, "ports", name, "cable")
            if not peer:
                yield where, f"expected NODE.PORT, not {far!r}"
            elif far not in self.nodes:
                yield where, f"unknown node {far!r}, {_expected(self.nodes, far)}"
            elif peer not in self.nodes[far].ports:
                told = _expected(self.nodes[far].ports, peer)
                yield where, f"{far} has no port {peer!r}, {told}"
            elif (node, name) == (far, peer):
                yield where, "goes to the port itself"

    def _twice(self) -> Iterator[Mistake]:
        taken: dict[Place, Place] = {}
        for one, other in self.cables:
            for end, far in ((one, other), (other, one)):
                if taken.setdefault(end, far) != far:
                    told = f"{_told(end)} has two cables, to {_told(taken[end])} and {_told(far)}"
                    yield ("nodes", one[0], "ports", one[1], "cable"), told
        for node, entry in self.nodes.items():
            seen: dict[str, str] = {}
            for name, port in entry.ports.items():
                if seen.setdefault(port.interface, name) != name:
                    told = f"{port.interface} is port {seen[port.interface]} already"
                    yield ("nodes", node, "ports", name, "interface"), told

    def _miswired(self) -> Iterator[Mistake]:
        ports, far = self.roles.ports, self._far()
        named = {place: name for name, place in ports.items()}
        if len(named) < len(ports):
            yield ("roles",), "a port has two roles"
        first = far.get(ports["send"])
        if first == ports["tap_in"]:
            expected = {"tap_out": ports["dut_out"]}
            for name, tap in (("dut_in", "tap_in"), ("sink", "tap_out")):
                end = far.get(ports[name])
                if end is None or end[0] != ports[tap][0] or end in named:
                    told = "expected a cable to one more port of the timestamper, which is inline"
                    yield _of(ports[name]), f"{name} goes {_goes(end)}, {told}"
        elif first == ports["dut_in"]:
            expected = {"sink": ports["dut_out"]}
        else:
            inline, copies = _told(ports["tap_in"]), _told(ports["dut_in"])
            told = f"expected to {inline} (inline) or {copies} (the taps get copies)"
            yield _of(ports["send"]), f"send goes {_goes(first)}, {told}"
            return
        for name, end in expected.items():
            if far.get(ports[name]) != end:
                told = f"{name} goes {_goes(far.get(ports[name]))}, expected to {_told(end)}"
                yield _of(ports[name]), told


def _of(place: Place) -> tuple[str, ...]:
    return ("nodes", place[0], "ports", place[1], "cable")


def _goes(end: Place | None) -> str:
    return "nowhere" if end is None else f"to {_told(end)}"


def _told(place: Place) -> str:
    return ".".join(place)


def _expected(known: Iterable[str], given: str) -> str:
    known = list(known)
    close = get_close_matches(given, known, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"expected one of {', '.join(known)}{meant}"
