"""A meter that is read by SNMP: an outlet, or a power distribution unit."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from pydantic import Field
from pysnmp.hlapi.v1arch import asyncio as library

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters.meter import AskedMeter, Value
from tailtrim.laboratory.nodes.power.access import Password

#: A lost question is asked again; together they take less than the next reading is away.
_TIMEOUT_S, _RETRIES = 0.4, 1


class SnmpMeter(AskedMeter):
    """An object of an SNMP agent (version 2c) that has the power as a whole number."""

    kind: Literal["snmp"]
    host: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$", description="Host name or address.")
    port: int = Field(default=161, ge=1, le=65_535, description="UDP port.")
    community: Password = Field(description="Where the community is, which is its password.")
    oid: str = Field(
        pattern=r"^\.?[0-9]+(\.[0-9]+)+$",
        description="The object with the active power of the outlet, as its MIB says.",
    )
    unit_w: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="What 1 of its number is in W: 0.1 where it counts tenths.",
    )

    @property
    def place(self) -> str:
        """The object."""
        return f"snmp {self.host}:{self.port} {self.oid}"

    def measure(self) -> tuple[Value, float]:
        """Ask for the object."""
        try:
            problem, status, _, found = asyncio.run(self._asked())
        except (library.error.PySnmpError, OSError) as error:
            raise HostError(f"{self.place}: {error}") from error
        if problem:
            told = HostError(f"{self.place}: {problem}")
            told.add_note("see host, port and community; agents do not answer a wrong community")
            raise told
        if status:
            raise HostError(f"{self.place}: the agent refused: {status.prettyPrint()}")
        try:
            number = int(found[0][1])
        except (TypeError, ValueError, IndexError):
            seen = found[0][1].prettyPrint() if found else "nothing"
            told = HostError(f"{self.place}: expected a whole number, not {seen or 'no object'}")
            told.add_note("see oid: it ends with the number of the outlet, or with 0")
            raise told from None
        return Value(power_w=number * self.unit_w), self.unit_w

    async def _asked(self) -> Any:
        with library.SnmpDispatcher() as dispatcher:
            target = await library.UdpTransportTarget.create(
                (self.host, self.port), timeout=_TIMEOUT_S, retries=_RETRIES
            )
            return await library.get_cmd(
                dispatcher,
                # Metered outlets have no other version.
                library.CommunityData(self.community.read(), mpModel=1),  # noqa: S508
                target,
                (self.oid.lstrip("."), library.Null("")),
                lookupMib=False,
            )
