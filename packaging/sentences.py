"""Names every comment and docstring whose first sentence begins with What, Who, Whose or How.

In the header of a file, Where, Whether and Those are refused, too. Such a sentence describes a
thing by a clause and leaves its name to the reader. A first sentence names the thing (noun) or the
action (verb and object). A question, which ends with a question mark, is fine.

    sentences.py [FOLDER…]    of the files below these folders; without any, of all
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = ("*.py", "*.rs", "*.c", "*.h", "*.sh")
#: Where a comment or docstring begins, and its first word.
_COMMENT = re.compile(r'^\s*(?:/{2,3}!?|/\*\*?|#:?|(?:[rR]?"""))\s?(\S.*)$')
_HEADLESS = re.compile(r"(?:What|Who|Whose|How)\b")
#: Of a file's header, which names the file's subject.
_HEADLESS_FILE = re.compile(r"(?:What|Who|Whose|How|Where|Whether|Those)\b")
_END = re.compile(r"[.?!:](?:\s|$|\")")


def headless(path: Path) -> Iterator[str]:
    """Yield the lines of a file at which such a comment begins."""
    lines = path.read_text(encoding="utf-8").splitlines()
    inside = False
    for number, line in enumerate(lines, 1):
        found = _COMMENT.match(line)
        if found and not inside and (_HEADLESS_FILE if number == 1 else _HEADLESS).match(found[1]):
            # The sentence may go on over more lines.
            text = " ".join(part.strip(" /#!*") for part in [found[1], *lines[number : number + 3]])
            end = _END.search(text)
            if end is None or text[end.start()] != "?":
                yield f"{path}:{number}: {found[1]}"
        inside = bool(found) and not line.lstrip().startswith('"""')


def main() -> None:
    """Exit with 1 where there is one."""
    patterns = [f"{folder}/{source}" for folder in sys.argv[1:] for source in SOURCES] or SOURCES
    listed = subprocess.run(["git", "ls-files", *patterns], capture_output=True, check=True).stdout
    paths = [path for path in map(Path, listed.decode().splitlines()) if path.is_file()]
    found = [line for path in paths for line in headless(path)]
    if found:
        sys.exit("\n".join([*found, f"{len(found)} first sentences without a noun or a verb"]))


if __name__ == "__main__":
    main()
