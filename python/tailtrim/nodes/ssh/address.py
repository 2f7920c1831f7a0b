"""Where a node is, as a testbed file says it."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from tailtrim.model_base import Strict

#: What ssh would not take as an option, or a shell as more than a word.
_PLAIN = r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\[\]-]*"
_JUMP = rf"({_PLAIN}@)?{_PLAIN}"


class Ssh(Strict):
    """How to reach a node by SSH. What is left out is as in the configuration of ssh."""

    host: str = Field(description="Host name, address, or a Host of ~/.ssh/config.")
    port: int | None = Field(default=None, ge=1, le=65_535, description="TCP port.")
    user: str | None = Field(
        default=None, description="User there. One that is not root needs sudo without a password."
    )
    jump: str | None = Field(
        default=None, description="Jump hosts on the way, such as me@gate.example.org,inner."
    )
    key: str | None = Field(
        default=None,
        description="File of the private key, from the folder of the testbed file on. Default:"
        " the keys of the SSH agent and of ~/.ssh.",
    )
    known_hosts: str | None = Field(
        default=None,
        description="File of known host keys, from the folder of the testbed file on. Default:"
        " ~/.ssh/known_hosts.",
    )

    @field_validator("host", "user")
    @classmethod
    def _is_plain(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_PLAIN, value):
            raise ValueError("expected a name of letters, digits, dots, - and _")
        return value

    @field_validator("jump")
    @classmethod
    def _is_list(cls, value: str | None) -> str | None:
        if value is not None and not all(re.fullmatch(_JUMP, hop) for hop in value.split(",")):
            raise ValueError("expected [user@]host[:port],… such as me@gate.example.org")
        return value
