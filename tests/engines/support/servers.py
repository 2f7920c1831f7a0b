"""The servers that the tests start themselves: PostgreSQL, a Spark cluster, Sail, an S3 store."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Where Debian puts the server's programs; the newest that is there.
_DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def _unprivileged() -> list[str]:
    """Return what a command begins with to run as somebody other than root."""
    if os.getuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]


@contextmanager
def postgres(folder: Path, *, beside: Sequence[str] = ()) -> Iterator[str]:
    """Run a server in ``folder``, reachable through a socket there; yields its DSN.

    The command of the server begins with ``beside``.
    """
    if not _DEBIAN:
        pytest.skip("PostgreSQL is missing: no initdb below /usr/lib/postgresql")
    programs, prefix = _DEBIAN[-1].parent, _unprivileged()
    if prefix:
        shutil.chown(folder, "postgres")
        # The socket must be reachable, and pytest's folders are private.
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o777 == 0o700:
                parent.chmod(0o711)
    data = folder / "data"
    make: list[str | Path] = [
        programs / "initdb",
        "-D",
        data,
        "-A",
        "trust",
        "-U",
        "tester",
        "--no-sync",
    ]
    subprocess.run([*prefix, *make], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    server = subprocess.Popen(
        [
            *beside,
            *prefix,
            programs / "postgres",
            *("-D", data, "-k", folder, "-c", "listen_addresses="),
        ],
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        _wait(lambda: _accepts(data / "postmaster.pid"), server, "PostgreSQL")
        yield f"host={folder} dbname=postgres user=tester"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@contextmanager
def sail(folder: Path) -> Iterator[str]:
    """Run Sail in a process of its own; yields its URL."""
    if find_spec("pysail") is None or find_spec("pyspark") is None:
        pytest.skip("Sail is missing: pip install --require-hashes -r requirements-spark.lock")
    port = reserved_port()
    program = (
        "from pysail.spark import SparkConnectServer;"
        f"SparkConnectServer(ip='127.0.0.1', port={port}).start(background=False)"
    )
    with (folder / "sail.log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-c", program], stdout=log, stderr=log)
    try:
        _wait(lambda: _answers(port), server, "Sail")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


class Cluster:
    """A standalone Spark cluster: a master, two workers, a Connect server."""

    def __init__(self, folder: Path, *, executor_mib: int = 700, partitions: int = 4) -> None:
        """Start it, each worker with one core and an executor of so much memory."""
        if find_spec("pyspark") is None:
            pytest.skip("Spark is missing: pip install --require-hashes -r requirements-spark.lock")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java: no program java")
        import pyspark  # noqa: PLC0415 - only where it is

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._executor_mib = executor_mib
        self._processes: list[subprocess.Popen[bytes]] = []
        deploy = "org.apache.spark.deploy"
        master, port = reserved_port(), reserved_port()
        self._master = f"spark://127.0.0.1:{master}"
        one = ["--host", "127.0.0.1", "--port", str(master), "--webui-port", "0"]
        self._start("spark-class", f"{deploy}.master.Master", *one, memory="256m")
        _wait(lambda: _answers(master), self._processes[0], "Spark's master")
        self.workers = [self.add_worker() for _ in range(2)]
        settings = {
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.executor.memory": f"{executor_mib}m",
        }
        server = self._start(
            "spark-submit",
            "--master",
            self._master,
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal",
            memory="1g",
        )
        _wait(lambda: _answers(port), server, "Spark Connect")
        self.url = f"sc://127.0.0.1:{port}"

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one core."""
        memory = f"{self._executor_mib + 200}m"
        options = ["--cores", "1", "--memory", memory, "--webui-port", "0", self._master]
        name = "org.apache.spark.deploy.worker.Worker"
        return self._start("spark-class", name, *options, memory="256m")

    def _start(self, program: str, *arguments: str, memory: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_WORKER_DIR": str(self._folder / "work"),
            "SPARK_DAEMON_MEMORY": memory,
        }
        with (self._folder / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [self._home / "bin" / program, *arguments],
                env=environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                # A group of its own: with a worker goes the executor that it started.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def cpu_s(self) -> float:
        """Return the CPU time of all that runs still: servers, executors."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # Behind the name, which may hold blanks: state, parent, group, session; times from
                # the 12th. Python's workers have a group of their own.
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) in {process.pid for process in self._processes}:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """Kill a process with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Kill everything."""
        for process in reversed(self._processes):
            self.kill(process)


@contextmanager
def spark(folder: Path, *, executor_mib: int = 700, partitions: int = 4) -> Iterator[Cluster]:
    """Run a Spark cluster."""
    cluster = Cluster.__new__(Cluster)
    cluster._processes = []  # noqa: SLF001 - closed also when starting fails
    try:
        cluster.__init__(folder, executor_mib=executor_mib, partitions=partitions)  # type: ignore[misc]
        yield cluster
    finally:
        cluster.close()


@contextmanager
def s3(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """Run an S3 server in ``folder``; yields where its bucket is mounted, and the server."""
    # Benchmarks use the other servers, without the tests' folders.
    import tools  # noqa: PLC0415
    from fetched import CRATES  # noqa: PLC0415

    program = CRATES / "s3s-fs"
    if not program.exists():
        pytest.skip("no S3 server here (packaging/fetch.sh s3s compiles it)")
    tools.need(tools.S3FS)
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no file systems in user space: /dev/fuse cannot be opened")
    root, mounted, password = (folder / name for name in ("root", "mounted", "password"))
    (root / "captures").mkdir(parents=True)
    mounted.mkdir()
    password.touch(mode=0o600)
    password.write_text("tester:secret\n")
    port = reserved_port()
    at = ["--host", "127.0.0.1", "--port", str(port)]
    keys = ["--access-key", "tester", "--secret-key", "secret"]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen([program, *at, *keys, root], stdout=log, stderr=log)
        client = None
        try:
            _wait(lambda: _answers(port), server, "the S3 server")
            # A store that does not answer is told after seconds, in place of ten minutes.
            given = ["retries=1", "connect_timeout=2", "readwrite_timeout=5"]
            asked = [f"url=http://127.0.0.1:{port}", "use_path_request_style", *given]
            words = [f"passwd_file={password}", *asked]
            options = [part for word in words for part in ("-o", word)]
            mount = shutil.which("s3fs") or "s3fs"
            command: list[str | Path] = [mount, "captures", mounted, "-f", *options]
            client = subprocess.Popen(command, stdout=log, stderr=log)
            _wait(mounted.is_mount, client, "s3fs")
            yield mounted, server
        finally:
            # It removes its mount when it ends.
            for process in (client, server):
                if process is not None:
                    process.terminate()
                    process.wait(30)


def _accepts(note: Path) -> bool:
    """Whether PostgreSQL takes connections: the socket is there before it does."""
    return note.exists() and note.read_text().split()[-1:] == ["ready"]


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        asking.settimeout(1)
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _wait(ready: object, process: subprocess.Popen[bytes], what: str) -> None:
    assert callable(ready)
    end_s = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, f"{what} ended with {process.returncode}"
        assert time.monotonic() < end_s, f"{what} does not answer"
        time.sleep(0.1)
