//! The tap, and the captures that it writes.

use super::load;
use crate::memory::{MemoryPort, memory_pair};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tailtrim_ports::capture::{CaptureFile, TapSink, online, tap};
use tailtrim_ports::generate::{Stop, generate};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received, Stamp, Stamping};
use tailtrim_reading::source::{self, Reading};
use tailtrim_tail::analysis::Source as _;
use tailtrim_tail::signature::{Rewrites, Signer};
use tailtrim_tracer::clock;

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
        let sink = TapSink::of(CaptureFile::create(&path, zstd).unwrap());
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
    let sink = TapSink::of(CaptureFile::create(path, false).unwrap());
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let error = tap(&mut port, sink, 96, &stopped, &seen).unwrap_err().to_string();
    assert!(error.starts_with("/dev/full: "), "{error}");
    assert!(error.contains("after 0 frames: No space left"), "{error}");
}

/// A port that is never empty. Each look at it takes a millisecond, in which more comes than a look takes.
struct Endless(Stamping);

impl Port for Endless {
    fn capabilities(&self) -> Capabilities {
        let (port, _) = memory_pair(1);
        Capabilities { stamping: self.0, ..port.capabilities() }
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        thread::sleep(Duration::from_millis(1));
        for _ in 0..most {
            let stamp = Some(Stamp { ns: clock::of_the_kernel().0, stamping: self.0 });
            take(Received { bytes: &[0; 60], length: 60, stamp });
        }
        Ok(most)
    }
    fn send(&mut self, _: &[&[u8]]) -> Result<usize, PortError> {
        Ok(0)
    }
    fn wait(&mut self, _: Duration) -> Result<bool, PortError> {
        Ok(true)
    }
    fn is_pressed(&self) -> bool {
        true
    }
    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(Counters::default())
    }
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn a_port_that_is_never_empty_ends_with_the_first_frame_after_the_end() {
    for stamping in [Stamping::Kernel, Stamping::Program] {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(AtomicU64::new(0));
        let tapping = thread::spawn({
            let (stopped, seen) = (Arc::clone(&stopped), Arc::clone(&seen));
            move || tap(&mut Endless(stamping), TapSink::default(), 96, &stopped, &seen).unwrap()
        });
        while seen.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        stopped.store(true, Ordering::Release);
        let tapped = tapping.join().unwrap();
        assert_eq!(tapped.packets, seen.load(Ordering::Relaxed));
        assert_eq!(tapped.bytes, tapped.packets * 60);
    }
}

/// A port with stamps of the kernel whose interface is gone after it was waited for so many times, and that has dropped
/// frames.
struct Leaving {
    port: MemoryPort,
    waits: u32,
    dropped: u64,
}

impl Port for Leaving {
    fn capabilities(&self) -> Capabilities {
        Capabilities { stamping: Stamping::Kernel, ..self.port.capabilities() }
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        self.port.receive(most, take)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.port.send(frames)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        if self.waits == 0 {
            let source = io::Error::from(io::ErrorKind::NetworkDown);
            return Err(PortError::Broken { port: "memory".to_owned(), what: "waiting", source });
        }
        self.waits -= 1;
        self.port.wait(timeout)
    }

    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(Counters { dropped: self.dropped, ..self.port.counters()? })
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn a_tap_that_is_analysed_says_during_the_run_that_its_interface_is_gone() {
    let (ended, end) = channel();
    thread::spawn(move || {
        let (feed, _online) = online("egress", 96, true).unwrap();
        let mut port = Leaving { port: memory_pair(10).1, waits: 3, dropped: 0 };
        let (stopped, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let sink = TapSink { feed: Some(feed), ..TapSink::default() };
        ended.send(tap(&mut port, sink, 96, &stopped, &seen)).unwrap();
    });
    let tapped = end.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(tapped.unwrap_err().to_string().contains("memory: waiting"));
}

/// Regression: frames that waited in the port, and the last block of those that were taken, were lost.
#[test]
fn a_tap_whose_interface_is_gone_keeps_its_frames() {
    let files = tempfile::tempdir().unwrap();
    for waits in [0, 3] {
        let path = files.path().join(format!("{waits}.pcap"));
        let (mut sender, receiver) = memory_pair(10);
        sender.send(&[&[0; 60][..]; 4]).unwrap();
        let mut port = Leaving { port: receiver, waits, dropped: 0 };
        let sink = TapSink::of(CaptureFile::create(&path, false).unwrap());
        let (stopped, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let error = tap(&mut port, sink, 96, &stopped, &seen).unwrap_err();
        assert!(error.to_string().contains("memory: waiting"));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 24 + 4 * (16 + 60));
    }
}

#[test]
fn what_a_tap_dropped_is_known_to_its_analysis() {
    let (feed, online) = online("egress", 96, true).unwrap();
    let mut port = Leaving { port: memory_pair(10).1, waits: 100, dropped: 7 };
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let tapped =
        tap(&mut port, TapSink { feed: Some(feed), ..TapSink::default() }, 96, &stopped, &seen);
    assert_eq!(tapped.unwrap().dropped, 7);
    assert_eq!(online.tap_drops(), Some(7));
}
