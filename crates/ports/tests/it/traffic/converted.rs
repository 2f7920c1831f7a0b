//! Two taps whose NICs have clocks of their own, from the stamp through the captures to the latency.

use crate::memory::{MemoryPort, memory_pair};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;
use tailtrim_ports::capture::{CaptureFile, TapSink, tap};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received, Stamp, Stamping};
use tailtrim_reading::source::{self, Reading};
use tailtrim_sys::clock;
use tailtrim_tail::analysis::{Options, analyze};
use tailtrim_trace::compared::LONGEST_GAP_NS;
use tailtrim_trace::phc::Offset;
use tailtrim_tracer::clock::{Comparing, Readable};

const PACKETS: i64 = 1_000;
const GAP_NS: i64 = 250_000;
const LATENCY_NS: i64 = 5_000;

/// A clock that was right at one time, but for an offset, and runs at another pace.
#[derive(Clone, Copy)]
struct Clock {
    device: &'static str,
    ahead_ns: i64,
    ppm: i64,
    begin_ns: i64,
}

impl Clock {
    fn at(self, ns: i64) -> i64 {
        ns + self.ahead_ns + (ns - self.begin_ns) * self.ppm / 1_000_000
    }
}

impl Readable for Clock {
    fn device(&self) -> &str {
        self.device
    }

    fn offset(&self) -> Result<Offset, String> {
        let at_ns = clock::realtime_ns();
        // Read wrongly by 200 ns, one time to this side, one time to that.
        let wrong_ns = if at_ns % 2 == 0 { 200 } else { -200 };
        Ok(Offset { at_ns, offset_ns: self.at(at_ns) - at_ns + wrong_ns, error_ns: 300 })
    }
}

/// A NIC that stamps each packet by its clock.
struct Stamps {
    port: MemoryPort,
    clock: Clock,
    first_ns: i64,
    seen: i64,
}

impl Port for Stamps {
    fn capabilities(&self) -> Capabilities {
        Capabilities { stamping: Stamping::Hardware, ..self.port.capabilities() }
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let Self { port, clock, first_ns, seen } = self;
        port.receive(most, &mut |frame| {
            let ns = clock.at(*first_ns + *seen * GAP_NS);
            *seen += 1;
            take(Received { stamp: Some(Stamp { ns, stamping: Stamping::Hardware }), ..frame });
        })
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.port.send(frames)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        self.port.wait(timeout)
    }

    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        self.port.counters()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn stamps_of_two_clocks_give_latencies_within_the_bound_that_is_told() {
    let begin_ns = clock::realtime_ns();
    let one = Clock { device: "ptp0", ahead_ns: 37_000_000_000, ppm: 80, begin_ns };
    let other = Clock { device: "ptp1", ahead_ns: -600_000_000, ppm: -70, begin_ns };
    let comparing = Comparing::every(Duration::from_millis(20), vec![one, other]).unwrap();
    let first_ns = clock::realtime_ns();
    thread::sleep(Duration::from_nanos((PACKETS * GAP_NS).unsigned_abs()));
    let folder = tempfile::tempdir().unwrap();
    let taps = [("ingress.pcap", one, first_ns), ("egress.pcap", other, first_ns + LATENCY_NS)];
    let [mut ingress, mut egress] = taps.map(|(name, clock, first_ns)| {
        let (mut sender, port) = memory_pair(10_000);
        for number in 0..PACKETS {
            let frame = [&[2_u8; 12][..], &[0x88, 0xb5], &number.to_be_bytes(), &[0; 40]].concat();
            assert_eq!(sender.send(&[&frame]).unwrap(), 1);
        }
        let mut port = Stamps { port, clock, first_ns, seen: 0 };
        let path = folder.path().join(name);
        let file = Some(CaptureFile::create(&path, false).unwrap());
        let conversion = comparing.conversion(clock.device);
        let sink = TapSink { file, conversion, ..TapSink::default() };
        let tapped = tap(&mut port, sink, 96, &AtomicBool::new(true), &AtomicU64::new(0)).unwrap();
        assert_eq!((tapped.packets, tapped.stamps), (PACKETS as u64, Stamping::Hardware));
        source::open(&path, Reading::default()).unwrap().capture
    });
    let told = comparing.end().remove(0);
    let Some(bound_ns) = told.clock_error_ns else {
        // A busy machine has stopped the thread that reads.
        assert!(told.steps.is_empty() && told.longest_gap_ns > LONGEST_GAP_NS, "{told:?}");
        return;
    };
    let options = Options { trim_ns: 0, ..Options::default() };
    let progress = |_, _| ControlFlow::Continue(());
    let found = analyze(&mut ingress, &mut egress, &options, &mut (), progress).unwrap().summary;
    assert_eq!(found.samples, PACKETS as u64);
    for ns in [found.latency_ns.min.unwrap(), found.latency_ns.max.unwrap()] {
        assert!((ns - LATENCY_NS).abs() <= bound_ns, "{ns} {bound_ns}");
    }
}
