//! Generator, forwarder and tap on ports in memory: what goes in comes out, and every frame is counted.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's result")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_linux::capture::{Sink, tap};
use tailtrim_linux::forward::{Forwarding, forward, forward_both};
use tailtrim_linux::generate::{Load, Stop, generate};
use tailtrim_linux::port::{
    Capabilities, Counters, MemoryPort, Port, PortError, Received, memory_pair,
};
use tailtrim_linux::source::{self, Reading};
use tailtrim_tail::analysis::{Options, analyze};
use tailtrim_tail::signature::{Rewrites, Signer};
use tailtrim_wire::traffic::{
    Addressing, Builder, Delay, Ip, Pattern, Probe, Rate, Schedule, Sizes,
};

fn builder() -> Builder {
    let addressing = Addressing {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        vlan: None,
        ip: Ip::V4([198, 18, 0, 1].into(), [198, 19, 0, 1].into()),
        dscp: 0,
        source_port: 10_000,
        destination_port: 20_000,
        flows: 4,
    };
    Builder::new(addressing, 60).unwrap()
}

fn load(rate: &str, sizes: &str, stop: Stop) -> Load {
    let sizes: Sizes = sizes.parse().unwrap();
    let interval_ns = rate.parse::<Rate>().unwrap().interval_ns(sizes.mean());
    let schedule = Schedule::new(&Pattern::Cbr, interval_ns, 1);
    Load { schedule, sizes, builder: builder(), stop }
}

