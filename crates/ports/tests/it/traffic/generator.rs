//! The load generator, with one sender and with several.

use super::{load, numbers, received, received_any};
use crate::memory::{MemoryPort, memory_pair};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_ports::generate::{Stop, generate, generate_together};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received};

#[test]
fn every_probe_that_was_sent_arrives_in_order_and_on_record() {
    let (mut near, mut far) = memory_pair(100_000);
    let mut log = Vec::new();
    let load = load("1Mpps", "64,128", Stop::Packets(5_000));
    let never = AtomicBool::new(false);
    let mut ready = false;
    let generated = generate(&mut near, load, Some(&mut log), &never, || ready = true).unwrap();
    assert!(ready);
    assert_eq!((generated.due, generated.sent, generated.refused), (5_000, 5_000, 0));
    assert_eq!(generated.sent_bytes, 2_500 * (60 + 124));
    assert_eq!(generated.intended_ns, 4_999_000);
    let frames = received(&mut far);
    let log = numbers(&log);
    assert_eq!(log.len(), 3 * 5_000);
    for (number, ((probe, bytes), departure)) in frames.iter().zip(log.chunks(3)).enumerate() {
        assert_eq!(probe.sequence, number as u64);
        assert_eq!(u64::from(probe.flow), probe.sequence % 4);
        assert_eq!(*bytes, if number % 2 == 0 { 60 } else { 124 });
        assert_eq!(departure[..2], [number as i64, probe.intended_ns as i64]);
        assert!(departure[2] >= departure[1], "a probe departs no sooner than intended");
        assert_eq!(departure[1] - log[1], number as i64 * 1_000);
    }
}

#[test]
fn what_a_full_port_does_not_take_is_counted() {
    let (mut near, mut far) = memory_pair(300);
    let load = load("10Mpps", "64", Stop::Packets(1_000));
    let generated = generate(&mut near, load, None, &AtomicBool::new(false), || {}).unwrap();
    assert_eq!((generated.due, generated.sent, generated.refused), (1_000, 300, 700));
    assert_eq!(received(&mut far).len(), 300);
}

#[test]
fn a_load_ends_with_its_time_or_when_it_is_stopped() {
    let (mut near, mut far) = memory_pair(100_000);
    let never = AtomicBool::new(false);
    let timed = load("100kpps", "64", Stop::After(5_000_000));
    assert_eq!(generate(&mut near, timed, None, &never, || {}).unwrap().sent, 500);
    let endless = load("1kpps", "64", Stop::Packets(u64::MAX));
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    assert_eq!(received_any(&mut far), 500);
    let stopping = thread::spawn(move || {
        let mut came = 0;
        while came < 10 {
            far.wait(Duration::from_secs(60)).unwrap();
            came += received_any(&mut far) as u64;
        }
        stop.store(true, Ordering::Relaxed);
        came
    });
    let generated = generate(&mut near, endless, None, &stopped, || {}).unwrap();
    assert!(generated.sent >= stopping.join().unwrap());
    assert!(generated.due < u64::MAX);
    let none = load("1kpps", "64", Stop::Packets(0));
    assert_eq!(generate(&mut near, none, None, &never, || {}).unwrap().due, 0);
}

fn senders(count: usize) -> (Vec<Box<dyn Port>>, Vec<MemoryPort>) {
    let pairs = (0..count).map(|_| memory_pair(100_000));
    pairs.map(|(near, far)| (Box::new(near) as Box<dyn Port>, far)).unzip()
}

#[test]
fn several_senders_take_turns_with_the_probes() {
    let (mut near, far) = senders(3);
    let load = load("1Mpps", "64", Stop::Packets(3_000));
    let never = AtomicBool::new(false);
    let mut ready = false;
    let generated = generate_together(&mut near, &load, &never, &|_| {}, || ready = true).unwrap();
    assert!(ready);
    assert_eq!((generated.due, generated.sent, generated.refused), (3_000, 3_000, 0));
    for (number, mut far) in (0..).zip(far) {
        let sequences = received(&mut far).into_iter().map(|(probe, _)| probe.sequence);
        assert!(sequences.eq((0..1_000).map(|turn| turn * 3 + number)));
    }
}

#[test]
fn a_sender_that_panics_before_the_start_does_not_hang_the_others() {
    let (mut near, mut far) = senders(3);
    let endless = load("1kpps", "64", Stop::Packets(u64::MAX));
    let stopped = AtomicBool::new(false);
    let place = |number| {
        if number == 1 {
            // Without a message on standard error.
            resume_unwind(Box::new("no such CPU"));
        }
    };
    let panic = catch_unwind(AssertUnwindSafe(|| {
        generate_together(&mut near, &endless, &stopped, &place, || unreachable!("no start"))
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"no such CPU"));
    assert!(far.iter_mut().all(|far| received(far).is_empty()));
}

/// A port that does something before it sends.
struct Before<F: FnMut()>(MemoryPort, F);

impl<F: FnMut() + Send> Port for Before<F> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        self.0.receive(most, take)
    }
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        (self.1)();
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
fn a_sender_that_panics_ends_the_others() {
    let (mut near, _far) = senders(2);
    near[0] = Box::new(Before(memory_pair(10).0, || resume_unwind(Box::new("a port that panics"))));
    let endless = load("1kpps", "64", Stop::Packets(u64::MAX));
    let stopped = AtomicBool::new(false);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        generate_together(&mut near, &endless, &stopped, &|_| {}, || {})
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"a port that panics"));
}

#[test]
fn stalls_while_a_probe_is_handed_over_are_told_with_the_probes_that_are_late_for_it() {
    let (near, mut far) = memory_pair(100_000);
    let mut calls = 0;
    let mut port = Before(near, || {
        calls += 1;
        // A machine that falls behind hands over many probes in one call.
        if calls % 100 == 5 {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let load = load("1kpps", "64", Stop::Packets(1_000));
    let generated = generate(&mut port, load, None, &AtomicBool::new(false), || {}).unwrap();
    assert_eq!(received(&mut far).len(), 1_000);
    let stalls = generated.stalls;
    // Other things of this machine add to that.
    drop(port);
    let known = (calls + 95) / 100;
    assert!(
        known > 0 && stalls.sending.count >= known && stalls.sending.longest_ns >= 5_000_000,
        "{stalls:?}"
    );
    assert!(stalls.departed_late >= known, "{stalls:?}");
    assert_eq!(stalls.sending.count, stalls.stalled.len() as u64);
    // The longest of both kinds, however long this machine itself stood still.
    let lengths_ns: Vec<_> = stalls.worst.iter().map(|stall| stall.to_ns - stall.from_ns).collect();
    assert!(lengths_ns.is_sorted_by(|one, next| one >= next), "{stalls:?}");
    assert_eq!(lengths_ns[0], stalls.sending.longest_ns.max(stalls.waiting.longest_ns));
    for (from_ns, to_ns) in &stalls.stalled {
        assert!(from_ns < to_ns);
    }
}
