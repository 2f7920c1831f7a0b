"""Hosts that are reached by SSH, as a testbed file says them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.node_entry import NodeEntry
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.nodes.host import Shell
    from tailtrim.laboratory.nodes.ssh.session import SshSession

#: Time for an answer: a host that lives answers sooner.
_ANSWER_S = 15.0
#: While a host boots, one that does not answer is tried again.
_BOOT_ANSWER_S = 10.0
#: A word that ssh does not take as an option, nor a shell as more than a word.
_PLAIN = r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\[\]-]*"
_JUMP = rf"({_PLAIN}@)?{_PLAIN}"


class Ssh(Strict):
    """Address of a node by SSH. The configuration of ssh has the keys that are left out."""

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


class SshHost(NodeEntry):
    """A host that is reached by SSH."""

    kind: Literal["ssh"] = "ssh"
    ssh: Ssh

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Records of experiments from before there were kinds can be gone on with.
        every: dict[str, Any] = handler(self)
        return {"ssh": every.pop("ssh")} | {key: every[key] for key in every if key != "kind"}

    @property
    def address(self) -> str:
        """Its host name or address."""
        return self.ssh.host

    def reserve(self, name: str, experiment: str) -> SshSession:
        """Connect, copy the agent if it is not there, and reserve the host."""
        from tailtrim.laboratory.nodes.ssh.session import SshSession  # noqa: PLC0415 - reading a plan needs none

        return SshSession(name, self.ssh, experiment)

    def answers(self, name: str) -> bool:
        """Whether a connection can be made now."""
        from tailtrim.laboratory.nodes.ssh.connection import Connection  # noqa: PLC0415 - as above

        try:
            Connection(name, self.ssh, ready_s=_ANSWER_S).close()
        except HostError:
            return False
        return True

    def free(self, name: str, *, copies: bool = False) -> None:
        """Remove a stale reservation, and with ``copies`` all agents that were copied there."""
        from tailtrim.laboratory.nodes.ssh import agent_copy  # noqa: PLC0415 - as above
        from tailtrim.laboratory.nodes.ssh.connection import Connection  # noqa: PLC0415 - as above
        from tailtrim.laboratory.nodes.ssh.session import remove_reservation  # noqa: PLC0415 - as above

        with Connection(name, self.ssh) as connection:
            remove_reservation(connection)
            if copies:
                agent_copy.remove(connection)

    @contextmanager
    def shell(self, name: str) -> Iterator[Shell]:
        """Connect to the host."""
        from tailtrim.laboratory.nodes.ssh.connection import Connection  # noqa: PLC0415 - as above
        from tailtrim.laboratory.nodes.ssh.shell import HostShell  # noqa: PLC0415 - as above

        with Connection(name, self.ssh, ready_s=_BOOT_ANSWER_S) as connection:
            yield HostShell(connection)
