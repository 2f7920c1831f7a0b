"""Signatures of the checksums by ``ssh-keygen -Y``: keys that authors have, and nothing to install.

A release brings the public key, which proves that all files are those of one signer. Readers
identify the signer by the fingerprint, or by a list of signers of their own.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release.layout import NAMESPACE, SIGNATURE, SIGNERS, SUMS
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

SSH_KEYGEN = Tool("ssh-keygen", "openssh-client")
_PRINCIPAL = "release"


@dataclass(frozen=True, slots=True)
class Signed:
    """The key that signed a release; ``trusted`` where the reader's list has it."""

    fingerprint: str
    trusted: bool


def put_signer(root: Path, key: Path) -> None:
    """Write the list of signers with the public half of a private key.

    Raises:
        HostError: ``ssh-keygen`` is missing.
        ReleaseError: the key cannot be used.

    """
    public = _run("-y", "-f", str(key), what=f"{key}: not a private key that can be used")
    kind, body, *_ = public.split()
    line = f'{_PRINCIPAL} namespaces="{NAMESPACE}" {kind} {body}\n'
    (root / SIGNERS).write_text(line, encoding="utf-8")


def sign(root: Path, key: Path) -> None:
    """Sign the checksums.

    Raises:
        HostError, ReleaseError: as of :func:`put_signer`.

    """
    (root / SIGNATURE).unlink(missing_ok=True)
    words = ("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(root / SUMS))
    _run(*words, what=f"{key}: the release cannot be signed with it")


def signed(root: Path, signers: Path | None) -> Signed:
    """Check the signature of the checksums.

    Args:
        root: the release.
        signers: the reader's list of signers, as ssh-keygen has it; by default the release's.

    Raises:
        HostError: ``ssh-keygen`` is missing.
        ReleaseError: the signature does not hold.

    """
    listed = signers or root / SIGNERS
    found = ["-s", str(root / SIGNATURE), "-n", NAMESPACE]
    wrong = f"{root / SIGNATURE}: does not hold for {SUMS} with the signers of {listed}"
    sums = (root / SUMS).read_bytes()
    # By its place: a principal of the list may have any name.
    names = _run("-Y", "find-principals", "-f", str(listed), *found[:2], what=wrong).split()
    if not names:
        raise ReleaseError(wrong)
    words = ("-Y", "verify", "-f", str(listed), "-I", names[0], *found)
    told = _run(*words, what=wrong, given=sums)
    fingerprint = next((word for word in told.split() if word.startswith("SHA256:")), told.strip())
    return Signed(fingerprint, trusted=signers is not None)


def _run(*words: str, what: str, given: bytes | None = None) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - paths are whole words
            [SSH_KEYGEN.program, *words], input=given or b"", capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise SSH_KEYGEN.missing() from error
    if ended.returncode != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise ReleaseError(f"{what}{': ' + lines[0] if lines else ''}")
    return ended.stdout.decode(errors="replace")
