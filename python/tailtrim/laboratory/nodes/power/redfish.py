"""Power by Redfish, the HTTP interface of management controllers (DSP0266): switched, and read."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tailtrim.errors import HostError, MissingPackageError
from tailtrim.laboratory.nodes.meters.meter import AskedMeter, Value
from tailtrim.laboratory.nodes.power.access import Password, Web
from tailtrim.laboratory.nodes.power.power import REQUEST_S, BootSource, Power, State

if TYPE_CHECKING:
    from collections.abc import Iterator

#: One for all: a logger keeps what it is given.
_UNHEARD = logging.NullHandler()
#: Time that sushy itself gives a controller for one answer.
_ANSWER_S = 60.0


class RedfishController(Web):
    """A management controller that speaks Redfish: its address, and what asks it."""

    user: str = Field(description="User of the controller; one who may switch, for power.")
    password: Password = Field(description="Where the password is.")
    system: str | None = Field(
        default=None,
        description="Path of the system, such as /redfish/v1/Systems/1. Default: the only one.",
    )

    @property
    def place(self) -> str:
        """The controller, and the system where it has several."""
        return f"redfish {self.url}{self.system or ''}"

    @contextmanager
    def reached(self) -> Iterator[tuple[Any, Any]]:
        """Give the library and the system; what it raises has one kind here.

        Raises:
            HostError: the controller cannot be asked.
            MissingPackageError: the package that asks it is not installed.

        """
        sushy = _library()
        # A problem is told once, as an error.
        logging.getLogger("sushy").addHandler(_UNHEARD)
        try:
            # Basic authentication leaves no session behind on the controller, of which it has few.
            auth = sushy.auth.BasicAuth(self.user, self.password.read())
            root = sushy.Sushy(
                self.url,
                auth=auth,
                verify=self._verify,
                # It is asked again here, until the deadline.
                server_side_retries=1,
                connect_timeout=REQUEST_S,
                read_timeout=_ANSWER_S,
            )
            yield sushy, root.get_system(self.system)
        except sushy.exceptions.AccessError as error:
            refused = HostError(f"{self.place}: user {self.user} was refused, expected one who may")
            refused.add_note("see user and password in the testbed file, and the user's rights")
            raise refused from error
        except (sushy.exceptions.SushyError, OSError) as error:
            raise self._problem(error) from error

    def _problem(self, error: Exception) -> HostError:
        told = HostError(f"{self.place}: {' '.join(str(error).split())}")
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            told.add_note("ca_file names the certificate; check_certificate: false trusts any")
        elif self.system is None and "System count" in str(error):
            told.add_note("system says which one, such as /redfish/v1/Systems/1")
        return told


class Redfish(RedfishController, Power):
    """Power that a management controller switches by Redfish."""

    kind: Literal["redfish"]

    def state(self) -> State:
        """Return what the controller says of the system."""
        with self.reached() as (sushy, system):
            match system.power_state:
                case sushy.PowerState.ON:
                    return State.ON
                case sushy.PowerState.OFF:
                    return State.OFF
                case sushy.PowerState.POWERING_ON | sushy.PowerState.POWERING_OFF:
                    return State.CHANGING
                case other:
                    told = other.value if other else "nothing known"
                    raise HostError(f"{self.place}: PowerState is {told}, expected On or Off")

    def boot_next(self, source: BootSource) -> None:
        """Set the boot source override, once, and read it back."""
        with self.reached() as (sushy, system):
            target = {"pxe": sushy.BootSource.PXE, "disk": sushy.BootSource.HDD}[source]
            once = sushy.BootSourceOverrideEnabled.ONCE
            system.set_system_boot_options(target=target, enabled=once)
            system.refresh(force=True)
            taken = system.boot.target
        if taken is not target:
            told = taken.value if taken else "nothing"
            raise HostError(
                f"{self.place}: BootSourceOverrideTarget is {told}, expected {target.value}"
            )

    def _switch(self, to: State, *, hard: bool) -> None:
        with self.reached() as (sushy, system):
            if to is State.ON:
                kind = sushy.ResetType.ON
            else:
                kind = sushy.ResetType.FORCE_OFF if hard else sushy.ResetType.GRACEFUL_SHUTDOWN
            system.reset_system(kind)


class RedfishMeter(RedfishController, AskedMeter):
    """The power of a chassis: EnvironmentMetrics where there are any, otherwise Power."""

    kind: Literal["redfish"]
    chassis: str | None = Field(
        default=None,
        description="Path of the chassis, such as /redfish/v1/Chassis/1. Default: that of the"
        " system, if it has only one.",
    )

    def measure(self) -> tuple[Value, float]:
        """Ask for the power now."""
        with self.reached() as (sushy, system):
            every = system.chassis
            paths = [one.path for one in every]
            if self.chassis is None and len(every) != 1:
                told = f"the system has {len(every)} chassis, expected one"
                error = HostError(f"{self.place}: {told}")
                error.add_note(f"chassis says which one: {', '.join(paths) or 'none is there'}")
                raise error
            found = [one for one in every if self.chassis in {None, one.path}]
            if not found:
                expected = ", ".join(paths)
                raise HostError(f"{self.place}: no chassis {self.chassis}, expected {expected}")
            return Value(power_w=self._watts(sushy, found[0])), 1.0

    def _watts(self, sushy: Any, chassis: Any) -> float:
        told = None
        metrics = chassis.json.get("EnvironmentMetrics")
        if metrics is not None:
            base = sushy.resources.base.ResourceBase
            body = chassis.clone_resource(base, metrics["@odata.id"]).json
            told = (body.get("PowerWatts") or {}).get("Reading")
        if told is None and chassis.json.get("Power") is not None:
            control = chassis.power.json.get("PowerControl") or [{}]
            told = control[0].get("PowerConsumedWatts")
        if not isinstance(told, int | float):
            what = "PowerWatts of EnvironmentMetrics or PowerConsumedWatts of Power"
            raise HostError(f"{self.place}: {chassis.path} tells no power, expected {what}")
        return float(told)


def _library() -> Any:
    try:
        return import_module("sushy")
    except ModuleNotFoundError as error:
        if error.name != "sushy":
            raise
        missing = MissingPackageError("sushy is not installed, expected it for Redfish")
        missing.add_note("pip install 'tailtrim[redfish]'")
        raise missing from error
