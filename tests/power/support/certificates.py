"""A certificate that no authority signed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tools import OPENSSL, need

if TYPE_CHECKING:
    from pathlib import Path


class Files(NamedTuple):
    """Where it is."""

    certificate: Path
    key: Path


def made(folder: Path) -> Files:
    """Make one for 127.0.0.1, for a day."""
    need(OPENSSL)
    files = Files(folder / "certificate.pem", folder / "key.pem")
    subprocess.run(
        [
            *(OPENSSL.program, "req", "-x509", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
            *("-subj", "/CN=outlet", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", str(files.certificate), "-keyout", str(files.key)),
        ],
        check=True,
        capture_output=True,
    )
    return files
