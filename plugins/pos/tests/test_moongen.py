"""The stand-in for MoonGen: options, output, clones, and the commands that the docs have."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import PlanError
from tailtrim.results.experiments import recorded
from tailtrim_pos import repositories
from tailtrim_pos.repositories import Repository
from tailtrim_pos.results import import_pos
from tailtrim_pos.results.rates import rates_of
from tailtrim_pos.standin import git, moongen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pos_runs import PosRun

ROOT = Path(__file__).resolve().parents[3]
PORTS = ("ens4", "ens5")
URL = "https://github.com/gallenmu/MoonGen"
#: Lines of a published log (gallenmu/pos-artifacts, throughput_run003.log).
OF_A_SECOND = "[Device: id=0] TX: 0.3917 Mpps, 213.10 Mbit/s (275.77 Mbit/s with framing)"
OF_ALL = (
    "[Device: id=0] TX: 0.3846 (StdDev 0.0735) Mpps, 209.23 (StdDev 40) Mbit/s (270.76 Mbit/s with"
    " framing), total 12000000 packets with 816000000 bytes (incl. CRC)"
)


def form(line: str) -> str:
    """Return a line without the digits of its numbers, of which the decimals are kept."""
    return re.sub(r"\d+(\.?)(\d*)", lambda found: f"N{found[1]}{'n' * len(found[2])}", line)


def calls(command: str) -> list[str]:
    script, *words = shlex.split(command)
    return [shlex.join(call) for call in moongen.work_of(script, words, PORTS).calls]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            (
                "examples/soft-gen.lua --src-mac 52:54:00:78:0a:20 --dst-mac 52:54:00:80:0a:22"
                " --src-ip 10.0.1.23 --dst-ip 10.0.0.20 --fix-packetrate 10000 --size 64"
                " --packets 300000 --chksum-offload 0 --ip-chksum 1 --warm-up 0 0 1"
            ),
            (
                "generate --interface ens4 --rate 10000 --frame-bytes 68 --count 300000"
                " --src-mac 52:54:00:78:0a:20 --dst-mac 52:54:00:80:0a:22"
                " --src-ip 10.0.1.23 --dst-ip 10.0.0.20"
            ),
        ),
        (
            "soft-gen.lua -b 16 -x 1500 1 0",
            (
                "generate --interface ens5 --rate 100000 --frame-bytes 1504 --count 1000000"
                " --schedule burst:16 --src-ip 10.0.0.1 --dst-ip 10.0.1.1"
            ),
        ),
        (
            "/root/timer-loadgen.lua -x 60 --fix-packetrate 5000 --packets 900 --flows 10 0 1",
            (
                "generate --interface ens4 --rate 5000 --frame-bytes 64 --count 900"
                " --flows 10 --dst-port 23432"
            ),
        ),
        (
            "examples/moonsniff/traffic-gen.lua 0 1 --rate 208 --time 5",
            "generate --interface ens4 --rate 250000 --frame-bytes 104 --duration 5s",
        ),
        (
            "moonsniff/traffic-gen.lua --fix-packetrate 100 --packets 10 0 1",
            "generate --interface ens4 --rate 100 --frame-bytes 104 --count 10 --dst-port 23432",
        ),
        (
            "rate-control-methods.lua 1 2 sw poisson",
            (
                "generate --interface ens5 --rate 2000000 --frame-bytes 64 --schedule poisson"
                " --dst-mac 11:12:13:14:15:16"
            ),
        ),
        (
            "rate-control-methods.lua 0 10 sw custom",
            "generate --interface ens4 --rate 100000 --frame-bytes 64 --dst-mac 11:12:13:14:15:16",
        ),
        (
            "sniffer.lua --capture --output x/latencies --time 30 0 1",
            (
                "capture --out x --snap 9018"
                " --tap=latencies-pre=ens4 --tap=latencies-post=ens5 --duration=30s"
            ),
        ),
        (
            "pcap/rx-to-pcap.lua 1 --sink dump/in-",
            "capture --out dump --snap 9018 --tap=in-1-0=ens5",
        ),
    ],
)
def test_a_command_of_moongen_becomes_one_of_the_agent(
    tmp_path: Path, command: str, expected: str
) -> None:
    assert calls(command) == [expected]
    program = Path(sys.executable).with_name("tailtrim-agent")
    words = [str(program), *shlex.split(expected.replace("ens", "none"))]
    tried = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert re.search("No such device|no such interface", tried.stderr), tried.stderr


def test_a_warm_up_is_sent_before_a_pause() -> None:
    work = moongen.work_of("soft-gen.lua", ["--warm-up", "3", "--packets", "9", "0", "1"], PORTS)
    assert [call[call.index("--count") + 1] for call in work.calls] == ["945", "9"]
    assert (work.pause_s, work.sent, work.received) == (3, (0,), (1,))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("l3-load-latency.lua 0 1", "l3-load-latency.lua: not known here, .* soft-gen.lua, "),
        ("", ": not known here"),
        ("soft-gen.lua --turbo 0 1", "soft-gen.lua: .* --turbo; it knows .*--fix-packetrate, "),
        ("soft-gen.lua --size big 0 1", "soft-gen.lua: .*invalid int value: 'big'"),
        ("soft-gen.lua 0", "soft-gen.lua: .*dev"),
        ("soft-gen.lua 0 2", r"device 2: this node has 0 \(ens4\), 1 \(ens5\)"),
        ("sniffer.lua 0 1", "sniffer.lua: not supported without --capture"),
    ],
)
def test_what_is_unknown_is_refused_in_one_line(command: str, told: str) -> None:
    with pytest.raises(moongen.RefusedError, match=f"^{told}") as refused:
        calls(command or "''")
    assert "\n" not in str(refused.value)


def count(place: Path, packets: int) -> None:
    """Write counters of an interface that sent and received so many packets, as the kernel does."""
    way = f"{packets * 64} {packets} 0 0 0 0 0 0"
    (place / "dev").write_text(f"Inter-|   Receive\n face |bytes    packets\n  ens4: {way} {way}\n")


def test_lines_have_the_form_of_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(moongen, "COUNTERS", tmp_path / "dev")
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    total = 7
    count(tmp_path, total)
    began = moongen.Counters()
    counters = [moongen.Counter(0, "ens4", "TX", began), moongen.Counter(1, "ens4", "RX", began)]
    lines = []
    for second, packets in enumerate([390_000, *[400_000] * 5, 10_000, 0]):
        now_s = second + 1.0
        total += packets
        count(tmp_path, total)
        lines += [counter.update(moongen.Counters()) for counter in counters]
    assert lines[2] == (
        "[Device: id=0] TX: 0.4000 Mpps, 217.60 Mbit/s (281.60 Mbit/s with framing)"
    )
    assert form(lines[0]) == form(OF_A_SECOND)
    last = counters[0].final(moongen.Counters())
    assert form(last) == form(OF_ALL)
    assert last.endswith("total 2400000 packets with 163200000 bytes (incl. CRC)")
    log = tmp_path / "throughput.log"
    log.write_text("\n".join([*lines, last]))
    rates = rates_of([log])
    assert (rates.sent_pps, rates.received_pps) == (400_000, 400_000)


class Sending:
    """Calls that last for so many looks."""

    code = 0

    def __init__(self, looks: int) -> None:
        self._looks = looks

    def is_alive(self) -> bool:
        self._looks -= 1
        return self._looks >= 0


def test_a_late_second_does_not_make_the_next_one_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s, late_s = 0.0, [0.0, 3.7, *[0.0] * 9]

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds + late_s.pop(0)
        count(tmp_path, round(now_s * 10_000))

    monkeypatch.setattr(moongen, "COUNTERS", tmp_path / "dev")
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    monkeypatch.setattr("time.sleep", sleep)
    sleep(0)
    calls: Any = Sending(5)
    moongen.count([moongen.Counter(0, "ens4", "TX", moongen.Counters())], calls)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines] == ["0.0100"] * 7


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return the git of a node that has the stand-in and a repository."""
    source, shared = tmp_path / "source", tmp_path / "shared"
    (source / ".git").mkdir(parents=True)
    (shared / "bin").mkdir(parents=True)
    stand_ins = [Repository(URL, None), Repository("git@host:mine", source)]
    repositories.write(shared, sys.executable, stand_ins, PORTS)
    monkeypatch.setattr(git, "SHARED", shared)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["git", *words])
        return git.main()

    return call


