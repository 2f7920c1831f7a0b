"""Makes a man page of each command from its help, by help2man.

python packaging/man.py FOLDER
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from commands import every

from tailtrim import __version__


def main() -> None:
    """Write ``tailtrim.1``, ``tailtrim-analyze.1`` and so on."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    for command in every():
        made = subprocess.run(
            [
                *("help2man", "--no-info", "--name", command.summary),
                *(
                    "--version-string",
                    __version__,
                    " ".join(map(str, (command.path, *command.words))),
                ),
            ],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        # help2man takes the program alone for the page's name.
        name = command.name.replace(" ", "-")
        page = re.sub(r"^\.TH \S+", f".TH {name.upper()}", made.stdout, flags=re.MULTILINE)
        page = page.replace(f"\n{command.name} \\- ", f"\n{name} \\- ", 1)
        (folder / f"{name}.1").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
