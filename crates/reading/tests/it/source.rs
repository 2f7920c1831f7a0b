//! Captures by name: plain, compressed, cut short, through a pipe, and files that cannot be opened.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tailtrim_reading::source::{CaptureInput, Extent, Reading, open};
use tailtrim_tail::capture::{CaptureError, Format, Record, Remedy};
use tailtrim_tail::signature::{Rewrites, Signature, Signer};
use tempfile::TempDir;

/// A pcap of so many frames that do not compress to nothing.
fn pcap(frames: u32) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut state = 1_u64;
    for index in 0..frames {
        for word in [1, index, 200, 200] {
            file.extend(word.to_le_bytes());
        }
        for _ in 0..25 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(index.into());
            file.extend((state ^ state >> 31).to_le_bytes());
        }
    }
    file
}

const FRAMES: u32 = 5_000;

/// A frame as of the zstd program, with a checksum.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A directory with files in it.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Reads everything, and the error at which it ended.
fn read(source: &mut CaptureInput) -> (Vec<Record>, Option<CaptureError>) {
    let signer = Signer::new(Rewrites::default());
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    loop {
        match source.capture.read(&signer, &mut batch) {
            Ok(true) => records.append(&mut batch),
            Ok(false) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

fn sound(path: &Path) -> (CaptureInput, Vec<Record>) {
    let mut source = open(path, Reading::default()).unwrap();
    let (records, error) = read(&mut source);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(source.capture.name(), path.display().to_string());
    (source, records)
}

fn error(path: &Path) -> CaptureError {
    open(path, Reading::default()).err().unwrap()
}

const SALVAGE: fn() -> Reading = || Reading { salvage: true, ..Reading::default() };

#[test]
fn plain_and_compressed_captures_hold_the_same() {
    let files = Files::new();
    let bytes = pcap(FRAMES);
    // Compression is recognised by content: the names say nothing.
    let (plain, expected) = sound(&files.write("plain.gz", &bytes));
    assert_eq!(expected.len(), FRAMES as usize);
    assert!(matches!(plain.extent, Extent::Plain(size) if size == bytes.len() as u64));
    let half = bytes.len() / 2;
    let compressed = [
        ("zst", zstd(&bytes)),
        ("zst, two frames", [zstd(&bytes[..half]), zstd(&bytes[half..])].concat()),
        ("gz", gzip(&bytes)),
        ("gz, two members", [gzip(&bytes[..half]), gzip(&bytes[half..])].concat()),
    ];
    for (name, compressed) in compressed {
        let (source, records) = sound(&files.write(name, &compressed));
        assert_eq!(records, expected, "{name}");
        assert!(
            matches!(source.extent, Extent::Compressed(size, _) if size == compressed.len() as u64)
        );
        assert_eq!(source.extent.done(0), Some(1.0), "{name}");
    }
}

/// Opens a capture of 1 MB, reads a part of it, and has the file changed before the rest is read.
fn changed(change: impl FnOnce(&mut File), reading: Reading) -> (CaptureInput, Records) {
    let files = Files::new();
    let path = files.write("a.pcap", &pcap(FRAMES));
    let mut source = open(&path, reading).unwrap();
    let mut batch = Vec::new();
    assert!(source.capture.read(&Signer::new(Rewrites::default()), &mut batch).unwrap());
    change(&mut File::options().append(true).open(&path).unwrap());
    let (rest, error) = read(&mut source);
    batch.extend(rest);
    (source, (batch, error))
}

type Records = (Vec<Record>, Option<CaptureError>);

#[test]
fn a_capture_that_is_shortened_while_it_is_read_is_an_error_and_no_crash() {
    // Cut at the end of a record, so that no other error comes; and cut to nothing, which would kill a process that has
    // it mapped.
    for left in [24 + 4_000 * 216, 0] {
        let shorten = |file: &mut File| file.set_len(left).unwrap();
        let (_, (records, error)) = changed(shorten, Reading::default());
        // Records that were read before it was shortened count.
        assert!(records.len() >= 256 && records.len() < FRAMES as usize, "{}", records.len());
        let text = error.unwrap().to_string();
        let expected = format!(
            "/a.pcap: reading failed after byte {}: the file had 1080024 bytes when it was opened and ends after ",
            24 + records.len() * 216
        );
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains("shortened it; expected "), "{text}");
        let (source, (salvaged, none)) = changed(shorten, SALVAGE());
        assert!(none.is_none() && salvaged == records);
        assert!(source.capture.damage().unwrap().to_string().contains("shortened it"));
    }
}

#[test]
fn what_is_appended_while_a_capture_is_read_is_left_out() {
    // The beginning of a record, as a program leaves it that is still writing.
    let append = |file: &mut File| file.write_all(&[1; 100]).unwrap();
    let (_, (records, error)) = changed(append, Reading::default());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(records.len(), FRAMES as usize);
}

#[test]
fn progress_of_a_compressed_capture_is_that_of_the_file() {
    let files = Files::new();
    let path = files.write("a.zst", &zstd(&pcap(20_000)));
    let mut source = open(&path, Reading::default()).unwrap();
    let mut batch = Vec::new();
    assert!(source.capture.read(&Signer::new(Rewrites::default()), &mut batch).unwrap());
    let done = source.extent.done(source.capture.offset()).unwrap();
    assert!(done > 0.0 && done < 1.0, "{done}");
    let plain = Extent::Plain(200);
    assert_eq!((plain.done(0), plain.done(50)), (Some(0.0), Some(0.25)));
    assert_eq!(Extent::Unknown.done(50), None);
}

#[test]
fn moonsniff_captures_are_known_by_their_names() {
    let files = Files::new();
    let bytes: Vec<u8> = (0..3_u32)
        .flat_map(|id| [&(u64::from(id) + 7).to_le_bytes()[..], &id.to_le_bytes()].concat())
        .collect();
    for (name, bytes) in [
        ("a.mscap", bytes.clone()),
        ("b.MSCAP", bytes.clone()),
        ("c.mscap.zst", zstd(&bytes)),
        ("d.mscap.gz", gzip(&bytes)),
    ] {
        let (source, records) = sound(&files.write(name, &bytes));
        assert_eq!(source.capture.format(), Format::Mscap);
        assert_eq!(records.len(), 3);
        assert_eq!((records[2].stamp_ns, records[2].signature), (9, Signature::of_identifier(2)));
    }
    // The first stamp looks like the first two bytes of gzip.
    let mut stamp = 0x8b1f_u64.to_le_bytes().to_vec();
    stamp.extend([1, 0, 0, 0]);
    let (_, records) = sound(&files.write("e.mscap", &stamp));
    assert_eq!(records[0].stamp_ns, 0x8b1f);
    let path = files.write("mscap", &bytes);
    assert!(matches!(error(&path), CaptureError::Format { .. }));
}

#[test]
fn compressed_captures_cut_short() {
    let files = Files::new();
    let bytes = pcap(FRAMES);
    let (_, expected) = sound(&files.write("whole", &bytes));
    for (name, compressed) in [("a.zst", zstd(&bytes)), ("b.gz", gzip(&bytes))] {
        let path = files.write(name, &compressed[..compressed.len() / 2]);
        let mut source = open(&path, Reading::default()).unwrap();
        let (records, error) = read(&mut source);
        let error = error.unwrap();
        assert!(records.len() > 1_000 && records.len() < 4_000, "{}", records.len());
        assert_eq!(records, expected[..records.len()]);
        let offset = 24 + records.len() * 216;
        let text = error.to_string();
        let start = format!("{}: reading failed after byte {offset}: ", path.display());
        assert!(text.starts_with(&start) && text.len() > start.len(), "{text}");
        assert_eq!(error.remedy(), Some(Remedy::Salvage { packets: None }));

        let mut source = open(&path, SALVAGE()).unwrap();
        // Looking ahead first loses no record.
        let signer = Signer::new(Rewrites::default());
        let peeked = source.capture.peek(&signer).unwrap();
        assert_eq!(peeked, records[..peeked.len()]);
        let (salvaged, none) = read(&mut source);
        assert!(none.is_none());
        assert_eq!(salvaged, records);
        assert_eq!(source.capture.damage().unwrap().to_string(), text);
    }
}

#[test]
fn a_small_compressed_capture_cut_short_is_salvaged_after_peeking() {
    let files = Files::new();
    let compressed = gzip(&pcap(100));
    let path = files.write("a.gz", &compressed[..compressed.len() - 20]);
    let signer = Signer::new(Rewrites::default());
    let mut source = open(&path, SALVAGE()).unwrap();
    let peeked = source.capture.peek(&signer).unwrap();
    assert!(!peeked.is_empty());
    assert_eq!(read(&mut source).0, peeked);
    assert!(source.capture.damage().is_some());
}

#[test]
fn damaged_compression_is_reported() {
    let files = Files::new();
    for (name, mut compressed) in [("a.zst", zstd(&pcap(FRAMES))), ("b.gz", gzip(&pcap(FRAMES)))] {
        let middle = compressed.len() / 2;
        compressed[middle..middle + 200].fill(0xff);
        let path = files.write(name, &compressed);
        let (_, error) = read(&mut open(&path, Reading::default()).unwrap());
        // Garbage may be decoded as a wrong record before its checksum is read.
        let error = error.unwrap();
        assert!(matches!(error, CaptureError::Io { .. } | CaptureError::Damaged { .. }), "{error}");
        assert!(error.to_string().starts_with(&path.display().to_string()));
    }
    // Nothing but a magic number.
    let path = files.write("c", &[0x28, 0xb5, 0x2f, 0xfd]);
    assert!(matches!(error(&path), CaptureError::Io { offset: 0, .. }));
    let path = files.write("d", &[0x1f, 0x8b, 8]);
    assert!(matches!(error(&path), CaptureError::Io { offset: 0, .. }));
}

#[test]
fn what_cannot_be_opened() {
    let files = Files::new();
    let missing = files.path("nowhere/a.pcap");
    assert_eq!(error(&missing).remedy(), None);
    for (path, why) in [(missing.as_path(), "No such file"), (files.0.path(), "a directory")] {
        assert!(matches!(error(path), CaptureError::Open { path: named, source }
            if named == path.display().to_string() && source.to_string().contains(why)));
    }
    let empty = files.write("empty.pcap", &[]);
    assert!(matches!(error(&empty), CaptureError::Empty { path }
        if path == empty.display().to_string()));
    for (name, nothing) in [("nothing.zst", zstd(&[])), ("nothing.gz", gzip(&[]))] {
        let path = files.write(name, &nothing);
        assert!(matches!(error(&path), CaptureError::Empty { .. }));
    }
    let text = files.write("notes.txt", b"not a capture at all, this one");
    assert!(matches!(error(&text), CaptureError::Format { path, found, expected }
        if path == text.display().to_string()
            && found.contains("text")
            && ["pcap", "pcapng", "ERF", "mscap"].iter().all(|known| expected.contains(known))));
}

/// A named pipe into which the pieces are written one after the other.
fn fifo(files: &Files, name: &str, pieces: Vec<Vec<u8>>) -> PathBuf {
    let path = files.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = path.clone();
    thread::spawn(move || {
        let mut pipe = File::options().write(true).open(writer).unwrap();
        for piece in pieces {
            // The reader may have had enough.
            if pipe.write_all(&piece).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
    path
}

#[test]
fn pipes_are_read_as_they_come() {
    let files = Files::new();
    let bytes = pcap(FRAMES);
    let (_, expected) = sound(&files.write("plain", &bytes));
    for (name, bytes) in
        [("fifo", bytes.clone()), ("fifo.zst", zstd(&bytes)), ("fifo.gz", gzip(&bytes))]
    {
        // Not even the magic number comes at once.
        let pieces = [&bytes[..1], &bytes[1..3], &bytes[3..30], &bytes[30..]];
        let path = fifo(&files, name, pieces.map(<[u8]>::to_vec).into());
        let (source, records) = sound(&path);
        assert_eq!(records, expected, "{name}");
        assert!(matches!(source.extent, Extent::Unknown));
        assert_eq!(source.extent.done(source.capture.offset()), None);
    }
}

#[test]
fn a_pipe_that_ends_early() {
    let files = Files::new();
    let bytes = pcap(10);
    let path = fifo(&files, "fifo", vec![bytes[..24 + 3 * 216 + 5].to_vec()]);
    let (records, error) = read(&mut open(&path, Reading::default()).unwrap());
    assert_eq!(records.len(), 3);
    let error = error.unwrap();
    assert!(matches!(&error, CaptureError::Damaged { path: named, offset: 672, records: 3, .. }
        if *named == path.display().to_string()));
    assert!(error.to_string().contains(" 5 bytes into a record header"), "{error}");
    let path = fifo(&files, "silent", vec![]);
    assert!(matches!(open(&path, Reading::default()), Err(CaptureError::Empty { .. })));
}
