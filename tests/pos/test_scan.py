"""The scan: its verdict on each construct of pos folders, by name, file and line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_bash", reason="tree_sitter_bash is not installed (tailtrim[pos])")

from tailtrim.pos import scan
from tailtrim.pos.local_nodes import LocalNodes
from tailtrim.pos.scan import Wanted


def found(
    folder: Path, text: str, *, images: tuple[str, ...] = (), name: str = "x.sh"
) -> list[str]:
    """Return what the scan says of a script, without its place."""
    script = folder / name
    script.write_text(text, "utf-8")
    return [
        f"{one.line}: {one.what}" for one in scan.folder(script, Wanted(LocalNodes(), (), images))
    ]


SUPPORTED = [
    'pos allocations free -k "$DUT"',
    'pos allocations allocate --duration 30 "$LOADGEN" "$DUT"',
    'pos allocations allocate "${NODES[@]}"',
    "pos allocations add $LOADGEN $TIMER",
    'pos allocations variables "$DUT" dut/local.yml',
    'pos allocations set_variables "$DUT" global.yml --as-global',
    'pos allocations set_variables -l "$DUT" loop.yml',
    "pos allocations show $DUT | cat",
    'pos nodes bootparameter "$DUT" isolcpus=1-3 nohz_full=1-3',
    'pos nodes bootparameters --delete "$DUT" quiet',
    "{ pos nodes reset $DUT; } &",
    "pos nodes reset --non-blocking $DUT",
    "pos nodes copy -d /root/x -r --queued $DUT folder",
    "pos nodes list -j",
    'pos commands launch --quiet --infile dut/setup.sh --blocking --loop "$DUT"',
    "pos commands launch --infile \\\n    dut/setup.sh \\\n    $DUT",
    'pos commands launch -n --name x "$DUT" -- cat /etc/hostname',
    "id=$(pos commands launch --queued -i $FILE $DUT); pos commands await $id",
    "pos roles add upwarm-$LG $LG $DUT",
    "X=$(pos_get_variable moongen/repo)",
    "X=$(pos_get_variable --from-global x) Y=$(pos_get_variable y -g)",
    "Z=$(pos_get_variable -l -r z)",
    "pos_set_variable -g key value",
    "pos_sync; pos_sync -t warm -l pair; pos_sync --timeout 60 --tag t $A $B; pos_sync --loop",
    "pos_run -l name -- cat -n /etc/hostname",
    "pos_kill name; pos_kill -l name; pos_wait --timeout 10 -l name",
    "pos_upload -lf x.log; pos_upload -r --outfile y dir",
    "pos_energy_start --loop --filename e.csv; pos_energy_stop",
    "echo 1 > /proc/sys/net/ipv4/ip_forward; sysctl -w net.ipv4.ip_forward=1",
    "curl http://10.0.0.2/file -o x",
    "cat <<EOF\npos nonsense\napt-get install x\nEOF",
    "# pos nonsense",
    "echo 'pos nonsense'",
    "own() { cat; }\nown",
    "moongen/build/MoonGen $X",
    '"$PROGRAM" --x',
    "for ((i=0; i<${#args[@]}; i++)); do pos allocations free -k ${args[i]}; done",
]


@pytest.mark.parametrize("text", SUPPORTED)
def test_what_is_supported_is_not_told(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A minimal machine has no curl, which would be told.
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "curl").touch(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{programs}")
    assert found(tmp_path, f"#!/bin/bash\n{text}\n") == []


LACKING = [
    ("pos nodes image $DUT debian-buster", "unknown image 'debian-buster', .* host"),
    ("I=debian-buster@2021-12-21T04:04:35+00:00\npos nodes image $DUT $I", "unknown image 'debian"),
    ("pos nodes spawn_vm $HOST -c 1", "pos nodes spawn_vm: not supported"),
    ("pos nodes stop $DUT", "pos nodes stop: not supported"),
    ("pos calendar list", "pos calendar list: not .*calendar"),
    ("pos results publish --x", "pos results publish: not .*sent"),
    ("pos hooks add", "pos hooks add: not supported"),
    ("pos jobs list", "pos jobs list: not supported"),
    ("pos images list", "pos images list: not supported"),
    ("pos nodes explode $DUT", "pos nodes explode: unknown.* list, show, image"),
    ("pos frobnicate", "pos frobnicate: unknown.* allocations, nodes"),
    ("pos --version", "pos --version: expected a group"),
    ("pos commands launch --turbo $DUT", "pos commands launch: unknown option --turbo"),
    ("pos commands launch --infile", "pos commands launch: --infile lacks"),
    ("pos commands launch --loop=3 a", "--loop takes no value"),
    ("pos allocations show", "pos allocations show: 0 arguments, expected 1"),
    ("pos commands launch a -- nosuchprogram", "nosuchprogram: not installed"),
    ("pos_teleport x", "pos_teleport: unknown tool.* pos_get_variable"),
    ("pos_run_rest_blocking x", "pos_run_rest_blocking: unknown tool"),
    ("pos_sync --taag x", "pos_sync: unknown option --taag"),
    ("pos_get_variable", "pos_get_variable: 0 arguments, expected 1"),
    ("pos_run gen -- nosuchprogram -x", "nosuchprogram: not installed"),
    ("if ! nosuchprogram; then :; fi", "nosuchprogram: not installed"),
    ("X=$(sudo nosuchprogram)", "nosuchprogram: not installed"),
    ("/opt/no/such/program", "/opt/no/such/program: not installed"),
    ("DEBIAN_FRONTEND=x apt-get -y install vim", "apt-get: .*no network"),
    ("git clone --depth 1 https://x.org/y", "git: .*no network"),
    ("wget https://example.org/x", "wget: .*no network"),
    ("pip3 install x", "pip3: .*no network"),
    ('scp file root@"$DUT":', "scp: .*not by SSH"),
    ("ssh root@$DUT true", "ssh: .*not by SSH"),
    ("modprobe vfio-pci", "modprobe: .*kernel of the host"),
    ("sysctl -w vm.nr_hugepages=512", "sysctl: .*kernel of the host"),
    ("reboot", "reboot: .*cannot be switched"),
    ("echo 512 > /sys/kernel/mm/hugepages/x", "/sys .*cannot be written"),
    ("echo 2 | tee /proc/irq/9/smp_affinity", "/proc/irq/9/smp_affinity: interrupts are those"),
    ("rsync -a /srv/testbed/results/me/x .", "/srv/testbed/results/me/x: .*folder"),
]


@pytest.mark.parametrize(("text", "told"), LACKING)
def test_what_is_lacking_is_told_once_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (finding,) = found(tmp_path, f"#!/bin/bash\n\n{text}\n")
    assert re.match(f"{2 + text.count(chr(10)) + 1}: .*{told}", finding)


def test_images_that_a_user_names_are_known(tmp_path: Path) -> None:
    text = "pos nodes image $A debian-buster\npos nodes image $B alpine\n"
    (finding,) = found(tmp_path, text, images=("debian-*",))
    assert finding.startswith("2: unknown image 'alpine'")
    assert "host, debian-*" in finding


def test_scripts_of_nodes_are_scanned_too(tmp_path: Path) -> None:
    (tmp_path / "dut").mkdir()
    (tmp_path / "dut" / "setup").write_text("#!/bin/bash\ntrue\npos_bogus\n", "utf-8")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "old.sh").write_text("pos_bogus\n", "utf-8")
    assert found(tmp_path, "true")[0].startswith("3: pos_bogus")
    assert len(found(tmp_path, "true")) == 1


def test_a_launched_script_without_its_first_line_is_told(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("true\n", "utf-8")
    (finding,) = found(tmp_path, "pos commands launch --infile setup.sh $DUT")
    assert finding.startswith("1: setup.sh: has no #! line")


def test_loop_variables_that_make_no_sense_are_told(tmp_path: Path) -> None:
    (tmp_path / "loop.yml").write_text("rate: [1, 3, ..., 8]\n", "utf-8")
    (finding,) = found(tmp_path, "pos allocations set_variables $A loop.yml --as-loop")
    for fact in ("1: loop.yml: rate: from 1 ", "steps of 2", "never reaches 8"):
        assert fact in finding


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("pos.energy.visualize('x')", "poslib.api.energy.visualize: not supported"),
        ("pos.allocations.explode(1)", "poslib.api.allocations.explode: not supported"),
        ("pos.commands.launch('a', command=['x'], turbo=True)", "unknown argument turbo"),
        ("pos.nodes.image('a', 'debian-buster')", "unknown image 'debian-buster'"),
        ("pos.nodes.image('a', image='debian-buster')", "unknown image 'debian-buster'"),
    ],
)
@pytest.mark.parametrize("imported", ["from poslib import api as pos", "import poslib as pos"])
def test_the_python_api_is_scanned(tmp_path: Path, imported: str, call: str, told: str) -> None:
    (finding,) = found(tmp_path, f"{imported}\n{call}\n", name="x.py")
    assert finding.startswith("2: ")
    assert told in finding


def test_what_is_supported_of_the_python_api_is_not_told(tmp_path: Path) -> None:
    text = """
