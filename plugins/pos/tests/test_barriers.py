"""Barriers: generations, members, and messages on missing members."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import RunError
from tailtrim_pos.barriers import Barriers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BOTH = frozenset({"a", "b"})
TAG = ("start", None)


def with_barriers(body: Callable[[Barriers, list[dict[str, Any]]], Awaitable[None]]) -> None:
    async def run() -> None:
        opened: list[dict[str, Any]] = []
        barriers = Barriers(opened.append, lambda node: f"{node} prints things")
        await asyncio.wait_for(body(barriers, opened), 10)

    asyncio.run(run())


def test_a_tag_is_used_again_and_again() -> None:
    async def body(barriers: Barriers, opened: list[dict[str, Any]]) -> None:
        for _ in range(3):
            await asyncio.gather(*(barriers.arrive(TAG, BOTH, node, None) for node in BOTH))
        assert [event["tag"] for event in opened] == ["start"] * 3
        assert all(event["waited_s"].keys() == BOTH for event in opened)

    with_barriers(body)


def test_no_node_passes_before_the_last_has_arrived() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        first = asyncio.ensure_future(barriers.arrive(TAG, BOTH, "a", None))
        await asyncio.sleep(0.05)
        assert not first.done()
        for fact in ("0 s at barrier 'start'", "b is missing", "b prints things"):
            assert fact in barriers.waits("a")
        await barriers.arrive(TAG, BOTH, "b", None)
        await first

    with_barriers(body)


def test_a_barrier_in_vain_names_who_is_missing_and_what_that_node_printed() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        with pytest.raises(RunError) as error:
            await barriers.arrive(TAG, BOTH, "a", 0.05)
        for fact in ("barrier 'start'", "within 0.05 s", "b is missing", "b prints things"):
            assert fact in str(error.value)
        # A member that gave up has not arrived.
        with pytest.raises(RunError):
            await barriers.arrive(TAG, BOTH, "b", 0.05)

    with_barriers(body)


def test_different_members_under_one_tag_are_told_at_once() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        waiting = asyncio.ensure_future(barriers.arrive(TAG, BOTH, "a", None))
        await asyncio.sleep(0)
        with pytest.raises(RunError, match=r"b names .*\(b, c\) than a \(a, b\)"):
            await barriers.arrive(TAG, frozenset({"b", "c"}), "b", None)
        assert not waiting.done()
        waiting.cancel()

    with_barriers(body)


def test_a_node_that_is_no_member_is_told() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        with pytest.raises(RunError, match=r"c is not .*members: a, b"):
            await barriers.arrive(TAG, BOTH, "c", None)
        await asyncio.gather(*(barriers.arrive(TAG, BOTH, node, None) for node in BOTH))

    with_barriers(body)


@pytest.mark.parametrize("first", ["waits", "ended"])
def test_those_who_wait_for_a_node_that_ended_are_told_whoever_was_first(first: str) -> None:
    async def body(barriers: Barriers, _: object) -> None:
        if first == "ended":
            barriers.ended("b", "its run 3 ended (error)")
        waiting = asyncio.ensure_future(barriers.arrive(TAG, BOTH, "a", None))
        await asyncio.sleep(0)
        if first == "waits":
            barriers.ended("b", "its run 3 ended (error)")
        with pytest.raises(RunError, match=r"its run 3 ended \(error\)"):
            await waiting
        barriers.back("b")
        await asyncio.gather(*(barriers.arrive(TAG, BOTH, node, None) for node in BOTH))

    with_barriers(body)


def test_a_node_whose_run_ended_may_still_come_for_those_who_are_not_repeated() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        waiting = asyncio.ensure_future(barriers.arrive(TAG, BOTH, "a", None))
        await asyncio.sleep(0)
        barriers.ended("b", "its run 3 ended", frozenset({"c"}))
        await asyncio.sleep(0)
        assert not waiting.done()
        barriers.back("b")
        await asyncio.gather(waiting, barriers.arrive(TAG, BOTH, "b", None))

    with_barriers(body)


def test_who_is_killed_while_it_waits_has_not_arrived() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        waiting = asyncio.ensure_future(barriers.arrive(TAG, BOTH, "a", None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        with pytest.raises(RunError, match="a is missing"):
            await barriers.arrive(TAG, BOTH, "b", 0.05)

    with_barriers(body)


def test_runs_have_barriers_of_their_own() -> None:
    async def body(barriers: Barriers, _: object) -> None:
        first = asyncio.ensure_future(barriers.arrive(("start", 1), BOTH, "a", None))
        with pytest.raises(RunError, match="barrier 'start' of run 2"):
            await barriers.arrive(("start", 2), BOTH, "b", 0.05)
        assert not first.done()
        first.cancel()

    with_barriers(body)
