"""Dialects of outlets: the documented HTTP interface of each kind.

A dialect makes requests and finds the state in an answer, and the readings of metered outlets.
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
    """A request to an outlet; with a body it is a POST of JSON."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Readings of a metered outlet: its active power, and others that it has."""

    power_w: float
    voltage_v: float | None = None
    current_a: float | None = None
    #: Energy since its counter was set to 0.
    energy_wh: float | None = None
    #: The smallest step of its power, where the answer says so.
    resolution_w: float | None = None


class Dialect(ABC):
    """The interface of a kind of outlet; outlets have the numbers that it gives them."""

    #: Method by which it takes user and password.
    login: ClassVar[Literal["basic", "digest", "query"]] = "basic"
    #: The smallest step of the power that it tells, in W.
    resolution_w: ClassVar[float] = 1.0

    @abstractmethod
    def read(self, outlet: int) -> Request:
        """Return the request for the state."""

    @abstractmethod
    def switch(self, outlet: int, *, on: bool) -> Request:
        """Return the request that switches an outlet."""

    @abstractmethod
    def is_on(self, outlet: int, answer: Any) -> bool:
        """Return the state in an answer to :meth:`read`.

        Raises:
            LookupError, TypeError: it is not there.

        """

    def meter(self, outlet: int) -> Request:
        """Return the request for the readings: by default they are in the answer with the state."""
        return self.read(outlet)

    @abstractmethod
    def measured(self, outlet: int, answer: Any) -> Measured:
        """Return what an answer to :meth:`meter` says.

        Raises:
            LookupError, TypeError, ValueError: the outlet is not there, or has no meter.

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

    def measured(self, outlet: int, answer: Any) -> Measured:
        """Load in W, Current in mA, Energy in Wh; the voltage is that of all outlets."""
        found = {output["ID"]: output for output in answer["Outputs"]}[outlet]
        return Measured(
            float(found["Load"]),
            _number(answer.get("GlobalMeasure", {}), "Voltage"),
            _number(found, "Current", 1e-3),
            _number(found, "Energy"),
        )


class ShellyGen1(Dialect):
    """First generation of Shelly: relays from 0 on."""

    resolution_w = 0.01

    def read(self, outlet: int) -> Request:
        """Ask for the relay."""
        return Request(f"/relay/{outlet}")

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Turn the relay."""
        return Request(f"/relay/{outlet}", {"turn": "on" if on else "off"})

    def is_on(self, outlet: int, answer: Any) -> bool:  # noqa: ARG002 - it has one relay
        """Find the relay's."""
        return _of({False: False, True: True}, answer["ison"])

    def meter(self, outlet: int) -> Request:
        """Ask for the meter of the relay."""
        return Request(f"/meter/{outlet}")

    def measured(self, outlet: int, answer: Any) -> Measured:  # noqa: ARG002 - it has one meter
        """Power in W, its total in watt minutes."""
        if not answer["is_valid"]:
            raise ValueError("the meter checks itself and says that its value is not valid")
        total = _number(answer, "total", 1 / 60)
        return Measured(float(answer["power"]), energy_wh=total)


class ShellyGen2(Dialect):
    """Second and later generations of Shelly (RPC over HTTP): switches from 0 on; user admin."""

    login = "digest"
    resolution_w = 0.1

    def read(self, outlet: int) -> Request:
        """Ask for the switch."""
        return Request("/rpc/Switch.GetStatus", {"id": str(outlet)})

    def switch(self, outlet: int, *, on: bool) -> Request:
        """Set the switch."""
        return Request("/rpc/Switch.Set", {"id": str(outlet), "on": "true" if on else "false"})

    def is_on(self, outlet: int, answer: Any) -> bool:  # noqa: ARG002 - it has one switch
        """Find the switch's."""
        return _of({False: False, True: True}, answer["output"])

    def measured(self, outlet: int, answer: Any) -> Measured:  # noqa: ARG002 - it has one switch
        """Active power in W, current in A, energy in Wh."""
        energy = _number(answer.get("aenergy", {}), "total")
        volts, amperes = _number(answer, "voltage"), _number(answer, "current")
        return Measured(float(answer["apower"]), volts, amperes, energy)


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

    def meter(self, outlet: int) -> Request:  # noqa: ARG002 - one answer has all channels
        """Ask for the sensors."""
        return Request("/cm", {"cmnd": "Status 10"})

    def measured(self, outlet: int, answer: Any) -> Measured:
        """Power in W, Current in A, Total in kWh; of several channels each is a list."""
        told = answer["StatusSNS"]["ENERGY"]
        several = isinstance(told["Power"], list)
        if outlet < 1 or not (several or outlet == 1):
            raise LookupError(outlet)
        own = {
            name: value[outlet - 1] if isinstance(value, list) else value
            for name, value in told.items()
        }
        # The counter is one for all channels.
        energy = None if several else _number(own, "Total", 1e3)
        volts, amperes = _number(own, "Voltage"), _number(own, "Current")
        return Measured(float(own["Power"]), volts, amperes, energy)


class Gude(Dialect):
    """Gude Expert Power Control (EPC HTTP interface): outlets from 1 on."""

    #: In the answer: the outlets.
    _OUTPUTS: ClassVar = {"components": "1"}
    #: The values of sensors (0x4000) and their descriptions (0x10000), also in groups (0x800000).
    _SENSORS: ClassVar = {"components": str(0x4000 + 0x10000 + 0x800000)}

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

    def meter(self, outlet: int) -> Request:  # noqa: ARG002 - one answer has all sensors
        """Ask for the sensors."""
        return Request("/status.json", self._SENSORS)

    def measured(self, outlet: int, answer: Any) -> Measured:
        """Find the sensor: the numbers count those that measure active power, in their order."""
        meters = []
        for kind, values in zip(answer["sensor_descr"], answer["sensor_values"], strict=True):
            names = [field["name"].replace(" ", "").lower() for field in kind["fields"]]
            if "activepower" in names:
                meters += [(kind["fields"], names, row) for row in values["values"]]
        fields, names, row = dict(enumerate(meters, start=1))[outlet]
        scale = {"kWh": 1e3, "mA": 1e-3, "kW": 1e3}

        def value(name: str) -> float | None:
            if name not in names:
                return None
            place = names.index(name)
            return float(row[place]["v"]) * scale.get(fields[place]["unit"], 1.0)

        power, place = value("activepower"), names.index("activepower")
        step = 10.0 ** -int(fields[place]["decPrecision"]) * scale.get(fields[place]["unit"], 1.0)
        energy = value("absactiveenergy")
        return Measured(power or 0.0, value("voltage"), value("current"), energy, step)


def _number(told: Mapping[str, Any], name: str, scale: float = 1.0) -> float | None:
    """Return a value that not every model tells."""
    return None if told.get(name) is None else float(told[name]) * scale


def _of(known: dict[Any, bool], told: Any) -> bool:
    """Return what a word for a state means; a KeyError where it is not known."""
    return known[told]


DIALECTS: dict[Model, Dialect] = dict(
    zip(get_args(Model), (Netio(), ShellyGen1(), ShellyGen2(), Tasmota(), Gude()), strict=True)
)
