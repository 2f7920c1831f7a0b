"""A management controller for a machine that is not there: PORT USER PASSWORD MANNER."""

from __future__ import annotations

import struct
import sys
from typing import Any

from pyghmi.ipmi import bmc
from pyghmi.ipmi.command import boot_devices


class Controller(bmc.Bmc):  # type: ignore[misc] # pyghmi has no types
    """It has a power switch and boot flags."""

    def __init__(self, port: int, user: str, password: str, manner: str) -> None:
        """Start off."""
        super().__init__({user: password}, port=port, address="127.0.0.1")
        self._manner = manner
        self._power, self._boot = "off", 0

    def get_power_state(self) -> str:
        """Return it."""
        return self._power

    def power_on(self) -> None:
        """Switch it on."""
        self._power = "on"

    def power_off(self) -> None:
        """Switch it off."""
        self._power = "off"

    def power_shutdown(self) -> None:
        """Press the power button."""
        if self._manner != "ignores the button":
            self._power = "off"

    def handle_raw_request(self, request: dict[str, Any], session: Any) -> None:
        """Answer Get Power Reading of DCMI 1.5 (network function 2Ch, command 02h)."""
        if (request["netfn"], request["command"]) != (0x2C, 0x02):
            super().handle_raw_request(request, session)
            return
        if self._manner == "has no DCMI":
            session.send_ipmi_response(code=0xC1)
            return
        # Group extension; now, least, most and average in W; time, period in ms; it measures.
        reading = struct.pack("<BHHHHIIB", 0xDC, 214, 180, 300, 210, 0x6743_0000, 1000, 0x40)
        session.send_ipmi_response(data=list(reading))

    def get_boot_device(self) -> int:
        """Return the boot flags."""
        return self._boot

    def set_boot_device(self, device: str) -> None:
        """Set the boot flags."""
        if self._manner != "forgets the boot source":
            self._boot = boot_devices[device]


if __name__ == "__main__":
    controller = Controller(int(sys.argv[1]), *sys.argv[2:])
    print("ready", flush=True)  # noqa: T201 - its output
    controller.listen()
