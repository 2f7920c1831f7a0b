from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

import tailtrim
from tailtrim.publishing.export import FORMATS, convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeRun = Callable[..., tailtrim.RunDirectory]

SECOND = 10**9

# The others are of what `tailtrim ping` measured, see tests/roundtrip, and of a trace.
OF_CAPTURES = sorted(set(FORMATS) - {"hpct", "perfetto"})


@pytest.mark.parametrize("format_", OF_CAPTURES)
def test_every_format_makes_the_folder_and_leaves_only_its_files(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, format_: str
) -> None:
    out = tmp_path / "new" / "folder"
    conversion = convert(testpmd, format_, out)
    assert sorted(conversion.files) == sorted(out.iterdir())
    again = {path: path.read_bytes() for path in conversion.files}
    assert convert(testpmd, format_, out) == conversion
    assert {path: path.read_bytes() for path in out.iterdir()} == again


@pytest.mark.parametrize("format_", OF_CAPTURES)
def test_a_run_without_samples_gives_valid_files(
    make_run: MakeRun, tmp_path: Path, format_: str
) -> None:
    conversion = convert(make_run([(0, None), (SECOND, None)]), format_, tmp_path / "out")
    assert conversion.files
    assert all(path.stat().st_size for path in conversion.files)
    assert conversion.notices == ()


@pytest.mark.parametrize(
    ("format_", "options", "text"),
    [
        (
            "xlsx",
            {},
            "unknown format 'xlsx', expected one of hgrm, hlog, hpct, csv, openmetrics, perfetto",
        ),
        ("hgrm", {"significant_digits": 6}, "6 significant digits, expected 1 to 5"),
        ("hlog", {"significant_digits": 0}, "0 significant digits, expected 1 to 5"),
        ("csv", {"bucket_ns": 0}, "buckets of 0 ns, expected at least 1"),
    ],
)
def test_options_that_make_no_sense(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, format_: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        convert(testpmd, format_, tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format_", OF_CAPTURES)
def test_a_folder_that_cannot_be_made(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, format_: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(tailtrim.OutputError, match=r"file.*cannot be written: "):
        convert(testpmd, format_, tmp_path / "file")


@pytest.mark.parametrize(
    ("format_", "table"),
    [
        ("hgrm", "histogram"),
        ("hlog", "sample"),
        ("hlog", "second"),
        ("csv", "histogram"),
        ("csv", "worst"),
        ("csv", "gap"),
        ("csv", "second"),
    ],
)
def test_a_table_that_is_missing_or_damaged_leaves_what_was_there(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, format_: str, table: str
) -> None:
    out = tmp_path / "out"
    before = {path: path.read_bytes() for path in convert(testpmd, format_, out).files}
    shutil.copytree(testpmd.path, tmp_path / "testpmd")
    broken = tailtrim.RunDirectory(tmp_path / "testpmd")
    parquet = broken.path / f"{table}.parquet"

    parquet.write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(tailtrim.RunDirectoryError, match=rf"{table}\.parquet: the table cannot"):
        convert(broken, format_, out)
    parquet.unlink()
    with pytest.raises(tailtrim.RunDirectoryError, match=rf"{table}\.parquet: the table cannot"):
        convert(broken, format_, out)
    other = "burst" if table != "sample" else "histogram"
    shutil.copy(testpmd.path / f"{other}.parquet", parquet)
    with pytest.raises(tailtrim.RunDirectoryError, match=rf"{table}\.parquet: "):
        convert(broken, format_, out)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(("format_", "table"), [("hgrm", "histogram"), ("hlog", "sample")])
def test_a_table_of_another_run_is_no_silent_result(
    testpmd: tailtrim.RunDirectory, make_run: MakeRun, tmp_path: Path, format_: str, table: str
) -> None:
    run = make_run([(second * SECOND, 10**6) for second in range(3)])
    other = make_run([(second * SECOND, 1000) for second in range(4)], name="other")
    shutil.copy(other.path / f"{table}.parquet", run.path)
    with pytest.raises(tailtrim.RunDirectoryError, match="samples found: 4, expected 3 "):
        convert(run, format_, tmp_path / "out")
    shutil.copy(testpmd.path / "sample.parquet", other.path)
    with pytest.raises(tailtrim.RunDirectoryError, match="maximum"):
        convert(other, "hlog", tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))
