"""Child processes that hold something end once, with one answer."""

from __future__ import annotations

from functools import partial

import pytest

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.holder import Holder


def test_a_holder_that_is_ended_twice_answers_the_same() -> None:
    held = partial(local_host.start, ("sh", "-c", "echo held; cat; echo gone >&2; exit 3"))
    holder = Holder(held, "a thing", grace_s=10)
    assert holder.line == "held"
    assert holder.end() == holder.end() == (3, "gone")


def test_a_holder_that_holds_nothing_says_why() -> None:
    refused = partial(local_host.start, ("sh", "-c", "echo no room >&2; echo none left >&2"))
    with pytest.raises(HostError, match=r"^a thing: no room; none left$"):
        Holder(refused, "a thing", grace_s=10)
