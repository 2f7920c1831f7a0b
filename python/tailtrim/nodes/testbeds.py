"""Testbeds by the names that plans have for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tailtrim.nodes.local import LocalTestbed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.nodes.testbed import Testbed

Name = Literal["local"]
TESTBEDS: dict[Name, Callable[[], Testbed]] = {"local": LocalTestbed}
