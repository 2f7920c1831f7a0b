"""Names every source file and Python function that is too long; clippy has Rust's functions."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
#: Files that would be harder to read in parts, each with its reason; up to so many lines.
LONG_FILE_LINES = 600
LONG_FILES = {
    "crates/tail/src/analysis/tap.rs": "one type, whose methods share its state",
    "crates/tail/src/capture/pcap.rs": "a decoder, whose fast path and slow path are read together",
    "crates/tail/src/capture/pcapng.rs": "the same",
    "crates/tail/src/capture/reader.rs": "one type, whose methods share its state",
}
FUNCTION_LINES = 80
SOURCES = ("*.rs", "*.py", "*.c", "*.h", "*.sh", "*.js", "*.css", "*.j2")


def tracked() -> list[Path]:
    """Return the source files that git knows and that are still there."""
    listed = subprocess.run(["git", "ls-files", *SOURCES], capture_output=True, check=True).stdout
    return [path for path in map(Path, listed.decode().splitlines()) if path.is_file()]


def too_long(path: Path) -> Iterator[str]:
    """Say what of a file is too long."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    most = LONG_FILE_LINES if str(path) in LONG_FILES else FILE_LINES
    if lines > most:
        yield f"{path}: {lines} lines, at most {most}"
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                where = f"{path}:{node.lineno}: {node.name}"
                yield f"{where}: {lines} lines, at most {FUNCTION_LINES}"


def main() -> None:
    """Exit with 1 where something is too long."""
    found = [line for path in tracked() for line in too_long(path)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
