//! Frames without a stamp, from the tap through the capture to the summary.

use super::load;
use crate::memory::{MemoryPort, memory_pair};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tailtrim_ports::capture::{CaptureFile, TapSink, tap};
use tailtrim_ports::generate::{Stop, generate};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received};
use tailtrim_reading::source::{self, Reading};
use tailtrim_tail::analysis::{Options, analyze};

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
    fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        Vec::new()
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
        let sink = TapSink::of(CaptureFile::create(&path, false).unwrap());
        let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
        tap(&mut port, sink, 128, &stopped, &seen).unwrap()
    });
    assert_eq!(
        tapped.each_ref().map(|tap| (tap.packets, tap.unstamped)),
        [(1_500, 500), (1_500, 300)]
    );
    let [mut ingress, mut egress] = tapped
        .each_ref()
        .map(|tap| source::open(tap.file.as_deref().unwrap(), Reading::default()).unwrap().capture);
    let options = Options { trim_ns: 0, ..Options::default() };
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, &options, &mut (), progress).unwrap();
    let (ingress, egress) = (analysis.summary.ingress, analysis.summary.egress);
    assert_eq!([ingress.packets, egress.packets], [PACKETS; 2]);
    // Their own, and those whose other half has none.
    let none = tapped.each_ref().map(|tap| tap.unstamped);
    assert!((none[0]..=none[0] + none[1]).contains(&ingress.unstamped), "{ingress:?}");
    assert!((none[1]..=none[0] + none[1]).contains(&egress.unstamped), "{egress:?}");
    // Those with a stamp at both taps.
    let both = (1..=PACKETS).filter(|n| !n.is_multiple_of(3) && !n.is_multiple_of(5)).count();
    assert_eq!(analysis.summary.samples, both as u64);
    // Each of the others ends in one outcome: a packet without a stamp on one side has no match on the other.
    let gone = ingress.lost + ingress.beyond_window + ingress.duplicate + ingress.cut;
    assert_eq!(ingress.matched + gone + ingress.trimmed + ingress.unstamped, PACKETS);
    let came = egress.unmatched + egress.copy + egress.cut;
    assert_eq!(egress.matched + came + egress.trimmed + egress.unstamped, PACKETS);
    let told: Vec<_> = analysis.summary.warnings.iter().map(|w| (w.code, w.count)).collect();
    assert!(told.starts_with(&[("unstamped", 500), ("unstamped", 300)]), "{told:?}");
}
