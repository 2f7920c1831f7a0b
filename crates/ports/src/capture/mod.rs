//! Capturing at a tap: the frames that a port receives, into a nanosecond pcap or to an analysis at the same time.

mod file;
mod losses;
mod online;
mod recent;

pub use file::CaptureFile;
pub use losses::InterfaceLosses;
pub use online::{Feed, Online, online};
pub use recent::{Excerpt, Recent};

use crate::grace::GracePeriod;
use crate::port::{Capabilities, Hints, Port, PortError, Received, Stamp, Stamping, XdpMode};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tailtrim_sys::clock;
use tailtrim_tail::capture::write::{NO_STAMP_NS, header, record_header};
use tailtrim_tail::summary::counted;
use tailtrim_tracer::clock::Conversion;
use tailtrim_wire::filter::Filter;

/// Frames taken from the port in one go.
const BATCH: usize = 256;
/// Interval at which the tap reads its port.
const INTERVAL: Duration = Duration::from_millis(20);
/// Longest time after the end at which the port may still show earlier frames.
const LAST_NS: i64 = 120_000_000;
/// Interval at which dropped frames are counted.
const COUNTED_NS: i64 = 1_000_000_000;
/// Interval once the port is half full: fewer frames at a time.
const PRESSED_INTERVAL: Duration = Duration::from_millis(1);

/// Result of a tap.
#[derive(Debug, Clone, Serialize)]
pub struct Tapped {
    /// Frames written.
    pub packets: u64,
    /// Their bytes on the wire, without FCS.
    pub bytes: u64,
    /// Frames that the kernel dropped since this process was too slow: lost at the tap, not in the
    /// device under test.
    pub dropped: u64,
    /// Mode and counts of a port of AF_XDP.
    #[serde(rename = "xdp", skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// Frames that the interface has lost meanwhile, before any tap could see them, by the driver's counters as ip(8) names
    /// them; those of `dropped` may be among them. Counters that stayed as they were are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interface: BTreeMap<&'static str, u64>,
    /// Time for which frames were left in the port because the disk was behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_waited_ns: Option<i64>,
    /// Frames that came without a stamp. If the port stamps them when this process fetches them, they are written with
    /// that time; otherwise without a stamp, and the analysis counts them as unstamped.
    pub unstamped: u64,
    /// Why the driver had no stamp of the NIC for some of them (AF_XDP).
    #[serde(skip_serializing_if = "Hints::is_none")]
    pub hints: Hints,
    /// Point at which stamps were taken.
    pub stamps: Stamping,
    /// The capture, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

impl Tapped {
    fn of(
        port: &mut dyn Port,
        sink: &TapSink,
        packets: u64,
        bytes: u64,
    ) -> Result<Self, PortError> {
        let counters = port.counters()?;
        let Capabilities { stamping, xdp, .. } = port.capabilities();
        Ok(Self {
            packets,
            bytes,
            dropped: counters.dropped,
            queues: xdp.map(|mode| Queues {
                mode,
                ring_full: counters.ring_full,
                fill_empty: counters.fill_empty,
                elsewhere: counters.elsewhere,
            }),
            interface: BTreeMap::new(),
            disk_waited_ns: sink.file.as_ref().map(CaptureFile::waited_ns),
            unstamped: counters.unstamped,
            hints: counters.hints,
            stamps: stamping,
            file: sink.file.as_ref().map(|file| file.path.clone()),
        })
    }
}

/// Mode of a port of AF_XDP, and frames that it did not take.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Queues {
    /// Mode of the port.
    #[serde(flatten)]
    pub mode: XdpMode,
    /// Of the dropped frames, those that found the ring full.
    pub ring_full: u64,
    /// Number of times at which the driver found no memory to receive into. In copy mode each of them is one of the dropped
    /// frames.
    pub fill_empty: u64,
    /// Frames that came to queues without a socket, and went to the kernel.
    pub elsewhere: u64,
}

/// Why a capture ended early.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The file: frames that were written before are kept.
    #[error("{path}: cannot be written after {}: {source}", counted(*packets, "frame"))]
    Write {
        /// The capture.
        path: PathBuf,
        /// Frames written before the error.
        packets: u64,
        /// The system's error.
        source: io::Error,
    },
}

