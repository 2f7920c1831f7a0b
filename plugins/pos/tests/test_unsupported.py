"""Verbs, tools and programs that nodes do not have: each call is refused with one error."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim_pos import grammar, programs, tools, verbs
from tailtrim_pos.experiment import PosExperiment
from tailtrim_pos.local_nodes import LocalNodes
from tailtrim_pos.tools import Reply, Request

if TYPE_CHECKING:
    from pos_runs import PosRun

SUPPORTED = [
    'pos allocations free -k "$DUT"',
    "pos allocations allocate --duration 30 a b",
    "pos allocations add 1 b",
    "pos allocations variables a dut/local.yml",
    "pos allocations set_variables a global.yml --as-global",
    "pos allocations set_variables -l a loop.yml",
    "pos nodes bootparameter a isolcpus=1-3 nohz_full=1-3",
    "pos nodes bootparameters --delete a quiet",
    "pos nodes reset --non-blocking a",
    "pos nodes copy -d /root/x -r --queued a folder",
    "pos nodes list -j",
    "pos commands launch --quiet --infile dut/setup.sh --blocking --loop a",
    "pos commands launch -n --name x a -- cat /etc/hostname",
    "pos commands launch --queued -i file a",
    "pos roles add upwarm-a a b",
    "pos_get_variable moongen/repo",
    "pos_get_variable y -g",
    "pos_get_variable -l -r z",
    "pos_set_variable -g key value",
    "pos_sync -t warm -l pair",
    "pos_sync --timeout 60 --tag t a b",
    "pos_run -l name -- cat -n /etc/hostname",
    "pos_kill -l name",
    "pos_wait --timeout 10 -l name",
    "pos_upload -lf x.log",
    "pos_upload -r --outfile y dir",
    "pos_energy_start --loop --filename e.csv",
]


@pytest.mark.parametrize("text", SUPPORTED)
def test_calls_of_published_folders_are_understood(text: str) -> None:
    program, *words = shlex.split(text)
    if program == "pos":
        verb = grammar.verb_of(words)
        assert verb in verbs.VERBS
        grammar.parsed(program, grammar.VERBS[verb], words[2:])
    else:
        grammar.parsed(program, grammar.tool_of(program), words)


REFUSED = [
    ("pos nodes spawn_vm a -c 1", "pos nodes spawn_vm: not supported: .*virtual machines"),
    ("pos nodes stop a", "pos nodes stop: not supported: .*switched"),
    ("pos nodes cmd a", "pos nodes cmd: not supported: .*console"),
    ("pos calendar list", "pos calendar list: not supported: .*calendar"),
    ("pos results publish --x", "pos results publish: not supported: .*sent"),
    ("pos hooks add", "pos hooks add: not supported"),
    ("pos jobs list", "pos jobs list: not supported"),
    ("pos images list", "pos images list: not supported"),
    ("pos nodes explode a", "pos nodes explode: unknown.* list, show, image"),
    ("pos frobnicate", "pos frobnicate: unknown.* allocations, nodes"),
    ("pos --version", "pos --version: unknown, expected one of allocations"),
    ("pos", "pos: unknown, expected one of allocations"),
    ("pos commands launch --turbo a", "pos commands launch: unknown option --turbo"),
    ("pos commands launch --infile", "pos commands launch: --infile lacks"),
    ("pos commands launch --loop=3 a", "pos commands launch: --loop takes no value"),
    ("pos allocations show", "pos allocations show: 0 arguments, expected 1"),
    ("pos_teleport x", "pos_teleport: unknown tool.* pos_get_variable"),
    ("pos_sync --taag x", "pos_sync: unknown option --taag"),
    ("pos_get_variable", "pos_get_variable: 0 arguments, expected 1"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED)
def test_a_verb_or_tool_that_is_not_supported_is_refused(text: str, told: str) -> None:
    program, *words = shlex.split(text)
    # It is refused before the session or the node is looked at.
    nothing: Any = None
    answer = verbs.answer if program == "pos" else tools.answer
    reply = asyncio.run(answer(nothing, Request(program, words)))
    assert reply == Reply(stderr=reply.stderr, code=2)
    (line,) = reply.stderr.splitlines()
    assert re.match(told, line)


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("host", True),
        ("debian-buster", True),
        ("debian-buster@2021-12-21T04:04:35+00:00", True),
        ("alpine", False),
    ],
)
def test_images_that_a_user_names_are_known(image: str, known: bool) -> None:
    nodes = LocalNodes()
    experiment = PosExperiment(
        name="x", script=Path("x.sh"), arguments=[], nodes=nodes, images=["debian-*"]
    )
    assert experiment.has_image(image) is known


def programs_of(folder: Path, *, own_kernel: bool) -> Path:
    programs.write_tools(folder, "/usr/bin/python3", "/agent", own_kernel=own_kernel)
    return folder / "bin"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ssh", "by pos only"),
        ("scp", "by pos only"),
        ("reboot", "pos nodes reset"),
        ("modprobe", "of their host"),
        ("dpdk-devbind.py", "of their host"),
    ],
)
def test_a_program_that_does_not_work_on_nodes_is_refused(
    tmp_path: Path, name: str, why: str
) -> None:
    place = programs_of(tmp_path, own_kernel=False) / name
    ended = subprocess.run([place, "x"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"{name}: not supported: nodes ")
    assert why in line


def test_nodes_with_a_kernel_of_their_own_may_change_it(tmp_path: Path) -> None:
    names = {place.name for place in programs_of(tmp_path, own_kernel=True).iterdir()}
    assert {"pos_sync", "ssh", "reboot"} <= names
    assert not names & {"modprobe", "wrmsr", "dpdk-devbind.py"}


NODE = """#!/bin/bash
modprobe vfio-pci; ssh b; echo 1 >/proc/sys/vm/swappiness; pos_teleport; nosuchprogram
"""


def test_what_a_script_cannot_have_is_told_when_it_asks(run_of: PosRun) -> None:
    folder = run_of.folders / "wrong"
    (folder / "node.sh").write_text(NODE, "utf-8")
    (folder / "experiment.sh").write_text(
        "#!/bin/bash\npos allocations allocate a\npos nodes spawn_vm a\n"
        "pos commands launch --name node --infile node.sh a\n"
        "pos commands launch --name alone a -- nosuchprogram\n"
        "pos_bogus\n",
        "utf-8",
    )
    ended = run_of.go("wrong", "a")
    assert ended.returncode == 4
    assert ended.stderr.count("pos nodes spawn_vm: not supported: ") == 1
    lines = run_of.printed("node.stderr").splitlines()
    assert len(lines) == 5
    for line, fact in zip(
        lines,
        (
            "modprobe: not supported: ",
            "ssh: not supported: ",
            "/proc/sys/vm/swappiness: Read-only",
            "pos_teleport: command not found",
            "nosuchprogram: command not found",
        ),
        strict=True,
    ):
        assert fact in line
    assert "nosuchprogram" in run_of.printed("alone.stderr")
    assert "error: a: alone: " in ended.stderr
    assert run_of.left() == []


def test_check_starts_nothing(run_of: PosRun) -> None:
    script = run_of.folders / "wrong" / "experiment.sh"
    began = script.with_name("began")
    script.write_text(f"#!/bin/bash\ntouch {began}\n", "utf-8")
    ended = run_of.go("wrong", "ada", "bob", "7", "--dry-run", "--cable", "ada:eth1=bob:eth7")
    assert ended.returncode == 0, ended.stderr
    told = ["ada: eth1 to bob:eth7", "bob: eth7 to ada:eth1"]
    assert ended.stdout.splitlines()[:2] == told
    assert "2 nodes" in ended.stdout
    assert not began.exists()
    assert not run_of.out.exists()
