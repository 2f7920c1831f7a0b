"""Access to controllers, as a testbed file says it: addresses, certificates and passwords."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tailtrim.errors import HostError
from tailtrim.model_base import Strict

_OTHERS = 0o077


def _without_secret(given: Any) -> Any:
    # Errors tell what was given.
    return re.sub(r"//[^/?#]*@", "//…@", given) if isinstance(given, str) else given


def _is_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address such as https://192.0.2.7")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("expected an address alone; user and password are keys beside it")
    return url.rstrip("/")


# The last one comes first.
Address = Annotated[str, AfterValidator(_is_address), BeforeValidator(_without_secret)]


class Web(Strict):
    """A controller that is asked by HTTP."""

    url: Address = Field(description="Where it is: http:// or https:// and a host.")
    ca_file: str | None = Field(
        default=None, description="Certificates to trust instead of the host's, as a PEM file."
    )
    check_certificate: bool = Field(
        default=True, description="Whether the certificate is checked where it is https."
    )

    @property
    def _verify(self) -> bool | str:
        """The same for requests."""
        return self.ca_file or True if self.check_certificate else False


class Secret(Strict):
    """Where a password is: it is read when it is used, and never kept."""

    environment: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Environment variable that has it.",
    )
    file: str | None = Field(
        default=None,
        description="File whose first line it is, and that only its owner may read.",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.environment is None) is (self.file is None):
            raise ValueError("expected {environment: NAME} or {file: PATH}, not a password")
        return self

    def read(self) -> str:
        """Return the password.

        Raises:
            HostError: it is not there, is empty, or is in a file that others may read.

        """
        if self.environment is not None:
            password = os.environ.get(self.environment, "")
            if not password:
                raise HostError(f"environment variable {self.environment}: expected a password")
            return password
        path = Path(self.file or "").expanduser()
        try:
            with path.open(encoding="utf-8") as lines:
                mode = os.fstat(lines.fileno()).st_mode & 0o777
                password = lines.readline().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else "not text"
            raise HostError(f"{path}: expected a password: {told}") from error
        if mode & _OTHERS:
            refused = HostError(f"{path}: has mode {mode:03o}, expected 600: it has a password")
            refused.add_note(f"chmod 600 {path}")
            raise refused
        if not password:
            raise HostError(f"{path}: expected a password in its first line")
        return password


def _hidden(given: Any) -> Any:
    # A value in its place may be the password: errors, which tell it, must not have it.
    return given if isinstance(given, dict | Secret) else {}


#: A key of a testbed file that says where a password is.
Password = Annotated[Secret, BeforeValidator(_hidden)]