/// Destinations of the frames.
#[derive(Default)]
pub struct TapSink {
    /// A file.
    pub file: Option<CaptureFile>,
    /// An analysis under way.
    pub feed: Option<Feed>,
    /// From the NIC's clock to that of another one, which all stamps are to be of.
    pub conversion: Option<Conversion>,
    /// Frames that are taken, where not all are.
    pub filter: Option<Filter>,
    /// Counts for a reader meanwhile.
    pub counts: Arc<TapCounts>,
}

/// Counts of a tap while it is under way.
#[derive(Debug, Default)]
pub struct TapCounts {
    /// Frames that the filter did not take.
    pub foreign: AtomicU64,
    /// Frames that the kernel dropped, as of the last second.
    pub dropped: AtomicU64,
}

impl TapSink {
    /// A file only.
    #[must_use]
    pub fn of(file: CaptureFile) -> Self {
        Self { file: Some(file), ..Self::default() }
    }

    fn takes(&self, frame: &Received<'_>) -> bool {
        let takes = self.filter.as_ref().is_none_or(|filter| filter.takes(frame.bytes));
        if !takes {
            self.counts.foreign.fetch_add(1, Ordering::Relaxed);
        }
        takes
    }

    fn failed(&self, source: io::Error) -> TapError {
        let file = self.file.as_ref();
        let (path, packets) =
            file.map(|file| (file.path.clone(), file.written())).unwrap_or_default();
        TapError::Write { path, packets, source }
    }

    fn record(&mut self, frame: &Received<'_>, snap: usize) -> io::Result<()> {
        let kept = &frame.bytes[..frame.bytes.len().min(snap)];
        let stamp_ns = match (frame.stamp, &mut self.conversion) {
            (None, _) => NO_STAMP_NS,
            (Some(Stamp { ns, stamping: Stamping::Hardware }), Some(to)) => to.of_reference(ns),
            (Some(stamp), _) => stamp.ns,
        };
        let head = record_header(stamp_ns, kept.len() as u32, frame.length as u32);
        if let Some(feed) = &mut self.feed {
            feed.record(&head, kept);
        }
        match &mut self.file {
            None => Ok(()),
            Some(file) => file.record(&head, kept),
        }
    }
}

/// Time at which a capture was told to end.
struct End {
    realtime_ns: i64,
    /// Frames may still come out of the port until then.
    until_ns: i64,
}

impl End {
    fn now() -> Self {
        Self { realtime_ns: clock::realtime_ns(), until_ns: clock::monotonic_ns() + LAST_NS }
    }

    /// Whether the frame came after the end. False for stamps of a NIC, whose clock is another one, and of this
    /// process, which stamps when it fetches.
    fn is_before(&self, frame: &Received<'_>) -> bool {
        frame.stamp.is_some_and(|Stamp { ns, stamping }| {
            matches!(stamping, Stamping::Kernel | Stamping::Program) && ns > self.realtime_ns
        })
    }

    fn left(&self) -> Duration {
        let left_ns = self.until_ns - clock::monotonic_ns();
        Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0))
    }
}

/// Takes the frames that the port receives until `stopped`; then those that still wait in the port, up to the first
/// frame with a stamp after that. `seen` counts the frames meanwhile. Stamps of a NIC or of this process cannot decide
/// that: then a port that is never empty is given up after five seconds. Without an analysis, frames stay in the port
/// until it is half full or the end has come: on a machine with few cores, fetching, compressing and writing them takes
/// the CPU from the device under test. Where the interface goes away, the frames so far are kept.
///
/// # Errors
/// [`TapError`].
pub fn tap(
    port: &mut dyn Port,
    mut sink: TapSink,
    snap: usize,
    stopped: &AtomicBool,
    seen: &AtomicU64,
) -> Result<Tapped, TapError> {
    if let Some(file) = &mut sink.file {
        file.header(&header(snap as u32));
    }
    let mut taken = Taken { packets: 0, bytes: 0, failure: None, snap };
    let ended = taken.all(port, &mut sink, stopped, seen);
    if matches!(ended, Err(TapError::Port(_))) {
        taken.rest(port, &mut sink);
    }
    let finished = sink.file.as_mut().map_or(Ok(()), CaptureFile::finish);
    ended?;
    finished.map_err(|source| sink.failed(source))?;
    let tapped = Tapped::of(port, &sink, taken.packets, taken.bytes)?;
    sink.counts.dropped.store(tapped.dropped, Ordering::Relaxed);
    if let Some(feed) = &sink.feed {
        feed.dropped(tapped.dropped);
    }
    Ok(tapped)
}

