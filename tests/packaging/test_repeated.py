"""Tests that fail on a busy machine run once more; what fails twice fails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTHON = """
from pathlib import Path

def test_once():
    there = Path(__file__).with_name("there")
    before = there.exists()
    there.touch()
    assert before

def test_always():
    assert {holds}
"""

RUST = """
#[test]
fn once() {{
    let there = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("there");
    let before = there.exists();
    std::fs::write(there, "").unwrap();
    assert!(before);
}}

#[test]
fn always() {{
    assert!({holds});
}}
"""


def outcome(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "packaging" / "tests.sh", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )


@pytest.mark.parametrize("holds", [True, False])
def test_python(tmp_path: Path, *, holds: bool) -> None:
    (tmp_path / "test_it.py").write_text(PYTHON.format(holds=holds))
    ended = outcome(tmp_path, "pytest", "test_it.py")
    assert (ended.returncode == 0) == holds
    assert "failed, and runs once more" in ended.stderr
    assert ("passed the second time" in ended.stderr) == holds
    # Only what failed.
    assert ("1 passed, 1 deselected" in ended.stdout) == holds


def test_python_that_cannot_be_collected_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import nothing_of_that_name")
    ended = outcome(tmp_path, "pytest", "test_it.py")
    assert ended.returncode == 2
    assert ended.stderr == ""


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "it"\nedition = "2024"\n')
    (tmp_path / "Cargo.lock").write_text(
        'version = 4\n\n[[package]]\nname = "it"\nversion = "0.0.0"\n'
    )
    return tmp_path


@pytest.mark.parametrize("holds", [True, False])
def test_rust(crate: Path, *, holds: bool) -> None:
    (crate / "src" / "lib.rs").write_text(RUST.format(holds=str(holds).lower()))
    ended = outcome(crate, "cargo")
    assert (ended.returncode == 0) == holds, ended.stderr
    assert "REPEATED: cargo test --locked --lib: failed, and runs once more" in ended.stderr
    assert ("passed the second time" in ended.stderr) == holds


def test_rust_that_does_not_compile_is_not_repeated(crate: Path) -> None:
    (crate / "src" / "lib.rs").write_text("it")
    ended = outcome(crate, "cargo")
    assert ended.returncode == 101
    assert "REPEATED" not in ended.stderr


def test_rust_that_is_ignored_otherwise_is_repeated_too(crate: Path) -> None:
    source = RUST.format(holds="true").replace("#[test]", "#[test]\n#[ignore]")
    (crate / "src" / "lib.rs").write_text(source)
    ended = outcome(crate, "cargo", "--", "--include-ignored")
    assert ended.returncode == 0, ended.stderr
    assert "passed the second time" in ended.stderr
    assert "2 passed; 0 failed; 0 ignored" in ended.stdout
