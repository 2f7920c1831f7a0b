"""The git of nodes: a clone of a repository that something stands in for is a copy of that.

All else goes to the git of the node's host.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

#: The folder of a node that has what stands in: ``repositories.json`` has the URLs, in order.
SHARED = Path("/run/tailtrim")
#: Of a copy that has no history: a file with the URL.
MARK = ".tailtrim-clone"
# Of git's options, those that take the next word.
_GLOBAL = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
_OF_CLONE = (
    *("-b", "--branch", "--depth", "-j", "--jobs", "-o", "--origin", "-c", "--config", "--filter"),
    *("--reference", "--reference-if-able", "--separate-git-dir", "--template", "--revision"),
    *("-u", "--upload-pack", "--shallow-since", "--shallow-exclude", "--server-option"),
    "--bundle-uri",
)
#: Verbs for which a copy without history has nothing to do.
_IDLE = ("checkout", "switch", "submodule", "fetch", "pull", "reset")


def main() -> int:
    """Do what the arguments say."""
    words = sys.argv[1:]
    number = _first(words, _GLOBAL)
    before, verb, rest = words[:number], "".join(words[number : number + 1]), words[number + 1 :]
    folder = Path(*(before[at + 1] for at, word in enumerate(before[:-1]) if word == "-C"))
    if verb == "clone":
        url, target = [*_arguments(rest), "", ""][:2]
        urls = json.loads((SHARED / "repositories.json").read_text("utf-8"))
        if plain(url) in urls:
            source = SHARED / "repositories" / str(urls.index(plain(url)))
            return _copy(source, folder / (target or plain(url).rpartition("/")[2]), url)
    here = folder.resolve()
    copy = next((top for top in (here, *here.parents) if (top / MARK).exists()), None)
    if copy is not None and verb in _IDLE:
        sys.stderr.write(f"git {verb}: nothing done: {copy} only stands in for a repository\n")
        return 0
    return _real(words)


def plain(url: str) -> str:
    """Return a URL without what does not matter.

    >>> plain("https://github.com/emmericp/MoonGen.git/")
    'https://github.com/emmericp/MoonGen'

    """
    return url.rstrip("/").removesuffix(".git")


def _first(words: list[str], valued: tuple[str, ...]) -> int:
    """Return the place of the first word that is neither an option nor its value."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in valued else 1
    return at


def _arguments(words: list[str]) -> list[str]:
    found = []
    while words := words[_first(words, _OF_CLONE) :]:
        found.append(words[0])
        words = words[1:]
    return found


def _copy(source: Path, target: Path, url: str) -> int:
    if target.exists() and any(target.iterdir()):
        why = f"destination path '{target}' already exists and is not an empty directory."
        sys.stderr.write(f"fatal: {why}\n")
        return 128
    sys.stderr.write(f"Cloning into '{target}' what stands in for {url}\n")
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    if not (target / ".git").exists():
        (target / MARK).write_text(f"{url}\n", "utf-8")
    return 0


def _real(words: list[str]) -> int:
    """Become the host's program of this name: another one than this."""
    places = (Path(way) / "git" for way in os.environ.get("PATH", "").split(os.pathsep))
    own = Path(__file__).resolve()
    found = next((one for one in places if one.is_file() and one.resolve() != own), None)
    if found is not None:
        os.execv(found, ["git", *words])  # noqa: S606 - no shell is wanted
    sys.stderr.write("git: not installed on this node's host\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
