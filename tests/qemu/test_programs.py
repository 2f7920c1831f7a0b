"""BPF programs load on the oldest kernel that they are for."""

from __future__ import annotations

import json
import re

import pytest
from guest import machine


def test_programs_load_on_linux_6_1(tmp_path_factory: pytest.TempPathFactory) -> None:
    boot = machine("amd64", tmp_path_factory.mktemp("programs")).boot("programs=bpf")
    version = re.search(r"Linux version (\d+)\.(\d+)", boot.parts["log"])
    assert version is not None
    if tuple(map(int, version.groups())) > (6, 1):
        pytest.skip(f"Debian's kernel is no 6.1 here: {version.group()}")
    for part in ("xdp", "af-xdp", "capture"):
        events = [json.loads(line) for line in boot.parts[part].splitlines() if line[:1] == "{"]
        assert "ready" in [event["event"] for event in events], boot.parts[part]
    (ready,) = (event for event in events if event["event"] == "result")
    assert "program" in json.dumps(ready)
