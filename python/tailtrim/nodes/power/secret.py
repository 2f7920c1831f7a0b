"""A password that stands elsewhere: a testbed file only says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from tailtrim.errors import HostError
from tailtrim.model_base import Strict

_OTHERS = 0o077


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
    # What is given in its place may be the password: errors, which tell it, must not have it.
    return given if isinstance(given, dict | Secret) else {}


#: A key of a testbed file that says where a password is.
Password = Annotated[Secret, BeforeValidator(_hidden)]
