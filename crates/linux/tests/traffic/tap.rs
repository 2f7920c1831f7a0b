//! The tap, and the captures that it writes.

use crate::load;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tailtrim_linux::capture::{CaptureFile, Sink, tap};
use tailtrim_linux::generate::{Stop, generate};
use tailtrim_linux::port::{Port, memory_pair};
use tailtrim_linux::source::{self, Reading};
use tailtrim_tail::signature::{Rewrites, Signer};

#[test]
fn a_tap_writes_what_it_sees_and_what_was_waiting_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    for zstd in [false, true] {
        let (mut sender, mut port) = memory_pair(10_000);
        generate(
            &mut sender,
            load("10Mpps", "128", Stop::Packets(1_500)),
            None,
            &AtomicBool::new(false),
            || {},
        )
        .unwrap();
        let path = folder.path().join(if zstd { "tap.pcap.zst" } else { "tap.pcap" });
        let sink = Sink::of(CaptureFile::create(&path, zstd).unwrap());
        let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
        let tapped = tap(&mut port, sink, 96, &stopped, &seen).unwrap();
        assert_eq!((tapped.packets, tapped.bytes, tapped.dropped), (1_500, 1_500 * 124, 0));
        let mut capture = source::open(&path, Reading::default()).unwrap().capture;
        let signer = Signer::new(Rewrites::default());
        let (mut batch, mut all) = (Vec::new(), Vec::new());
        while capture.read(&signer, &mut batch).unwrap() {
            all.extend(batch.iter().copied());
        }
        assert_eq!(all.len(), 1_500);
        assert!(all.iter().all(|record| record.length == 124 && record.cut && record.stamped));
        assert!(all.is_sorted_by_key(|record| record.stamp_ns));
    }
}

#[test]
fn a_full_disk_is_one_clear_error() {
    let path = std::path::Path::new("/dev/full");
    let (mut sender, mut port) = memory_pair(10);
    sender.send(&[&[0; 60]]).unwrap();
    let sink = Sink::of(CaptureFile::create(path, false).unwrap());
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let error = tap(&mut port, sink, 96, &stopped, &seen).unwrap_err().to_string();
    assert_eq!(
        error,
        "/dev/full: cannot be written after 1 frames: No space left on device (os error 28)"
    );
}