fn numbers(log: &[u8]) -> Vec<i64> {
    log.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn received(port: &mut dyn Port) -> Vec<(Probe, usize)> {
    let mut frames = Vec::new();
    port.receive(usize::MAX, &mut |frame| {
        frames.push((Builder::probe(frame.bytes).unwrap(), frame.bytes.len()));
    })
    .unwrap();
    frames
}

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
        delay: None,
        pause: None,
        watch: false,
    };
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let forwarded = forward(&mut from, &mut to, &how, None, &stopped, &seen).unwrap();
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
        delay: None,
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
            let ways = forward_both(&mut one, &mut other, &plain(wait), &stop, &seen).unwrap();
            (ways, seen.into_inner())
        });
        let (there, back) = (vec![1; 60], vec![2; 61]);
        for _ in 0..100 {
            left.send(&[&there, &there]).unwrap();
            right.send(&[&back]).unwrap();
        }
        for (port, count, frame) in [(&mut right, 200, &there), (&mut left, 100, &back)] {
            let mut came = 0;
            while came < count {
                assert!(port.wait(Duration::from_secs(5)).unwrap(), "{came} of {count}");
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
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

#[test]
fn what_is_too_long_is_counted_and_never_cut() {
    let ((mut sender, from), (mut to, mut receiver)) = (memory_pair(100), memory_pair(100));
    let frames: Vec<_> = [60, 1_514, 1_515, 9_014, 60].map(|bytes| vec![3; bytes]).into();
    sender.send(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let mut from = Cutting(from, 1_514);
    let forwarded = forward(&mut from, &mut to, &plain(false), None, &stopped, &seen).unwrap();
    assert_eq!((forwarded.received, forwarded.sent, forwarded.too_long), (5, 3, 2));
    let mut lengths = Vec::new();
    receiver.receive(100, &mut |frame| lengths.push(frame.bytes.len())).unwrap();
    assert_eq!(lengths, [60, 1_514, 60]);
    // The other way: the outgoing port does not carry what came in whole.
    let ((mut sender, mut from), (mut to, _receiver)) = (memory_pair(100), memory_pair(100));
    let mut tagged = vec![3; 9_022];
    sender.send(&[&tagged]).unwrap();
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    sender.send(&[&tagged]).unwrap();
    let forwarded = forward(&mut from, &mut to, &plain(false), None, &stopped, &seen).unwrap();
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
        delay: Some((delay, seed)),
        pause: None,
        watch: false,
    };
    let mut log = Vec::new();
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let forwarded = forward(&mut from, &mut to, &how, Some(&mut log), &stopped, &seen).unwrap();
    assert_eq!((forwarded.received, forwarded.sent, forwarded.no_probe), (51, 51, 1));
    let log = numbers(&log);
    assert_eq!(log.len(), 2 * 50);
    for (number, kept) in log.chunks(2).enumerate() {
        assert_eq!(kept[0], number as i64);
        assert!(kept[1] >= Delay::delay_ns(&delay, seed, number as u64, 0) as i64);
    }
    assert_eq!(received_any(&mut receiver), 51);
}

fn received_any(port: &mut dyn Port) -> usize {
    port.receive(usize::MAX, &mut |_| {}).unwrap()
}

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
        let sink = Sink::create(&path, zstd).unwrap();
        let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
        let tapped = tap(&mut port, sink, &path, 96, &stopped, &seen).unwrap();
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

/// Leaves every so many frames without a stamp, as a NIC does that has none for some.
struct Unstamped(MemoryPort, u64, Counters);

impl Port for Unstamped {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let Self(port, every, counters) = self;
        port.receive(most, &mut |frame| {
            counters.received += 1;
            let stamp = frame.stamp.filter(|_| !counters.received.is_multiple_of(*every));
            counters.unstamped += u64::from(stamp.is_none());
            take(Received { stamp, ..frame });
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
        Ok(Counters { unstamped: self.2.unstamped, ..self.0.counters()? })
    }
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

#[test]
fn frames_without_a_stamp_are_counted_from_the_tap_to_the_summary() {
    const PACKETS: u64 = 1_500;
    let folder = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = memory_pair(10_000);
    let never = AtomicBool::new(false);
    let load = load("10Mpps", "128", Stop::Packets(PACKETS));
    generate(&mut sender, load, None, &never, || {}).unwrap();
    let mut frames = Vec::new();
    receiver.receive(usize::MAX, &mut |frame| frames.push(frame.bytes.to_vec())).unwrap();
    let tapped = [("ingress.pcap", 3), ("egress.pcap", 5)].map(|(name, every)| {
        let (mut sender, port) = memory_pair(10_000);
        frames.iter().for_each(|frame| assert_eq!(sender.send(&[frame]).unwrap(), 1));
        let mut port = Unstamped(port, every, Counters::default());
        let path = folder.path().join(name);
        let sink = Sink::create(&path, false).unwrap();
        let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
        tap(&mut port, sink, &path, 128, &stopped, &seen).unwrap()
    });
    assert_eq!(
        tapped.each_ref().map(|tap| (tap.packets, tap.unstamped)),
        [(1_500, 500), (1_500, 300)]
    );
    let [mut ingress, mut egress] =
        tapped.each_ref().map(|tap| source::open(&tap.file, Reading::default()).unwrap().capture);
    let options = Options { trim_ns: 0, ..Options::default() };
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, &options, &mut (), progress).unwrap();
    let (ingress, egress) = (analysis.summary.ingress, analysis.summary.egress);
    assert_eq!((ingress.packets, ingress.unstamped), (PACKETS, tapped[0].unstamped));
    assert_eq!((egress.packets, egress.unstamped), (PACKETS, tapped[1].unstamped));
    // Those with a stamp at both taps.
    let both = (1..=PACKETS).filter(|n| !n.is_multiple_of(3) && !n.is_multiple_of(5)).count();
    assert_eq!(analysis.summary.samples, both as u64);
    // Every one of the others ends in one outcome: what has no stamp on one side has no match on the other.
    let gone = ingress.lost + ingress.beyond_window + ingress.duplicate + ingress.cut;
    assert_eq!(ingress.matched + gone + ingress.trimmed + ingress.unstamped, PACKETS);
    let came = egress.unmatched + egress.copy + egress.cut;
    assert_eq!(egress.matched + came + egress.trimmed + egress.unstamped, PACKETS);
    let told: Vec<_> = analysis.summary.warnings.iter().map(|w| (w.code, w.count)).collect();
    assert!(told.starts_with(&[("unstamped", 500), ("unstamped", 300)]), "{told:?}");
}

#[test]
fn a_full_disk_is_one_clear_error() {
    let path = std::path::Path::new("/dev/full");
    let (mut sender, mut port) = memory_pair(10);
    sender.send(&[&[0; 60]]).unwrap();
    let sink = Sink::create(path, false).unwrap();
    let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
    let error = tap(&mut port, sink, path, 96, &stopped, &seen).unwrap_err().to_string();
    assert_eq!(
        error,
        "/dev/full: cannot be written after 1 frames: No space left on device (os error 28)"
    );
}
