"""Compares the words that checks of the audit quote with a kernel's source.

    references.py VERSION FOLDER

VERSION is as in crates/audit/src/checks/*.json (Linux 7.2.13), FOLDER holds its source.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

CHECKS = Path(__file__).parent.parent / "crates/audit/src/checks"


def plain(text: str) -> str:
    """Return a text without the signs of C comments, and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"\n\s*\*(?!/) ?", "\n ", text))


def main(version: str, folder: str) -> int:
    """Print each quotation that does not stand in its document; return 1 where there is one."""
    quoted = [
        (check["id"], reference["document"], reference["words"])
        for file in sorted(CHECKS.glob("*.json"))
        for check in json.loads(file.read_text())
        for reference in check.get("confirmed", [])
        if reference["version"] == version
    ]
    wrong = 0
    for check, document, words in quoted:
        path = Path(folder) / document
        if not path.is_file() or plain(words) not in plain(path.read_text(errors="replace")):
            sys.stderr.write(f"{check}: {document} does not say: {words}\n")
            wrong += 1
    sys.stdout.write(f"{version}: {len(quoted)} quotations, {wrong} not found\n")
    return 0 if quoted and not wrong else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
