"""What outlets understand: the documented HTTP interface of each kind.

A dialect says what to ask and where the answer has the state. Answers of metered outlets have the
power in W beside it: what reads that belongs here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Outlets by the names that testbed files have for them.
Model = Literal["netio", "shelly-gen1", "shelly-gen2", "tasmota", "gude"]


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask; with a body it is a POST of JSON."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


class Dialect(ABC):
    """The interface of a kind of outlet; outlets have the numbers that it gives them."""

    #: How it takes user and password.
    login: ClassVar[Literal["basic", "digest", "query"]] = "basic"

    @abstractmethod
    def read(self, outlet: int) -> Request:
        """Return what asks for the state."""

    @abstractmethod
    def switch(self, outlet: int, *, on: bool) -> Request:
        """Return what switches."""

    @abstractmethod
    def is_on(self, outlet: int, answer: Any) -> bool:
        """Return the state in an answer to :meth:`read`.

        Raises:
            LookupError, TypeError: it is not there.

        """


class Netio(Dialect):
    """JSON API of NETIO products (application note AN21): state 1 is on, action 1 switches on."""

    def read(self, outlet: int) -> Request:  # noqa: ARG002 - one answer has all outlets
        """Ask for all."""
        return Request("/netio.json")

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Post an action."""
        return Request("/netio.json", body={"Outputs": [{"ID": outlet, "Action": int(on)}]})

    def is_on(self, outlet: int, answer: Any) -> bool:
        """Find it by its number."""
        states = {output["ID"]: output["State"] for output in answer["Outputs"]}
        return _of({0: False, 1: True}, states[outlet])


class ShellyGen1(Dialect):
    """First generation of Shelly: relays from 0 on."""

    def read(self, outlet: int) -> Request:
        """Ask for the relay."""
        return Request(f"/relay/{outlet}")

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Turn the relay."""
        return Request(f"/relay/{outlet}", {"turn": "on" if on else "off"})

    def is_on(self, outlet: int, answer: Any) -> bool:  # noqa: ARG002 - it has one relay
        """Find the relay's."""
        return _of({False: False, True: True}, answer["ison"])


class ShellyGen2(Dialect):
    """Second and later generations of Shelly (RPC over HTTP): switches from 0 on; user admin."""

    login = "digest"

    def read(self, outlet: int) -> Request:
        """Ask for the switch."""
        return Request("/rpc/Switch.GetStatus", {"id": str(outlet)})

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Set the switch."""
        return Request("/rpc/Switch.Set", {"id": str(outlet), "on": "true" if on else "false"})

    def is_on(self, outlet: int, answer: Any) -> bool:  # noqa: ARG002 - it has one switch
        """Find the switch's."""
        return _of({False: False, True: True}, answer["output"])


class Tasmota(Dialect):
    """Tasmota's commands by web requests: relays from 1 on."""

    login = "query"

    def read(self, outlet: int) -> Request:
        """Give the command without a value."""
        return Request("/cm", {"cmnd": f"Power{outlet}"})

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Give the command with a value."""
        return Request("/cm", {"cmnd": f"Power{outlet} {'On' if on else 'Off'}"})

    def is_on(self, outlet: int, answer: Any) -> bool:
        """Find it by its number, which the only relay of a plug does not have."""
        name = "POWER" if outlet == 1 and "POWER" in answer else f"POWER{outlet}"
        return _of({"OFF": False, "ON": True}, answer[name])


class Gude(Dialect):
    """Gude Expert Power Control (EPC HTTP interface): outlets from 1 on."""

    #: In the answer: the outlets.
    _OUTPUTS: ClassVar = {"components": "1"}

    def read(self, outlet: int) -> Request:  # noqa: ARG002 - one answer has all outlets
        """Ask for all."""
        return Request("/status.json", self._OUTPUTS)

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Give command 1."""
        command = {"cmd": "1", "p": str(outlet), "s": str(int(on))}
        return Request("/status.json", self._OUTPUTS | command)

    def is_on(self, outlet: int, answer: Any) -> bool:
        """Find it by its place."""
        states = dict(enumerate(answer["outputs"], start=1))
        return _of({0: False, 1: True}, states[outlet]["state"])


def _of(known: dict[Any, bool], told: Any) -> bool:
    """Return what a word for a state means; a KeyError where it is not known."""
    return known[told]


DIALECTS: dict[Model, Dialect] = dict(
    zip(get_args(Model), (Netio(), ShellyGen1(), ShellyGen2(), Tasmota(), Gude()), strict=True)
)
