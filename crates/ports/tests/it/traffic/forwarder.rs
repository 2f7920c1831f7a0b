//! The reference forwarder, in one direction and in both.

use super::{load, numbers, received_any};
use crate::memory::{MemoryPort, memory_pair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_ports::forward::{Forwarding, Ways, forward};
use tailtrim_ports::generate::{Stop, generate};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received};
use tailtrim_wire::traffic::Delay;

#[test]
fn the_forwarder_passes_everything_on_with_new_addresses() {
    let (mut sender, mut from) = memory_pair(10_000);
    let (mut to, mut receiver) = memory_pair(10_000);
    generate(
        &mut sender,
        load("10Mpps", "64", Stop::Packets(777)),
        None,
        &AtomicBool::new(false),
        || {},
    )
    .unwrap();
    sender.send(&[&[0xff; 60]]).unwrap();
    let how = Forwarding {
        wait: true,
        batch: 32,
        work_ns: 100,
        source_mac: Some([6; 6]),
        destination_mac: Some([7; 6]),
        ways: Ways::One { delay: None },
        pause: None,
        watch: false,
    };
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let forwarded = forward(&mut from, &mut to, &how, None, &stopped, &seen).unwrap().there;
    assert_eq!((forwarded.received, forwarded.sent, forwarded.refused), (778, 778, 0));
    assert_eq!(seen.load(Ordering::Relaxed), 778);
    let mut count = 0;
    receiver
        .receive(usize::MAX, &mut |frame| {
            assert_eq!(frame.bytes[..12], [7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6]);
            count += 1;
        })
        .unwrap();
    assert_eq!(count, 778);
}

fn plain(wait: bool) -> Forwarding {
    Forwarding {
        wait,
        batch: 32,
        work_ns: 0,
        source_mac: None,
        destination_mac: None,
        ways: Ways::One { delay: None },
        pause: None,
        watch: false,
    }
}

#[test]
fn both_directions_pass_in_one_loop() {
    for wait in [false, true] {
        let ((mut left, mut one), (mut other, mut right)) = (memory_pair(500), memory_pair(500));
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let forwarding = thread::spawn(move || {
            let seen = AtomicU64::new(0);
            let how = Forwarding { ways: Ways::Both, ..plain(wait) };
            let result = forward(&mut one, &mut other, &how, None, &stop, &seen).unwrap();
            ((result.there, result.back.unwrap()), seen.into_inner())
        });
        let (there, back) = (vec![1; 60], vec![2; 61]);
        for _ in 0..100 {
            left.send(&[&there, &there]).unwrap();
            right.send(&[&back]).unwrap();
        }
        for (port, count, frame) in [(&mut right, 200, &there), (&mut left, 100, &back)] {
            let mut came = 0;
            while came < count {
                assert!(port.wait(Duration::from_secs(60)).unwrap(), "{came} of {count}");
                let here = port.receive(64, &mut |got| assert_eq!(got.bytes, frame)).unwrap();
                came += here;
            }
            assert_eq!(came, count);
        }
        stopped.store(true, Ordering::Release);
        let ((there, back), seen) = forwarding.join().unwrap();
        assert_eq!((there.received, there.sent, there.refused), (200, 200, 0));
        assert_eq!((back.received, back.sent, back.refused, seen), (100, 100, 0, 300));
    }
}

/// Keeps the first bytes of frames only, as a ring with small slots.
struct Cutting(MemoryPort, usize);

impl Port for Cutting {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let keep = self.1;
        self.0.receive(most, &mut |frame| {
            take(Received { bytes: &frame.bytes[..frame.bytes.len().min(keep)], ..frame });
        })
    }
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.0.send(frames)
    }
    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        self.0.wait(timeout)
    }
    fn is_pressed(&self) -> bool {
        self.0.is_pressed()
    }
    fn counters(&mut self) -> Result<Counters, PortError> {
        self.0.counters()
    }
    fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn what_is_too_long_is_counted_and_never_cut() {
    let ((mut sender, from), (mut to, mut receiver)) = (memory_pair(100), memory_pair(100));
    let frames: Vec<_> = [60, 1_514, 1_515, 9_014, 60].map(|bytes| vec![3; bytes]).into();
    sender.send(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let mut from = Cutting(from, 1_514);
    let forwarded =
        forward(&mut from, &mut to, &plain(false), None, &stopped, &seen).unwrap().there;
    assert_eq!((forwarded.received, forwarded.sent, forwarded.too_long), (5, 3, 2));
    let mut lengths = Vec::new();
    receiver.receive(100, &mut |frame| lengths.push(frame.bytes.len())).unwrap();
    assert_eq!(lengths, [60, 1_514, 60]);
    // The other case: the outgoing port cannot carry a frame that came in whole.
    let ((mut sender, mut from), (mut to, _receiver)) = (memory_pair(100), memory_pair(100));
    let mut tagged = vec![3; 9_022];
    sender.send(&[&tagged]).unwrap();
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    sender.send(&[&tagged]).unwrap();
    let forwarded =
        forward(&mut from, &mut to, &plain(false), None, &stopped, &seen).unwrap().there;
    assert_eq!((forwarded.received, forwarded.sent, forwarded.too_long), (2, 1, 1));
}

#[test]
fn a_known_delay_is_kept_and_logged() {
    let (mut sender, mut from) = memory_pair(1_000);
    let (mut to, mut receiver) = memory_pair(1_000);
    generate(
        &mut sender,
        load("1Mpps", "64", Stop::Packets(50)),
        None,
        &AtomicBool::new(false),
        || {},
    )
    .unwrap();
    sender.send(&[&[0xff; 60]]).unwrap();
    let (delay, seed) = ("bimodal:20us,3ms,0.1".parse().unwrap(), 5);
    let how = Forwarding {
        wait: false,
        batch: 8,
        work_ns: 0,
        source_mac: None,
        destination_mac: None,
        ways: Ways::One { delay: Some((delay, seed)) },
        pause: None,
        watch: false,
    };
    let mut log = Vec::new();
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let forwarded =
        forward(&mut from, &mut to, &how, Some(&mut log), &stopped, &seen).unwrap().there;
    assert_eq!((forwarded.received, forwarded.sent, forwarded.no_probe), (51, 51, 1));
    let log = numbers(&log);
    assert_eq!(log.len(), 3 * 50);
    for (number, kept) in log.chunks(3).enumerate() {
        assert_eq!(kept[0], number as i64);
        assert!(kept[2] >= Delay::delay_ns(&delay, seed, number as u64, 0) as i64);
    }
    assert!(log.chunks(3).zip(log.chunks(3).skip(1)).all(|(one, next)| one[1] <= next[1]));
    assert_eq!(received_any(&mut receiver), 51);
}
