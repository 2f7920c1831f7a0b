"""A private PostgreSQL server that lives as long as it is needed: unix socket only, own folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_SOCKET_PATH = 107
START_S = 30

#: Stock settings but for these, all to the server's advantage (two cores, sorts that fit).
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "1GB",
    "work_mem": "512MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
}


class ClusterError(Exception):
    """There is no PostgreSQL here or it does not start; the text says why."""


class Server(NamedTuple):
    """A running server: its first process, and the folder of its socket."""

    pid: int
    socket: Path


def program(name: str) -> Path | None:
    """Find a program of PostgreSQL, on the path or where Debian puts the newest."""
    if found := shutil.which(name):
        return Path(found)
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    return max(versions, key=lambda path: float(path.parts[-3]), default=None)


@contextmanager
def cluster(folder: Path, prefix: Sequence[str]) -> Iterator[Server]:
    """Create a cluster in a new folder, run it (commands begin with prefix), remove it.

    Raises:
        ClusterError: it cannot be had.

    """
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        raise ClusterError("initdb and postgres are not installed")
    if len(str(folder / ".s.PGSQL.5432")) > LONGEST_SOCKET_PATH:
        raise ClusterError(f"{folder} is too long a path for a unix socket")
    user = _user()
    folder.mkdir(mode=0o700)
    try:
        if user:
            shutil.chown(folder, user)
        data = folder / "data"
        options = ["--username=benchmark", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        initialized = subprocess.run(
            [initdb, "--locale=C", *options, "--pgdata", data],
            user=user,
            cwd=folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
        if initialized.returncode:
            raise ClusterError(f"initdb: {initialized.stderr.strip().splitlines()[-1:]}")
        with _running([*prefix, str(postgres)], folder, user) as process:
            yield Server(process.pid, folder)
    except PermissionError as error:
        raise ClusterError(f"{user} cannot use {folder}: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(
    command: Sequence[str], folder: Path, user: str | None
) -> Iterator[subprocess.Popen[bytes]]:
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "-D", folder / "data", "-k", folder, *settings],
            user=user,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _await_start(process, folder)
            yield process
        finally:
            # SIGQUIT is the immediate shutdown: nothing here is worth a checkpoint.
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_start(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    pidfile = folder / "data" / "postmaster.pid"
    while time.monotonic() < deadline and process.poll() is None:
        # The last line of the file says "ready" once connections are accepted.
        if pidfile.exists() and pidfile.read_text().split()[-1:] == ["ready"]:
            return
        time.sleep(0.05)
    log = (folder / "log").read_text(errors="replace").strip().splitlines()
    raise ClusterError(f"postgres does not start: {log[-1] if log else 'no message'}")


def _user() -> str | None:
    """PostgreSQL refuses to run as root: the user to become, None to stay."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for user in ("postgres", "nobody"):
        if user in known:
            return user
    raise ClusterError("PostgreSQL does not run as root and there is no user postgres or nobody")
