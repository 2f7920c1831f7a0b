"""Nodes that are virtual machines: their boots for a folder, without any machine."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import HostError
from tailtrim_pos import guest_nodes
from tailtrim_pos.guest_nodes import GuestNodes
from tailtrim_pos.provider import Boot

if TYPE_CHECKING:
    from pos_runs import PosRun


def machines(*patterns: str) -> GuestNodes:
    images: Any = {
        one: SimpleNamespace(name=f"image of {one}", folder=Path("/nowhere")) for one in patterns
    }
    return GuestNodes(images, [], lambda _: None)


def test_each_reset_boots_the_image_with_the_line_and_ports_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    booted, ended = [], []

    def guest(image: Any, line: str, _: Any, console: Path, **given: Any) -> Any:
        role, ports = given["role"], given["ports"]
        booted.append((role, image.name, line, [port.mac for port in ports.values()]))
        assert console.parent == Path("shared")
        return SimpleNamespace(__exit__=lambda: ended.append(role))

    monkeypatch.setattr(guest_nodes, "Guest", guest)
    nodes = machines("debian-bookworm", "debian-*")

    async def resets() -> None:
        pair = ["ada", "bob"]
        for name, image, words in (
            ("ada", "debian-bookworm@2026-01-01", ["isolcpus=1", "nohz_full=1"]),
            ("bob", "debian-trixie", []),
            ("ada", "debian-bookworm", []),
        ):
            await nodes.prepare(name, Boot(image, words, pair, Path("shared")), None)

    asyncio.run(resets())
    ada = ["02:00:00:00:01:01", "02:00:00:00:02:01"]
    bob = ["02:00:00:00:01:02", "02:00:00:00:02:02"]
    assert booted == [
        ("ada", "image of debian-bookworm", "isolcpus=1 nohz_full=1", ada),
        ("bob", "image of debian-*", "", bob),
        ("ada", "image of debian-bookworm", "", ada),
    ]
    assert ended == ["ada"]
    nodes.close()
    assert sorted(ended) == ["ada", "ada", "bob"]


def test_an_interrupted_boot_ends_its_machine_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, booting = threading.Event(), threading.Event()

    def guest(*_: Any, began: Any, **__: Any) -> None:
        began(SimpleNamespace(kill=killed.set))
        booting.set()
        assert killed.wait(60)

    monkeypatch.setattr(guest_nodes, "Guest", guest)

    async def interrupted() -> None:
        wanted = Boot("debian-x", [], ["ada"], Path())
        task = asyncio.ensure_future(machines("debian-x").prepare("ada", wanted, None))
        await asyncio.to_thread(booting.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert killed.is_set()


def test_a_node_without_a_live_image_is_not_booted() -> None:
    wanted = Boot("host", [], ["ada"], Path())
    with pytest.raises(HostError, match=r"ada: no live image .*'host', .*debian-x"):
        asyncio.run(machines("debian-x").prepare("ada", wanted, None))


def test_live_images_are_for_all_nodes(run_of: PosRun) -> None:
    words = ("a", "b", "--image", "debian-x=/nowhere", "--image", "debian-y")
    ended = run_of.go("wrong", *words)
    assert ended.returncode == 2
    for fact in ("--image NAME=KERNEL", "for all nodes", "--testbed FILE"):
        assert fact in ended.stderr


def test_a_live_image_that_is_missing_is_told(run_of: PosRun) -> None:
    ended = run_of.go("wrong", "a", "b", "--image", "debian-x=/nowhere")
    assert ended.returncode == 3
    for fact in ("/nowhere/image.json: ", "No such file"):
        assert fact in ended.stderr
