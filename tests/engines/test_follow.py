"""``decode --follow``: rotating captures give the same result as the whole capture."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from decoded_rows import rows
from random_captures import Trouble, packets, pair, write
from releases import of_release

from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode, follow
from tailtrim.analysis.decode import following as following_module
from tailtrim.analysis.decode.rotating import File, Rotation
from tailtrim.errors import CaptureError, DecodedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Whether there are bursts is settled by the first 256 KiB: so much is in the first file.
FIRST = 3_600
TROUBLE = Trouble(packets=6_000, lost=0.1, copied=0.1, disorder_ns=200_000_000, step_ns=100_000)


def facts(decoded: Decoded, number: int) -> dict[str, object]:
    """Return what is said of a capture, but for its name."""
    found: dict[str, dict[str, object]] = json.loads(decoded.captures[number].facts)
    del found["tap"]["capture"]
    return dict(found)


def same(followed: Decoded, whole: Decoded) -> None:
    for one in whole.captures:
        assert rows(followed, one.number) == rows(whole, one.number)
        assert facts(followed, one.number) == facts(whole, one.number)
        assert followed.captures[one.number].rows == one.rows


def stopped() -> threading.Event:
    """Return what ends following once all that is there is decoded."""
    stop = threading.Event()
    stop.set()
    return stop


def parted(folder: Path, whole: list[tuple[int, int]], files: int, *, first: int = 0) -> list[Path]:
    """Write a capture to several files, oldest first."""
    folder.mkdir()
    rest = whole[first:]
    each = -(-len(rest) // files)
    parts = [rest[start : start + each] for start in range(0, len(rest), each)]
    parts[0] = whole[:first] + parts[0]
    return [write(folder / f"part{number}.pcap", packets) for number, packets in enumerate(parts)]


@contextmanager
def following(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tailtrim.cli", "decode", "--follow", *arguments],
        env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        process.wait()


def until(condition: object, what: str) -> None:
    assert callable(condition)
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s, what
        time.sleep(0.02)


def test_files_are_one_capture(tmp_path: Path) -> None:
    ingress, egress = packets(21, TROUBLE)
    whole = decode(pair(tmp_path, 21, TROUBLE), tmp_path / "whole", buckets=4)
    parted(tmp_path / "in", ingress, 7, first=FIRST)
    parted(tmp_path / "out", egress, 11, first=FIRST)
    sources = [tmp_path / "in", tmp_path / "out" / "part*.pcap"]
    told: list[tuple[str, str, int]] = []
    followed = follow(
        sources, tmp_path / "followed", stop=stopped(), buckets=4, tell=lambda *of: told.append(of)
    )
    same(followed, whole)
    assert [file for source, file, _ in told if source == str(sources[1])] == [
        f"part{number}.pcap" for number in range(11)
    ]
    with engines.connect("duckdb") as at:
        found = engines.analyze(at, followed)
        expected = engines.analyze(at, whole)
    assert found.histogram.equals(expected.histogram)
    assert found.summary.ingress == expected.summary.ingress


def test_it_is_taken_up_again(tmp_path: Path) -> None:
    entered, _ = packets(22, TROUBLE)
    whole = decode([write(tmp_path / "one.pcap", entered)], tmp_path / "whole", buckets=2)
    files = parted(tmp_path / "in", entered, 5, first=FIRST)
    aside = tmp_path / "aside"
    aside.mkdir()
    for path in files[2:]:
        path.rename(aside / path.name)
    out = tmp_path / "followed"
    first = follow([tmp_path / "in"], out, stop=stopped(), buckets=2)
    assert first.captures[0].rows < whole.captures[0].rows
    # A ring removes what it wrote first.
    for path in files[:2]:
        path.unlink()
    for path in files[2:]:
        shutil.copy(aside / path.name, path)
    again = follow([tmp_path / "in"], out, stop=stopped(), buckets=2)
    assert again.id == first.id
    same(again, whole)


def test_the_file_that_is_being_written_to_is_left(tmp_path: Path) -> None:
    entered, _ = packets(23, Trouble(packets=300))
    first, last = parted(tmp_path / "in", entered, 2)
    rotation = Rotation(str(tmp_path / "in"))
    with last.open("ab"):
        assert [file.path for file in rotation.complete()] == [first]
        decoded = follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())
        assert decoded.captures[0].rows == 150
    assert [file.path for file in rotation.complete()] == [first, last]
    decoded = follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())
    assert decoded.captures[0].rows == 300


@pytest.mark.parametrize(
    "program", ["tcpdump", pytest.param("dumpcap", marks=pytest.mark.packages)]
)
def test_a_real_writer(tmp_path: Path, program: str) -> None:
    command = of_release("sid-peers", program) if program == "dumpcap" else [program]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{program} is missing")
    trouble = Trouble(packets=40_000, step_ns=100_000)
    capture, _ = pair(tmp_path, 24, trouble)
    ring = tmp_path / "ring"
    ring.mkdir(mode=0o777)
    ring.chmod(0o777)
    writing = {
        "tcpdump": ["-r", "-", "-w", str(ring / "c.pcap"), "-C", "1", "-Z", "root", "--nano"],
        "dumpcap": ["-q", "-i", "-", "-w", str(ring / "c.pcapng"), "-b", "filesize:300"],
    }[program]
    out = tmp_path / "followed"
    with following(ring, "--out", out, "--buckets", "4") as process:
        until((out / ".decode").parent.exists, "following does not start")
        writer = subprocess.Popen(
            [*command, *writing],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert writer.stdin is not None
        content = capture.read_bytes()
        for start in range(0, len(content), 200_000):
            writer.stdin.write(content[start : start + 200_000])
            writer.stdin.flush()
            time.sleep(0.1)
        _, said = writer.communicate(timeout=60)
        if writer.returncode != 0:
            pytest.skip(f"{program} does not write here: {said.decode().strip()[-200:]}")
        files = len(list(ring.iterdir()))
        assert files > 2
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert told.count(" packets") == files
    assert "40,000 packets" in printed
    whole = decode([capture], tmp_path / "whole", buckets=4)
    assert rows(Decoded(out), 0) == rows(whole, 0)


def test_killed_while_a_ring_goes_round(tmp_path: Path) -> None:
    entered, _ = packets(25, Trouble(packets=20_000, step_ns=100_000))
    whole = decode([write(tmp_path / "one.pcap", entered)], tmp_path / "whole", buckets=4)
    out, ring, spare = tmp_path / "followed", tmp_path / "ring", tmp_path / "spare"
    files = parted(spare, entered, 20)
    ring.mkdir()
    notes = out / ".decode" / "capture-0"
    kills = 0
    for number, path in enumerate(files[:-1]):
        path.rename(ring / path.name)
        if number % 5 != 4:
            continue
        with following(ring, "--out", out, "--buckets", "4") as process:
            # The last of them is killed while it works, the others at any time.
            until(lambda: len(list(notes.glob("part-*[0-9]"))) > number - 2, "nothing is decoded")  # noqa: B023
            process.kill()
            process.wait()
            kills += 1
        done = [json.loads(note.read_text()) for note in sorted(notes.glob("part-*[0-9]"))]
        # Only what is noted may go.
        for note in done:
            (ring / note["file"].split(" ")[0]).unlink(missing_ok=True)
    assert kills == 3
    with pytest.raises(DecodedError, match="not a decoded directory"):
        Decoded(out)
    with following(ring, "--out", out, "--buckets", "4") as process:
        until(lambda: len(list(notes.glob("part-*[0-9]"))) == 19, "not all files are decoded")
        files[-1].rename(ring / files[-1].name)
        until(lambda: len(list(notes.glob("part-*[0-9]"))) == 20, "not all files are decoded")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    same(Decoded(out), whole)


def test_a_ring_that_is_too_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, _ = packets(26, Trouble(packets=100))
    (path,) = parted(tmp_path / "in", entered, 1)
    stale = File(path, changed_ns=1, bytes=1)
    monkeypatch.setattr(Rotation, "complete", lambda _: [stale])
    with pytest.raises(CaptureError, match="was written to again"):
        follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())
    assert not list((tmp_path / "followed").rglob("*.parquet"))


def test_a_capture_that_fails_ends_the_other(tmp_path: Path) -> None:
    entered, left = packets(28, TROUBLE)
    parted(tmp_path / "in", entered, 2, first=FIRST)
    good, bad = parted(tmp_path / "out", left, 2, first=FIRST)
    bad.write_bytes(b"no capture")
    sources = [tmp_path / "in", tmp_path / "out"]
    # Nobody stops it.
    with pytest.raises(CaptureError, match=bad.name):
        follow(sources, tmp_path / "followed", stop=threading.Event(), buckets=2)
    kept = Decoded(tmp_path / "followed")
    whole = decode([write(tmp_path / "in.pcap", entered), good], tmp_path / "whole", buckets=2)
    assert [one.rows for one in kept.captures] == [one.rows for one in whole.captures]


def test_killed_before_anything_was_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, _ = packets(29, Trouble(packets=100))
    (path,) = parted(tmp_path / "in", entered, 1)

    def killed(*_: object) -> int:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(following_module, "read_rows", killed)
        with pytest.raises(SystemExit):
            follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())
    path.unlink()
    with pytest.raises(CaptureError, match="no file was complete"):
        follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())


def test_a_file_that_is_compressed_later_is_not_decoded_again(tmp_path: Path) -> None:
    entered, _ = packets(30, TROUBLE)
    whole = decode([write(tmp_path / "one.pcap", entered)], tmp_path / "whole", buckets=2)
    first, last = parted(tmp_path / "in", entered, 2, first=FIRST)
    last.rename(tmp_path / last.name)
    follow([tmp_path / "in"], tmp_path / "followed", stop=stopped(), buckets=2)
    with gzip.open(f"{first}.gz", "wb") as copy:
        copy.write(first.read_bytes())
    (tmp_path / last.name).rename(last)
    # A copy in the making is not looked at.
    assert [file.path for file in Rotation(str(tmp_path / "in")).complete()] == [first, last]
    first.unlink()
    same(follow([tmp_path / "in"], tmp_path / "followed", stop=stopped(), buckets=2), whole)


def test_a_clock_that_was_set_back_while_files_rotate(tmp_path: Path) -> None:
    entered, _ = packets(31, TROUBLE)
    whole = decode([write(tmp_path / "one.pcap", entered)], tmp_path / "whole", buckets=2)
    first, last = parted(tmp_path / "in", entered, 2, first=FIRST)
    os.utime(last, (1, 1))
    with last.open("ab"):
        follow([tmp_path / "in"], tmp_path / "followed", stop=stopped(), buckets=2)
    # Its name and content are the same, its time is not.
    os.utime(first, (2, 2))
    os.utime(last, (1, 1))
    same(follow([tmp_path / "in"], tmp_path / "followed", stop=stopped(), buckets=2), whole)


def test_a_file_that_was_decoded_before_it_was_complete_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, _ = packets(32, TROUBLE)
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in" / "part.pcap", entered[: FIRST + 5])
    # Of another user: the kernel does not tell whether it is closed, and it is not the newest one.
    monkeypatch.setattr(Rotation, "complete", lambda _: [File.at(path)])
    follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())
    write(path, entered)
    with pytest.raises(CaptureError, match=f"{path}: had .* when it was decoded"):
        follow([tmp_path / "in"], tmp_path / "followed", stop=stopped())


@pytest.mark.parametrize(
    ("source", "told"),
    [("nowhere/at-all/*", "folder or a pattern"), ("", "no file was complete")],
)
def test_nothing_to_follow(tmp_path: Path, source: str, told: str) -> None:
    with pytest.raises(CaptureError, match=told):
        follow([tmp_path / source], tmp_path / "followed", stop=stopped())


def test_a_directory_that_was_not_followed(tmp_path: Path) -> None:
    captures = pair(tmp_path, 27, Trouble(packets=100))
    decode(captures, tmp_path / "decoded")
    (tmp_path / "in").mkdir()
    with pytest.raises(DecodedError, match="was not followed"):
        follow([tmp_path / "in"], tmp_path / "decoded", stop=stopped())
