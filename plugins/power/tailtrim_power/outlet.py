"""Outlets that are switched, and metered, by HTTP."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import requests
import requests.auth
import urllib3
from pydantic import Field, model_validator

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters.meter import AskedMeter, Value
from tailtrim.laboratory.nodes.power.access import Password, Web
from tailtrim.laboratory.nodes.power.power import REQUEST_S, Power, State
from tailtrim_power.dialects import DIALECTS, Dialect, Model, Request

_OK, _REFUSED = 200, (401, 403)
#: Of an answer that is not understood, so much is told.
_TOLD_CHARACTERS = 120


class OutletAddress(Web):
    """An outlet that is reached by HTTP: its place, and the requests to it."""

    model: Model = Field(description="What it is, and so what it understands.")
    outlet: int = Field(ge=0, description="Which one, as it counts them: Shelly from 0, others 1.")
    user: str | None = Field(default=None, description="User of the outlet; Shelly gen2: admin.")
    password: Password | None = Field(default=None, description="Where the password is.")

    @model_validator(mode="after")
    def _is_login(self) -> Self:
        if (self.user is None) is not (self.password is None):
            raise ValueError("expected user and password, or neither")
        return self

    @property
    def place(self) -> str:
        """The outlet."""
        return f"{self.model} {self.url} outlet {self.outlet}"

    @property
    def dialect(self) -> Dialect:
        """Dialect of this model."""
        return DIALECTS[self.model]

    def ask(self, request: Request) -> Any:
        """Return the JSON that is answered.

        Raises:
            HostError: the outlet cannot be reached, refuses, or answers something else.
            MissingPackageError: the package that asks it is not installed.

        """
        try:
            answered = self._answer(request)
        except (OSError, ValueError) as error:
            # The text of requests' error contains the query, and Tasmota's contains the password.
            raise self._unreachable(error) from None
        if answered.status_code in _REFUSED:
            refused = HostError(f"{self.place}: refused (HTTP {answered.status_code})")
            refused.add_note("see user and password in the testbed file, and its rights there")
            raise refused
        try:
            if answered.status_code != _OK:
                raise HostError(f"{self.place}: HTTP {answered.status_code}, expected {_OK}")
            return answered.json()
        except ValueError:
            told = repr(answered.text[:_TOLD_CHARACTERS])
            raise HostError(f"{self.place}: expected JSON, not {told}") from None

    def _answer(self, request: Request) -> requests.Response:
        query = dict(request.query)
        auth: requests.auth.AuthBase | None = None
        if self.user is not None and self.password is not None:
            login = (self.user, self.password.read())
            match self.dialect.login:
                case "basic":
                    auth = requests.auth.HTTPBasicAuth(*login)
                case "digest":
                    auth = requests.auth.HTTPDigestAuth(*login)
                case "query":
                    query |= {"user": login[0], "password": login[1]}
        with requests.Session() as session, warnings.catch_warnings():
            # That the certificate is not checked is what the testbed file says.
            warnings.simplefilter("ignore", urllib3.exceptions.HTTPWarning)
            # An outlet is near its node: no proxy is on the way, and it redirects nobody.
            session.trust_env = False
            answered: requests.Response = session.request(
                "GET" if request.body is None else "POST",
                self.url + request.path,
                params=query,
                json=request.body,
                auth=auth,
                timeout=REQUEST_S,
                verify=self._verify,
                allow_redirects=False,
            )
        return answered

    def _unreachable(self, error: Exception) -> HostError:
        if isinstance(error, requests.Timeout):
            return HostError(f"{self.place}: no answer within {REQUEST_S:g} s")
        if isinstance(error, requests.exceptions.SSLError):
            refused = HostError(f"{self.place}: its certificate is not trusted")
            refused.add_note("ca_file names the certificate; check_certificate: false trusts any")
            return refused
        return HostError(f"{self.place}: cannot be reached: {_reason(error)}")


class Outlet(OutletAddress, Power):
    """Power by an outlet: it takes the power away, and nothing else."""

    kind: Literal["outlet"]

    def state(self) -> State:
        """Return whether the outlet is on."""
        answer = self.ask(self.dialect.read(self.outlet))
        try:
            on = self.dialect.is_on(self.outlet, answer)
        except (LookupError, TypeError):
            told = repr(answer)[:_TOLD_CHARACTERS]
            error = HostError(f"{self.place}: expected the state of this outlet, not {told}")
            error.add_note("see url, model and outlet in the testbed file")
            raise error from None
        return State.ON if on else State.OFF

    def _switch(self, to: State, *, hard: bool) -> None:
        if to is State.OFF and not hard:
            error = HostError(f"{self.place}: an outlet cannot shut a system down, expected hard")
            error.add_note("shut the node's system down first, then switch it off hard")
            raise error
        self.ask(self.dialect.switch(self.outlet, on=to is State.ON))


class OutletMeter(OutletAddress, AskedMeter):
    """A metered outlet: all that the node takes, with its power supplies."""

    kind: Literal["outlet"]

    def measure(self) -> tuple[Value, float]:
        """Ask for the active power."""
        answer = self.ask(self.dialect.meter(self.outlet))
        try:
            told = self.dialect.measured(self.outlet, answer)
        except (LookupError, TypeError, ValueError, AttributeError):
            seen = repr(answer)[:_TOLD_CHARACTERS]
            error = HostError(f"{self.place}: expected the power of this outlet, not {seen}")
            error.add_note("see url, model and outlet in the testbed file; not all models measure")
            raise error from None
        value = Value(
            power_w=told.power_w,
            voltage_v=told.voltage_v,
            current_a=told.current_a,
            energy_wh=told.energy_wh,
        )
        return value, told.resolution_w or self.dialect.resolution_w


def _reason(error: BaseException) -> str:
    """Return what the system said first."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return type(error).__name__
