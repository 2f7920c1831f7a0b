"""Prints the copyright file of the agent's Debian package, with the licences of what is linked in.

    python packaging/copyright.py TARGET

TARGET is the one that the agent was built for, such as x86_64-unknown-linux-musl. Texts are those
that the crates bring along; a text that several have is printed once.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
AGENT = "tailtrim-agent"
#: Names of files that hold licences; where a crate offers a choice, one of these is enough.
_LICENCES = ("LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*")
_CHOSEN = ("*MIT*", "*BSD*")
#: The text of this licence comes with every Debian.
_APACHE = re.compile(r"Apache License\s+Version 2\.0.*?END OF TERMS AND CONDITIONS", re.DOTALL)
_WHERE = "Apache License, Version 2.0: see /usr/share/common-licenses/Apache-2.0"
_RUST = "The Rust standard library and its dependencies: MIT or Apache-2.0, the Rust project."
#: The C library that is linked into the agent, by the end of the target's name.
_C_LIBRARY = {
    "musl": Path("/usr/share/doc/musl/copyright"),
    "gnu": Path("/usr/share/doc/libc6/copyright"),
}


def main() -> None:
    """Print the file."""
    (target,) = sys.argv[1:]
    told = [(ROOT / name).read_text("utf-8").strip() for name in ("LICENSE", "LICENSE-MIT")]
    told.append(_heading("The program contains these libraries"))
    told.append(_RUST)
    told += [f"The C library ({target}):", _indented(_c_library(target))]
    texts: dict[str, list[str]] = {}
    for package in linked(target):
        name = f"{package['name']} {package['version']} ({package['license']})"
        for text in _texts(package):
            short = _APACHE.sub(_WHERE, text)
            texts.setdefault(short, []).append(name)
    for text, names in texts.items():
        told += [", ".join(names) + ":", _indented(text)]
    sys.stdout.write("\n\n".join(told) + "\n")


def linked(target: str) -> list[dict[str, Any]]:
    """Return the crates whose code is in the agent; macros and what only builds it are not."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    uses = {
        node["id"]: [
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        for node in found["resolve"]["nodes"]
    }
    seen: set[str] = set()
    waiting = [name for name, package in packages.items() if package["name"] == AGENT]
    while waiting:
        one = waiting.pop()
        kinds = {kind for made in packages[one]["targets"] for kind in made["kind"]}
        if one not in seen and "proc-macro" not in kinds:
            seen.add(one)
            waiting += uses[one]
    others = [packages[one] for one in seen if packages[one]["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def _texts(package: dict[str, Any]) -> list[str]:
    """Return the licences of a crate; one without a text has its licence's name and its authors.

    Raises:
        SystemExit: it brings no licence text, and its licence is not Apache-2.0.

    """
    folder = Path(package["manifest_path"]).parent
    files = sorted({place for name in _LICENCES for place in folder.glob(name)})
    if not files and package["license"] == "Apache-2.0":
        return [f"{_WHERE}\nCopyright: {', '.join(package['authors'])}"]
    if not files:
        sys.exit(f"error: {package['name']}: no licence in {folder}")
    if " OR " in package["license"] or "/" in package["license"]:
        chosen = [place for place in files if any(map(place.match, _CHOSEN))]
        files = chosen or files
    return [place.read_text("utf-8").strip() for place in files]


def _c_library(target: str) -> str:
    place = _C_LIBRARY[target.rpartition("-")[2]]
    try:
        return place.read_text("utf-8").strip()
    except OSError as error:
        sys.exit(f"error: {place}: {error.strerror}")


def _heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"


def _indented(text: str) -> str:
    return textwrap.indent(text.replace("\t", "    "), "    ")


if __name__ == "__main__":
    main()
