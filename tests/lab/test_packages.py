"""Packages of ``make dist``, each installed and used where nothing else of the project is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tools
from peers import Host, Reflector
from releases import entering, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.packages

PROJECT = Path(__file__).parents[2]
UNIT = "tailtrim-reflect.service"
DEMO_RUNS = 6
CITATION = """\
cff-version: 1.2.0
message: Cite it as below.
title: The demo
authors: [{family-names: Doe, given-names: Jane}]
"""
#: Enters a root that has programs of its own, or but one, for a command.
INTO = 'mkdir -p "$0/proc" && mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
#: As the unit has it: a user without rights but one.
AS_THE_UNIT = (
    "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
    "--bounding-set=-all,+net_bind_service", "--inh-caps=-all,+net_bind_service",
    "--ambient-caps=-all,+net_bind_service",
)  # fmt: skip


def made(pattern: str) -> Path:
    """Return what ``make dist`` made, or skip loudly."""
    found = list((PROJECT / "dist").glob(pattern))
    if not found:
        pytest.skip(f"no dist/{pattern} here (make dist makes it)")
    (one,) = found
    return one


def into(root: Path) -> list[str]:
    return ["/usr/bin/env", "unshare", "--mount", "sh", "-c", INTO, str(root)]


def must(command: Sequence[str | Path], **settings: str) -> str:
    """Run a command that has to succeed, and return what it prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | settings
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return str(done.stdout)


@pytest.fixture
def alone() -> Iterator[Host]:
    """Return a host without a network, or skip loudly."""
    if os.geteuid() != 0:
        pytest.skip("entering another root needs root")
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    host = Host()
    try:
        host.must("ip", "link", "set", "lo", "up")
        yield host
    finally:
        host.close()


@pytest.fixture
def clean(alone: Host, tmp_path: Path) -> Iterator[Path]:
    """Return a Debian as debootstrap makes it, of this test alone, or skip loudly."""
    assert alone
    root = tmp_path / "clean"
    root.mkdir()
    must(["tar", "--extract", "--file", unpacked("bookworm-clean"), "--directory", root])
    yield root
    shutil.rmtree(root)


@pytest.mark.parametrize("name", ["tailtrim-agent", "tailtrim-dpdk"])
def test_the_debian_package_keeps_debians_rules(name: str) -> None:
    tools.need(tools.LINTIAN)
    package = made(f"{name}_*.deb")
    command = ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_package_of_dpdk_needs_the_dpdk_that_it_is_linked_to(tmp_path: Path) -> None:
    tools.need(tools.LIBDPDK)
    package = made("tailtrim-dpdk_*.deb")
    needed = must(["dpkg-deb", "--field", package, "Depends"])
    assert re.search(r"\blibrte-ethdev\d+\b", needed)
    must(["dpkg-deb", "--extract", package, tmp_path])
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {"usr/bin/tailtrim-dpdk", "usr/share/man/man1/tailtrim-dpdk.1.gz"} <= files
    assert must([tmp_path / "usr/bin/tailtrim-dpdk", "--version"]).startswith("tailtrim-dpdk ")


def test_the_debian_package_has_the_licences_of_all_that_is_linked_in(tmp_path: Path) -> None:
    must(["dpkg-deb", "--extract", made("tailtrim-agent_*.deb"), tmp_path])
    text = (tmp_path / "usr/share/doc/tailtrim-agent/copyright").read_text("utf-8")
    # The agent's own tree, as cargo sees it without macros and what only builds it.
    tree = must(
        ["cargo", "tree", "--locked", "--package=tailtrim-agent", "--edges=normal,no-proc-macro",
         "--target=x86_64-unknown-linux-musl", "--prefix=none", "--format={p}", "--manifest-path",
         PROJECT / "Cargo.toml"],
    )  # fmt: skip
    linked = {line.split()[0] for line in tree.splitlines() if "tailtrim-" not in line}
    named = {
        name for name in linked if re.search(rf"(^|, ){re.escape(name)} [0-9]", text, re.MULTILINE)
    }
    assert named == linked
    assert "Copyright (c) Meta Platforms" in text, "zstd itself, within zstd-sys"
    assert "Rich Felker" in text, "musl"


