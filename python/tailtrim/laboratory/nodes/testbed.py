"""Interface of testbeds to experiments: nodes by role, their ports, and their wiring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager, ExitStack
    from pathlib import Path

    from tailtrim.laboratory.nodes.cable_delay import Correction
    from tailtrim.laboratory.nodes.host import Facts, ReservedHost
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription

#: Abilities of a testbed that a device may need: XDP programs that this process attaches, and a
#: node between client and reflector.
Ability = Literal["xdp", "between"]
#: The testbed of this machine, as a plan names it.
LOCAL: Literal["local"] = "local"

#: By version of IP: addresses set aside for benchmarks (RFC 2544, RFC 5180).
SOURCE_IP = {4: "198.18.0.1", 6: "2001:2::1"}
DESTINATION_IP = {4: "198.19.0.1", 6: "2001:2:0:1::1"}
SOURCE_PORT, DESTINATION_PORT = 10_000, 20_000


class Topology(ABC):
    """Nodes that are wired, for as long as the context lasts."""

    #: Has its nodes.
    _stack: ExitStack

    def __enter__(self) -> Self:
        """Return the topology itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give all nodes up."""
        self._stack.close()

    @property
    @abstractmethod
    def nodes(self) -> dict[str, Node]:
        """Its nodes by role."""

    @property
    @abstractmethod
    def ports(self) -> dict[str, Port]:
        """Its ports by what they are for."""

    def aside(self) -> AbstractContextManager[None]:
        """Keep this process, and what it starts, off the device's CPUs in this context.

        What is told its own CPUs runs on those. By default the device is on another host.
        """
        return nullcontext()


class Forwarding(Topology):
    """Packets pass the device under test, and a tap on each side of it.

    ::

        loadgen ───── timestamper ───── dut ───── timestamper ───── loadgen
           send       tap_in      dut_in dut_out      tap_out       sink

    The device does nothing yet.
    """

    loadgen: Node
    timestamper: Node
    dut: Node
    send: Port
    sink: Port
    dut_in: Port
    dut_out: Port
    tap_in: Port
    tap_out: Port
    #: The CPUs of the device's node on which its kernel handles what comes in at its ports.
    receiving: Sequence[int]
    #: Where captures are matched: fetched, left where they are, or by their size.
    captures: Literal["auto", "fetch", "leave"] = "fetch"
    #: Delay of the cables between taps and device, if that is known.
    correction: Correction | None = None

    @property
    def nodes(self) -> dict[str, Node]:
        """Load generator, timestamper and device; the second tap's node, where it is another."""
        nodes = {"loadgen": self.loadgen, "timestamper": self.timestamper, "dut": self.dut}
        second = self.tap_out.node
        return nodes if second is self.timestamper else nodes | {"timestamper_out": second}

    @property
    def ports(self) -> dict[str, Port]:
        """The ports of the roles."""
        names = ("send", "dut_in", "dut_out", "sink", "tap_in", "tap_out")
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def storm(self, cpu: int) -> Port:
        """Lay one more fibre whose packets this CPU of the device receives; return its sender.

        Raises:
            HostError: this testbed cannot.

        """

    def takes_redirected(self) -> AbstractContextManager[None]:
        """Make the second tap accept what XDP redirects out of the device, in this context.

        Ports of hardware take it without that.

        Raises:
            HostError: this testbed cannot.

        """
        return nullcontext()

    def stand_off(self) -> None:
        """Make sure that setting up causes no more interrupts on the device's CPUs.

        By default this process is on another host.
        """


class Reflection(Topology):
    """A client asks, a reflector answers; a node may be between them.

    ::

        client ───── reflector
           asks     answers

        client ───── node ───── reflector
           asks   between[0, 1]   answers

    No port has an address yet.
    """

    client: Node
    reflector: Node
    asks: Port
    answers: Port
    between: tuple[Port, Port] | None
    #: Whether client and reflector have the same clock.
    one_clock = True

    @property
    def nodes(self) -> dict[str, Node]:
        """Client and reflector."""
        return {"client": self.client, "reflector": self.reflector}

    @property
    def ports(self) -> dict[str, Port]:
        """Their ports."""
        return {"asks": self.asks, "answers": self.answers}


def kept(host: ReservedHost, interface: str, by: str, *within: str) -> None:
    """Make sure that an interface keeps departures to their time; ``within`` starts the agent.

    Raises:
        HostError: it cannot; says what each means lacks.

    """
    ended = host.call(*within, host.agent, "ports", interface, "--departures", by)
    if ended.returncode != 0:
        told = ended.stderr.strip().removeprefix("error: ")
        raise HostError(f"traffic.departures: {host.role}: {told}")


class Testbed(ABC):
    """A testbed that a plan names.

    It is the experiment's alone for as long as the context lasts. ``notices`` are what users should
    know of its nodes; ``gone`` is why no run is possible any more, once that is so.
    """

    notices: Sequence[str] = ()
    gone: str | None = None

    @property
    def lacks(self) -> Mapping[Ability, str]:
        """Abilities that this testbed lacks, and why."""
        return {}

    def __enter__(self) -> Self:
        """Return the testbed itself.

        Raises:
            HostError: a node cannot be reached, or others have it.

        """
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - one without nodes has nothing to do
        """Give its nodes up."""

    def revive(self, told: Callable[[str], None]) -> str | None:
        """Bring nodes back that have died, where that is allowed: after a run that broke.

        Args:
            told: is called with what is being done.

        Returns:
            What died and how it came back; ``None`` where nothing died, or it is ``gone``.

        """
        del told
        return None

    @abstractmethod
    def facts(self) -> Facts:
        """Return what the host of the device under test is."""

    @abstractmethod
    def host(self) -> ReservedHost:
        """Return the host of the device under test, to see what it has."""

    @abstractmethod
    def require_departures(self, by: str) -> None:
        """Make sure that the load generator's port keeps departures to their time.

        Args:
            by: ``kernel`` or ``hardware``.

        Raises:
            HostError: it cannot; says what each means lacks.

        """

    def audit(self) -> dict[str, Any]:
        """Return what the agent's audit says of the host of the device under test, as it is set up.

        Raises:
            HostError: there is no agent, or it cannot read the host.

        """
        return self.host().audit("--duration", "0")

    @abstractmethod
    def forwarding(self, folder: Path, largest_frame: int = 1_518) -> Forwarding:
        """Wire nodes for packets that pass a device.

        Args:
            folder: for what programs leave.
            largest_frame: bytes of the largest frame that fibres have to carry, with FCS.

        Raises:
            HostError: this testbed cannot.

        """

    @abstractmethod
    def reflection(self, folder: Path, *, between: bool) -> Reflection:
        """Wire nodes for round trips.

        Args:
            folder: for what programs leave.
            between: whether a node is to join client and reflector, instead of a fibre.

        Raises:
            HostError: this testbed cannot.

        """


def testbed_for(wanted: Literal["local"] | TestbedDescription, experiment: str) -> Testbed:
    """Return the testbed of an experiment.

    Args:
        wanted: as a plan has it.
        experiment: what its nodes are reserved for.

    """
    if wanted == LOCAL:
        from tailtrim.laboratory.nodes.namespace_testbed import LocalTestbed  # noqa: PLC0415 - one is needed

        return LocalTestbed()
    from tailtrim.laboratory.nodes.ssh_testbed import HostsTestbed  # noqa: PLC0415 - as above

    return HostsTestbed(wanted, experiment)
