//! Compressed captures as zstd, pzstd and gzip make them (`data/compressed/make.sh`), whole, cut and damaged.

use std::fs;
use std::path::{Path, PathBuf};
use tailtrim_reading::source::{Reading, open};
use tailtrim_tail::capture::{CaptureError, Record};
use tailtrim_tail::signature::{Rewrites, Signer};
use tempfile::TempDir;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/compressed")
}

fn read(path: &Path) -> (Vec<Record>, Option<CaptureError>) {
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    let mut source = match open(path, Reading::default()) {
        Ok(source) => source,
        Err(error) => return (records, Some(error)),
    };
    loop {
        match source.capture.read(&Signer::new(Rewrites::default()), &mut batch) {
            Ok(true) => records.append(&mut batch),
            Ok(false) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

/// Names and bytes of all compressed files.
fn all() -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let wanted = |path: &PathBuf| path.extension().is_some_and(|end| end == "zst" || end == "gz");
    entries
        .filter(wanted)
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), fs::read(path).unwrap()))
        .collect()
}

/// The beginning of the last frame or member that begins like the first.
fn second(bytes: &[u8]) -> std::ops::Range<usize> {
    let begin = bytes.windows(4).rposition(|four| four == &bytes[..4]).unwrap().max(4);
    begin..begin + 12
}

fn written(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("capture");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn whatever_zstd_and_gzip_read_is_read() {
    let (expected, none) = read(&folder().join("plain.pcap"));
    assert_eq!((expected.len(), none.is_none()), (30, true));
    let files = all();
    assert_eq!(files.len(), 18);
    for (name, _) in files {
        let (records, error) = read(&folder().join(&name));
        assert!(error.is_none(), "{name}: {}", error.unwrap());
        assert_eq!(records, expected, "{name}");
    }
}

#[test]
fn cut_anywhere_it_is_one_error_with_its_place() {
    let scratch = tempfile::tempdir().unwrap();
    let (expected, _) = read(&folder().join("plain.pcap"));
    for (name, bytes) in all() {
        let mut silent = Vec::new();
        for cut in (1..bytes.len()).rev().step_by(41).chain(second(&bytes)) {
            let path = written(&scratch, &bytes[..cut]);
            let (records, error) = read(&path);
            assert!(expected.starts_with(&records), "{name} cut at {cut}");
            match error {
                None => silent.push(cut),
                Some(CaptureError::Io { source, .. }) => {
                    let told = source.to_string();
                    let start = format!("the compressed file ends after byte {cut}, within the ");
                    assert!(told.starts_with(&start), "{name} cut at {cut}: {told}");
                }
                // Cut between two frames, so that the capture itself ends early; or not even a magic number is left.
                Some(error) => {
                    let place = error.to_string();
                    assert!(place.contains("byte ") || place.contains("is empty"), "{place}");
                }
            }
        }
        // The part behind the last packet may be missing: frames without content, zeros.
        assert!(silent.iter().all(|cut| *cut > 1_400), "{name}: {silent:?}");
    }
}

#[test]
fn a_changed_byte_is_an_error_with_its_place_or_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let (expected, _) = read(&folder().join("plain.pcap"));
    for (name, bytes) in all() {
        for at in (4..bytes.len()).step_by(89).chain(second(&bytes)) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let path = written(&scratch, &changed);
            match read(&path) {
                // Without a checksum, damage cannot be recognised.
                (records, None) if name != "no-check-no-size.zst" => {
                    assert!(expected.starts_with(&records), "{name}, byte {at}");
                }
                (_, None) => {}
                (_, Some(error)) => {
                    let told = error.to_string();
                    assert!(told.starts_with(&*path.to_string_lossy()), "{name}: {told}");
                    assert!(told.contains("byte ") || told.contains("packet "), "{name}: {told}");
                }
            }
        }
    }
}

#[test]
fn what_follows_a_frame_and_is_none_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["zstd.zst", "gzip.gz"] {
        let mut bytes = fs::read(folder().join(name)).unwrap();
        let end = bytes.len();
        bytes.extend(b"garbage");
        let (records, error) = read(&written(&scratch, &bytes));
        assert_eq!(records.len(), 30);
        let told = error.unwrap().to_string();
        let expected = format!(
            ": reading failed after byte 2904: byte {end} of the compressed file is 67 61 72 62, expected its end or \
             another zstd frame or gzip member"
        );
        assert!(told.ends_with(&expected), "{told}");
    }
}

#[test]
fn the_place_of_damage_is_that_in_the_compressed_file() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, what) in [("concatenated.zst", "zstd frame"), ("concatenated.gz", "gzip member")] {
        let mut bytes = fs::read(folder().join(name)).unwrap();
        let begin = second(&bytes).start;
        let last = bytes.len() - 6;
        bytes[last..].fill(0x55);
        let told = read(&written(&scratch, &bytes)).1.unwrap().to_string();
        let place = format!(" of the compressed file, in the {what} that begins at byte {begin}: ");
        assert!(told.contains(&place), "{told}");
    }
}
