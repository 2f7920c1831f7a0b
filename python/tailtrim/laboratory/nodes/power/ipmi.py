"""Power by IPMI 2.0 over the network, with ipmitool: switched, and read by DCMI."""

from __future__ import annotations

import re
import subprocess
from typing import Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.meters.meter import AskedMeter, Value
from tailtrim.laboratory.nodes.power.access import Password
from tailtrim.laboratory.nodes.power.power import BootSource, Power, State
from tailtrim.model_base import Strict
from tailtrim.tool import Tool

IPMITOOL = Tool("ipmitool", "ipmitool")
#: Names that ipmitool has for the sources, and for them in the boot flags (parameter 5).
_SOURCES = {"pxe": ("pxe", "Force PXE"), "disk": ("disk", "Force Boot from default Hard-Drive")}
_WATTS = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")
#: Where nothing answers it gives up by itself after 20 s; a slow controller has three times that.
_COMMAND_S = 60.0


class IpmiController(Strict):
    """A management controller that speaks IPMI 2.0 (lanplus): its address, and what asks it."""

    host: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:%-]*$", description="Host name or address.")
    port: int = Field(default=623, ge=1, le=65_535, description="UDP port.")
    user: str = Field(description="User of the controller; OPERATOR to switch power.")
    password: Password = Field(description="Where the password is.")

    @property
    def place(self) -> str:
        """The controller."""
        return f"ipmi {self.host}:{self.port}"

    def ask(self, *command: str) -> str:
        """Return what ipmitool prints for a command.

        Raises:
            HostError: the controller cannot be asked, or ipmitool is not installed.

        """
        program = local_host.find(IPMITOOL)
        if program is None:
            raise IPMITOOL.missing()
        words = [program, "-I", "lanplus", "-H", self.host, "-p", str(self.port), "-U", self.user]
        try:
            # Of the two variables that -E reads, this one comes first.
            more = {"IPMITOOL_PASSWORD": self.password.read()}
            ended = local_host.run([*words, "-E", *command], within_s=_COMMAND_S, more=more)
        except subprocess.TimeoutExpired as error:
            raise self._failed(command, f"no end after {_COMMAND_S:g} s") from error
        if ended.returncode != 0:
            lines = (ended.stderr or ended.stdout).strip().splitlines()
            raise self._failed(command, lines[-1] if lines else f"ended with {ended.returncode}")
        return ended.stdout

    def _failed(self, command: tuple[str, ...], told: str) -> HostError:
        error = HostError(f"{self.place}: {' '.join(command)}: {told}")
        error.add_note(
            "see host, user and password in the testbed file, and whether the controller allows"
            " IPMI over LAN to this user as ADMINISTRATOR or OPERATOR"
        )
        return error


class Ipmi(IpmiController, Power):
    """Power that a management controller switches by IPMI."""

    kind: Literal["ipmi"]
    firmware: Literal["uefi", "bios"] = Field(
        default="uefi", description="How the node boots, which a boot source has to say."
    )

    def state(self) -> State:
        """Return what the controller says of the chassis."""
        told = self.ask("chassis", "power", "status").strip()
        for state in (State.ON, State.OFF):
            if told.endswith(f"is {state}"):
                return state
        raise HostError(f"{self.place}: told {told!r}, expected Chassis Power is on or off")

    def boot_next(self, source: BootSource) -> None:
        """Set the boot flags for the next boot, and read them back."""
        name, expected = _SOURCES[source]
        options = ("options=efiboot",) if self.firmware == "uefi" else ()
        self.ask("chassis", "bootdev", name, *options)
        told = self.ask("chassis", "bootparam", "get", "5")
        if expected not in told:
            flags = [line for line in told.splitlines() if "Boot Device Selector" in line]
            seen = flags[0].partition(":")[2].strip() if flags else "nothing"
            raise HostError(f"{self.place}: the boot flags say {seen}, expected {expected}")

    def _switch(self, to: State, *, hard: bool) -> None:
        how = "soft" if to is State.OFF and not hard else str(to)
        self.ask("chassis", "power", how)


class IpmiMeter(IpmiController, AskedMeter):
    """The power reading of DCMI: whole watts, of the power supplies."""

    kind: Literal["ipmi"]

    def measure(self) -> tuple[Value, float]:
        """Ask for the power now; what controllers average over is theirs."""
        told = self.ask("dcmi", "power", "reading")
        found = _WATTS.search(told)
        if found is None:
            seen = " ".join(told.split())[:120]
            error = HostError(f"{self.place}: expected the power reading of DCMI, not {seen!r}")
            error.add_note("the controller may have no DCMI: try redfish, or a metered outlet")
            raise error
        return Value(power_w=float(found[1])), 1.0