@contextmanager
def reflecting(host: Host, *command: str) -> Iterator[None]:
    """Have a reflector run."""
    process = subprocess.Popen(
        host.command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    reflector = Reflector(process)
    try:
        reflector.wait_until_ready()
        yield
        reflector.stop()
    finally:
        process.kill()
        process.communicate()


def answered(host: Host, *agent: str) -> int:
    """Let an agent measure, and return how many of 20 probes were answered."""
    words = ("ping", "127.0.0.1", "--protocol", "stamp", "-c", "20", "--rate", "100", "--json")
    (stream,) = json.loads(host.must(*agent, *words))["streams"]
    return int(stream["probes"]["answered"])


def test_the_static_agent_needs_no_other_file(alone: Host, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(made("tailtrim-agent-[0-9]*"), root / "tailtrim-agent")
    agent = [*into(root), "/tailtrim-agent"]
    with reflecting(alone, *agent, "reflect", "--stamp", "862"):
        assert answered(alone, *agent) == 20


def test_the_debian_package_brings_agent_and_unit_and_takes_them_away(
    alone: Host, clean: Path
) -> None:
    def files() -> set[str]:
        varying = ("var/cache", "var/lib/apt", "var/lib/dpkg", "var/log", "proc")
        names = {str(place.relative_to(clean)) for place in clean.rglob("*")}
        return {name for name in names if not name.startswith(varying)}

    package = shutil.copy(made("tailtrim-agent_*.deb"), clean)
    before = files()
    must([*into(clean), "apt-get", "install", "--yes", f"/{Path(package).name}"])
    unit = (clean / "lib/systemd/system" / UNIT).read_text()
    assert unit == (PROJECT / "packaging" / UNIT).read_text()
    assert not [name for name in files() if name.endswith(f".wants/{UNIT}")]
    for place in ("prometheus/rules.yml", "grafana/tailtrim-watch.json"):
        assert (clean / "usr/share/tailtrim" / place).is_file()
    (start,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    command = start.partition("=")[2].split()
    with reflecting(alone, *into(clean), *AS_THE_UNIT, *command):
        assert answered(alone, *into(clean), "tailtrim-agent") == 20
    must([*into(clean), "dpkg", "--purge", "tailtrim-agent"])
    assert files() == before


def test_the_image_is_built_from_debian_and_the_package(alone: Host, tmp_path: Path) -> None:
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    context = made("tailtrim-agent_*.deb").parent
    places = ("--root", tmp_path / "storage", "--runroot", tmp_path / "run")

    def buildah(*words: str | Path) -> str:
        command = ["buildah", *places, *words]
        return must(command, BUILDAH_ISOLATION="chroot", STORAGE_DRIVER="vfs").strip()

    definition = PROJECT / "packaging" / "Containerfile"
    try:
        base = buildah("from", "scratch")
        buildah("add", "--quiet", base, unpacked("bookworm-clean"), "/")
        buildah("commit", "--quiet", "--rm", base, "localhost/debian")
        buildah("build", "--from", "localhost/debian", "--pull-never", "--file", definition,
                "--tag", "localhost/agent", context)  # fmt: skip
        container = buildah("from", "localhost/agent")
        root = Path(buildah("mount", container))
        settings = json.loads(buildah("inspect", container))["OCIv1"]["config"]
        agent = [*into(root), *settings["Entrypoint"]]
        assert not list((root / "tmp").iterdir())
        with reflecting(alone, *agent, "reflect", "--stamp", "862"):
            assert answered(alone, *agent) == 20
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")


def test_the_wheel_is_all_that_the_demo_needs(tmp_path: Path) -> None:
    wheel = made("tailtrim-*.whl")
    root = [*entering("bookworm-minimal"), "env", "PATH=/usr/bin:/usr/sbin"]
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*root, *words], capture_output=True, text=True, check=False, env=mine, cwd=tmp_path
        )

    def pip(*words: str | Path) -> None:
        done = run("venv/bin/pip", "install", "--quiet", "--no-compile", *words)
        if "connection" in done.stderr.lower():
            pytest.skip(f"pip cannot fetch what the wheel needs: {done.stderr}")
        assert done.returncode == 0, done.stderr

    made_here = run("python3", "-m", "venv", "venv")
    assert made_here.returncode == 0, made_here.stdout + made_here.stderr
    pip(wheel)
    done = run("venv/bin/tailtrim", "run", "demo")
    assert done.returncode == 0, done.stderr
    assert "pip install 'tailtrim[pictures]'" in done.stderr
    outcomes = [json.loads(p.read_text()) for p in tmp_path.glob("results/demo/run-*/outcome.json")]
    assert [one["failed"] for one in outcomes] == [None] * DEMO_RUNS
    pip("tailtrim[pictures]")
    done = run("venv/bin/tailtrim", "report", "results/demo")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/demo/report/report.html").is_file()
    pip("tailtrim[release]")
    (tmp_path / "LICENSE").write_text("Anybody may use these data.\n")
    (tmp_path / "CITATION.cff").write_text(CITATION)
    (tmp_path / wheel.name).write_bytes(wheel.read_bytes())
    authored = ("--license", "LICENSE", "--citation", "CITATION.cff", "--wheel", wheel.name)
    done = run("venv/bin/tailtrim", "release", "results/demo", "--out", "released", *authored)
    assert done.returncode == 0, done.stderr
    # A reader has the release and the wheel in it, and no extras.
    assert run("python3", "-m", "venv", "reader").returncode == 0
    read = run("reader/bin/pip", "install", "--quiet", f"released/software/{wheel.name}")
    assert read.returncode == 0, read.stderr
    done = run("reader/bin/tailtrim", "verify", "released", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {one["level"]: one["verdict"] for one in json.loads(done.stdout)["levels"]}
    assert verdicts == {
        **dict.fromkeys(("files", "grid", "numbers", "validity"), "pass"),
        **dict.fromkeys(("figures", "claims", "rerun"), "skipped"),
    }