import poslib as pos
from poslib.api import nodes
try:
    _, data = pos.commands.launch("a", name="x", command=["true"], blocking=True, queued=False)
    pos.api.allocations.free("a", force=True)
    nodes.reset(["a", "b"], blocking=False)
except pos.restapi.RESTError:
    pass
"""
    assert found(tmp_path, text, name="x.py") == []


def test_the_experiment_ends_before_it_began(tmp_path: Path) -> None:
    script = tmp_path / "experiment.sh"
    script.write_text("#!/bin/bash\ntouch began\npos nodes image a amiga\n", "utf-8")
    program = str(Path(sys.executable).with_name("tailtrim"))
    out = tmp_path / "out"
    ended = subprocess.run(
        [program, "pos", str(script), "a", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert f"error: {script}:3: unknown image 'amiga'" in ended.stderr
    assert not out.exists()
    assert not (tmp_path / "began").exists()


def test_the_folders_of_these_tests_have_nothing_but_what_is_meant() -> None:
    folders = Path(__file__).parent / "folders"
    for name, script in (("forwarding", "experiment.sh"), ("python", "experiment.py")):
        wanted = Wanted(LocalNodes(), (), ["debian-*", "no-such-image"])
        assert scan.folder(folders / name / script, wanted) == []
    assert scan.folder(folders / "wrong" / "experiment.sh", Wanted(LocalNodes())) == []
