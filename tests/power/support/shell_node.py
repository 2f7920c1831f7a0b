"""A node with a shell, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tailtrim.nodes.node import Node

if TYPE_CHECKING:
    from pathlib import Path


class ShellNode(Node):
    """A node that only runs commands: a subclass says how."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def agent(self) -> str:
        raise NotImplementedError

    def open(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def start(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def path(self, name: str = "") -> str:
        raise NotImplementedError(name)

    def put(self, name: str, text: str) -> str:
        raise NotImplementedError(name, text)

    def get(self, name: str) -> Path | None:
        raise NotImplementedError(name)

    def clocks(self) -> Any:
        raise NotImplementedError

    def frames(self, port: str) -> Any:
        raise NotImplementedError(port)

    def attach_xdp(self, port: str, program: bytes) -> Any:
        raise NotImplementedError(port, program)