/// Frames that were taken so far.
struct Taken {
    packets: u64,
    bytes: u64,
    /// Why a frame could not be written.
    failure: Option<io::Error>,
    snap: usize,
}

impl Taken {
    fn one(&mut self, sink: &mut TapSink, frame: &Received<'_>) {
        if self.failure.is_some() || !sink.takes(frame) {
            return;
        }
        match sink.record(frame, self.snap) {
            Ok(()) => {
                self.packets += 1;
                self.bytes += frame.length as u64;
            }
            Err(error) => self.failure = Some(error),
        }
    }

    /// Takes the frames that wait in a port whose interface is gone, and those that it shows late.
    fn rest(&mut self, port: &mut dyn Port, sink: &mut TapSink) {
        let until_ns = clock::monotonic_ns() + LAST_NS;
        while self.failure.is_none() && clock::monotonic_ns() < until_ns {
            match port.receive(BATCH, &mut |frame| self.one(sink, &frame)) {
                Ok(0) => std::thread::sleep(INTERVAL),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn all(
        &mut self,
        port: &mut dyn Port,
        sink: &mut TapSink,
        stopped: &AtomicBool,
        seen: &AtomicU64,
    ) -> Result<(), TapError> {
        let stamping = port.capabilities().stamping;
        // A stamp of this process is the time of fetching: frames must be fetched at once.
        let prompt = stamping == Stamping::Process;
        let mut pressed = prompt || sink.feed.is_some();
        let (mut end, mut last) = (None, GracePeriod::default());
        let mut counted_ns = clock::monotonic_ns();
        loop {
            let ending = stopped.load(Ordering::Acquire);
            if ending {
                end.get_or_insert_with(End::now);
            }
            pressed |= port.is_pressed();
            if !pressed && !ending {
                std::thread::sleep(INTERVAL);
                // An error if the interface is gone: only a call that asks returns it.
                port.wait(Duration::ZERO)?;
                continue;
            }
            let mut ended = false;
            let fetched_ns = clock::realtime_ns();
            let count = port.receive(BATCH, &mut |frame| {
                // Queues are slightly out of order: behind a frame past the end there may be one before it.
                let past = end.as_ref().is_some_and(|end| end.is_before(&frame));
                ended |= past;
                if !past {
                    self.one(sink, &frame);
                }
            })?;
            if let Some(source) = self.failure.take() {
                return Err(sink.failed(source));
            }
            seen.store(self.packets, Ordering::Relaxed);
            if clock::monotonic_ns() - counted_ns >= COUNTED_NS {
                counted_ns = clock::monotonic_ns();
                sink.counts.dropped.store(port.counters()?.dropped, Ordering::Relaxed);
            }
            if ending && (ended || last.is_over()) {
                return Ok(());
            }
            if count < BATCH {
                if let Some(feed) = &mut sink.feed {
                    // The clock of a NIC is another one: its stamps cannot be compared with this time.
                    feed.quiet_until(match stamping {
                        Stamping::Hardware => i64::MIN,
                        _ => fetched_ns - LAST_NS,
                    });
                }
                if !ending && prompt {
                    port.wait(INTERVAL)?;
                    continue;
                }
                if !ending {
                    let fed = sink.feed.is_some();
                    std::thread::sleep(if fed { INTERVAL } else { PRESSED_INTERVAL });
                    // An error if the interface is gone.
                    port.wait(Duration::ZERO)?;
                    continue;
                }
                let left = end.as_ref().map_or(Duration::ZERO, End::left);
                if left.is_zero() || count == 0 && !port.wait(left)? {
                    return Ok(());
                }
            }
        }
    }
}
