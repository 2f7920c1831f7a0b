"""What answers by HTTP: its address and the check of its certificate, as a testbed file says it."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from tailtrim.model_base import Strict


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
    """What is asked by HTTP."""

    url: Address = Field(description="Where it is: http:// or https:// and a host.")
    ca_file: str | None = Field(
        default=None, description="Certificates to trust instead of the host's, as a PEM file."
    )
    check_certificate: bool = Field(
        default=True, description="Whether the certificate is checked where it is https."
    )

    @property
    def _verify(self) -> bool | str:
        """What requests takes."""
        return self.ca_file or True if self.check_certificate else False