def test_a_clone_is_a_copy_of_what_stands_in(
    clone: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "moongen"
    assert clone("clone", "--branch", "x", "--recursive", f"{URL}.git", str(place)) == 0
    assert os.access(place / "build" / "MoonGen", os.X_OK)
    assert clone("-C", str(place), "checkout", "50fd4d7") == 0
    assert "git checkout: nothing done: " in capsys.readouterr().err
    assert clone("clone", URL, "moongen") == 128
    assert "already exists" in capsys.readouterr().err
    assert clone("clone", "git@host:mine") == 0
    assert not (tmp_path / "git@host:mine" / git.MARK).exists()


def test_all_else_goes_to_the_git_of_the_host(
    clone: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, words: became.append(words))
    clone("clone", "https://example.org/other", "moongen")
    clone("checkout", "main")
    clone("--version")
    told = ["clone https://example.org/other moongen", "checkout main", "--version"]
    assert became == [["git", *words.split()] for words in told]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (URL, "expected URL=FOLDER, or URL=moongen"),
        (f"{URL}=", "expected URL=FOLDER"),
        (f"{URL}=no/such", "no/such is not a folder"),
    ],
)
def test_a_repository_that_makes_no_sense_is_told(given: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        repositories.repositories_of([given])


def table() -> list[str]:
    """Return the commands in the table of the docs."""
    rows = (ROOT / "docs" / "moongen.md").read_text("utf-8").splitlines()
    cells = [row.split(" | ")[2] for row in rows if row.startswith("| ") and row.count(" | ") == 3]
    return [cell.strip("`") for cell in cells if cell.startswith("`")]


@pytest.mark.lab
@pytest.mark.parametrize("command", table())
def test_commands_of_the_docs_work(nodes: None, tmp_path: Path, command: str) -> None:
    del nodes
    if "latencies-pre.pcap" in command:
        for side, name in (("pre", "ingress"), ("post", "egress")):
            source = ROOT / "examples" / "testpmd" / f"{name}.pcap.zst"
            shutil.copy(source, tmp_path / f"latencies-{side}.pcap")
    command = command.removeprefix("sudo ").replace("--duration 10s", "--duration 500ms")
    command = re.sub("--count [0-9]+", "--count 50", command)
    command += " --dry-run" if command.startswith("tailtrim run") else ""
    if " reflect " in command:
        command = f"timeout --preserve-status --signal INT 1 {command} --user 0"
    script = (
        "set -e; mount -t sysfs sysfs /sys; ip link add eth1 type veth peer name eth2;"
        f" ip link set eth1 up; ip link set eth2 up; {command}"
    )
    within = ("unshare", "--user", "--map-root-user", "--net", "--mount")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/usr/bin/env", *within, "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


SCRIPT = f"""#!/bin/bash
set -e
pos allocations allocate a b
pos nodes reset a
pos nodes reset b
for node in a b; do
    pos commands launch $node -- git clone {URL} m
    pos commands launch $node -- sh -c 'for port in eth1 eth2; do ip link set $port up; done'
done
pos commands launch b -- touch latencies-pre.pcap
sniffer=$(pos commands launch --queued --name sniffer b -- \\
    m/build/MoonGen moonsniff/sniffer.lua --capture --time 5 0 1)
pos commands launch --name sender a -- \\
    timeout --preserve-status 3.5 m/build/MoonGen rate-control-methods.lua 0 0.001 sw poisson
pos commands await $sniffer
pos commands launch b -- pos_upload latencies-pre.pcap latencies-post.pcap
pos commands launch --name dump b -- sh -c \\
    'timeout --preserve-status -s INT 2 m/build/MoonGen rx-to-pcap.lua -s in- 1; ls in-1-0.pcap'
"""


@pytest.mark.lab
def test_signals_end_it_with_its_totals(run_of: PosRun) -> None:
    (run_of.folders / "wrong" / "experiment.sh").write_text(SCRIPT, "utf-8")
    ended = run_of.go("wrong", "a", "b", "--repository", f"{URL}.git=moongen")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    total = re.findall(
        r"^\[Device: id=0\] TX: .*total (\d+) ", run_of.printed("sender.stdout"), re.MULTILINE
    )
    assert 1000 < int(total[0]) < 5000
    assert "total" in run_of.printed("sniffer.stdout").splitlines()[-1]
    sizes = {
        side: (run_of.results / f"files/b/latencies-{side}.pcap").stat().st_size
        for side in ("pre", "post")
    }
    assert sizes["pre"] > 1000 * 60 > sizes["post"]
    assert run_of.printed("dump.stdout").splitlines()[-1] == "in-1-0.pcap"
    assert run_of.left() == []


@pytest.mark.lab
@pytest.mark.alone
def test_the_form_of_the_pos_papers_folder_runs_unedited(run_of: PosRun, tmp_path: Path) -> None:
    cables = ("--cable", "kaunas:ens4=vilnius:ens4", "--cable", "vilnius:ens5=kaunas:ens5")
    words = ("kaunas", "vilnius", "--image", "debian-*", *cables, "--repository", f"{URL}=moongen")
    ended = run_of.go("published", *words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    setup = run_of.printed("setup.stderr", "kaunas")
    for told in ("Cloning into '/root/moongen'", "git checkout: ", "build.sh: nothing done"):
        assert told in setup
    logs = sorted(run_of.results.rglob("throughput_run*.log"))
    assert len(logs) == 4
    for log in logs:
        assert log.read_text("utf-8").startswith(f"{moongen.NOTE}\n")
    import_pos(run_of.results, tmp_path / "imported")
    experiment = recorded(tmp_path / "imported")
    rows = experiment.table("runs").to_pydict()
    assert [run.problem for run in experiment.runs] == [None] * 4
    offered = [run.loop["pkt_rate"] for run in experiment.runs]
    assert rows["rate_pps"] == pytest.approx(offered, rel=0.02)
    assert rows["received_pps"] == pytest.approx(offered, rel=0.02)
    for log, rate in zip(logs, offered, strict=True):
        assert log.read_text("utf-8").count(f"total {rate * 10} packets with ") == 2
    assert run_of.left() == []
