//! Proof of what drivers claim: a thousand packets each way between the two ends of a cable. What is claimed and not seen
//! is not to be used.

mod af_xdp;
mod clock;
mod crossing;
mod frame;
mod held;
mod side;
mod stamps;

pub use af_xdp::Bound;
pub use clock::ClockMeasured;
pub use crossing::Crossed;
pub use stamps::{AtRate, Errors, Stamped};

use frame::Frame;
use held::{Held, Set};
use serde::Serialize;
use side::{PACKETS, Side, Stage};
use stamps::Column;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tailtrim_ports::claims::Claims;
use tailtrim_ports::port::PortError;
use tailtrim_sys::ethtool::filter_name;
use tailtrim_sys::{clock as system, interface};
use tailtrim_trace::phc::Offset;
use tailtrim_tracer::clock::{ClockSteps, Phc};

/// Rates of the packets: slow enough for a card with one register, up to what a NIC's tail is measured with.
const RATES_PPS: [i64; 4] = [1_000, 10_000, 50_000, 100_000];
/// Filters by number: all packets, and no filter at all.
const ALL: i32 = 1;
const NONE: i32 = 0;
/// A link that was set up is there within so long: autonegotiation of 1000BASE-T takes three seconds.
const LINK_NS: i64 = 10_000_000_000;
const LOOK: Duration = Duration::from_millis(20);

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// With every packet.
    Proven,
    /// With some packets, or with faults.
    Partial,
    /// Claimed, and not seen.
    Refuted,
    /// Neither claimed nor seen.
    Absent,
    /// It could not be tried.
    Untested,
}

/// Ability that an interface may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// Stamps of received packets by the kernel.
    ReceiveKernel,
    /// Stamps of received packets by the NIC.
    ReceiveNic,
    /// Stamps of sent packets by the kernel.
    TransmitKernel,
    /// Stamps of sent packets by the NIC.
    TransmitNic,
    /// Stamps of sent packets and the other end's of the same packets: their times on the cable.
    TransmitToReceive,
    /// A clock in the NIC.
    Phc,
    /// AF_XDP without copies.
    ZeroCopy,
    /// Stamps of received packets by the NIC for XDP programs.
    XdpHint,
    /// Stamps of sent packets for sockets of AF_XDP.
    TransmitXdp,
    /// AF_XDP's sending at a time.
    LaunchTime,
}

/// A claim of an interface, and what was seen of it.
#[derive(Debug, Clone, Serialize)]
pub struct Proven {
    /// The interface.
    pub interface: String,
    /// The claim.
    pub claim: Claim,
    /// Whether the driver claims it.
    pub claimed: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Evidence against it.
    pub why: Option<String>,
    /// The packets that the NIC stamps by the filter that the driver really set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'static str>,
    /// The numbers.
    #[serde(flatten)]
    pub measured: Option<Measured>,
}

/// Numbers behind a verdict.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// Of stamps.
    Stamps(Stamped),
    /// Of a clock.
    Clock(ClockMeasured),
    /// Of times on the cable.
    Crossed(Crossed),
    /// Of a socket of AF_XDP.
    Xdp(Bound),
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// Both ends are one interface.
    #[error("{0} twice, expected the two ends of a cable")]
    Same(String),
    /// An interface is missing, or cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The interfaces cannot be prepared.
    #[error("{0}")]
    Setup(String),
    /// No link.
    #[error("{0}: no link, expected a cable to the other end")]
    NoLink(String),
    /// Nothing came.
    #[error("no packet of {from} came to {to}, expected a cable between them")]
    Silent {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
    /// Stamps of before and behind cannot be compared.
    #[error(
        "the system's clock was set by {0} ns meanwhile, expected one that runs evenly: measure again"
    )]
    ClockSet(i64),
    /// Asked to stop.
    #[error("stopped")]
    Stopped,
}

/// Measures what the two ends of a cable claim. All settings are put back, also when this process is killed. To be
/// called before other threads are started.
///
/// # Errors
/// [`ProveError`].
pub fn prove(ends: [&str; 2], stopped: &AtomicBool) -> Result<Vec<Proven>, ProveError> {
    if ends[0] == ends[1] {
        return Err(ProveError::Same(ends[0].to_owned()));
    }
    let claims = [Claims::of(ends[0])?, Claims::of(ends[1])?];
    let held = Held::take(ends).map_err(ProveError::Setup)?;
    for end in ends {
        wait_for_link(end)?;
    }
    let open = |end: &str| {
        Side::open(end).map_err(|source| {
            let (port, hint) = (end.to_owned(), " (needs root, or CAP_NET_RAW and CAP_NET_ADMIN)");
            PortError::Open { port, what: "raw sockets", source, hint }
        })
    };
    let mut sides = [open(ends[0])?, open(ends[1])?];
    let run = system::realtime_ns().cast_unsigned();
    let mut steps = ClockSteps::watch();
    let mut clocks = claims.each_ref().map(|claims| Watched::begin(claims.phc.as_deref()));
    let both = crossing::Ends::begin(&claims);
    let mut ways = Vec::new();
    // In the format that the receiver's NIC stamps.
    let ptp = |to: usize| ![ALL, NONE].contains(&held.set[to].filter);
    for (from, to) in [(0, 1), (1, 0)] {
        let (sender, receiver) = apart(&mut sides, from);
        let mut frame = Frame::new(sender.mac, receiver.mac, ptp(to), run);
        // Not in PTP's format: a register that is read once would have its stamp already.
        let mut others = Frame::new(sender.mac, receiver.mac, false, run.wrapping_add(1));
        sender.warm_up(receiver, &mut others).map_err(broken(ends[from]))?;
        let mut stages = Vec::new();
        for rate in RATES_PPS {
            if stopped.load(Ordering::Acquire) {
                return Err(ProveError::Stopped);
            }
            let stage = sender.send(receiver, &mut frame, 1_000_000_000 / rate);
            stages.push(stage.map_err(broken(ends[from]))?);
            clocks.iter_mut().for_each(Watched::look);
        }
        if stages.iter().all(|stage| stage.arrived() == 0) {
            let [from, to] = [from, to].map(|end| ends[end].to_owned());
            return Err(ProveError::Silent { from, to });
        }
        ways.push(stages);
    }
    let mut both = both.end();
    match steps.sum_ns() {
        0 => {}
        by_ns => return Err(ProveError::ClockSet(by_ns)),
    }
    let mut proven = Vec::new();
    for end in [0, 1] {
        let clock = clocks[end].judged(&claims[end]);
        let of = Of { end: &claims[end], peer: ends[1 - end], set: &held.set[end], clock: &clock };
        proven.extend(of.stamps(&ways[1 - end], &ways[end]));
        proven.push(both.proven(end, &claims, &ways[1 - end]));
        proven.push(clock);
    }
    for end in [0, 1] {
        let (mine, peer) = apart(&mut sides, end);
        let mut frame = Frame::new(peer.mac, mine.mac, ptp(end), run);
        proven.extend(af_xdp::tried(&claims[end], peer, &mut frame));
    }
    proven.sort_by_key(|proven| proven.interface != ends[0]);
    Ok(proven)
}

/// One side and the other.
fn apart([first, second]: &mut [Side; 2], one: usize) -> (&mut Side, &mut Side) {
    if one == 0 { (first, second) } else { (second, first) }
}

fn broken(port: &str) -> impl Fn(io::Error) -> PortError {
    move |source| PortError::Broken { port: port.to_owned(), what: "sending", source }
}

fn wait_for_link(name: &str) -> Result<(), ProveError> {
    let ends_ns = system::monotonic_ns() + LINK_NS;
    while !interface::state(name).is_ok_and(|state| state.link) {
        if system::monotonic_ns() > ends_ns {
            return Err(ProveError::NoLink(name.to_owned()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// An interface that was measured.
struct Of<'a> {
    end: &'a Claims,
    peer: &'a str,
    set: &'a Set,
    clock: &'a Proven,
}

impl Of<'_> {
    /// Stamps of all places, by packets that came in and that went out.
    fn stamps(&self, came: &[Stage], went: &[Stage]) -> [Proven; 4] {
        let name = |what: &str| format!("{what} of {}", self.peer);
        let senders: [(String, Column); 3] = [
            (name("NIC"), |stage| &stage.sent_nic),
            (name("kernel"), |stage| &stage.sent_kernel),
            (name("process"), |stage| &stage.process),
        ];
        let receivers: [(String, Column); 2] = [
            (name("NIC"), |stage| &stage.received_nic),
            (name("kernel"), |stage| &stage.received_kernel),
        ];
        let sent = |stage: &Stage| stage.process.len();
        let claims = self.end;
        let received = |column: Column| stamps::measured(came, column, Stage::arrived, &senders);
        let transmitted = |column: Column| stamps::measured(went, column, sent, &receivers);
        [
            self.by_kernel(
                Claim::ReceiveKernel,
                claims.receive_stamps.kernel,
                received(|stage| &stage.received_kernel),
            ),
            self.by_nic(
                Claim::ReceiveNic,
                !claims.receive_stamps.nic.is_empty(),
                received(|stage| &stage.received_nic),
            ),
            self.by_kernel(
                Claim::TransmitKernel,
                claims.transmit_stamps.kernel,
                transmitted(|stage| &stage.sent_kernel),
            ),
            self.by_nic(
                Claim::TransmitNic,
                !claims.transmit_stamps.nic.is_empty(),
                transmitted(|stage| &stage.sent_nic),
            ),
        ]
    }

    fn by_kernel(&self, claim: Claim, claimed: bool, told: Stamped) -> Proven {
        let (verdict, why) = stamps::judged(claimed, &told);
        self.proven(claim, claimed, (verdict, why), told)
    }

    fn by_nic(&self, claim: Claim, claimed: bool, told: Stamped) -> Proven {
        let set = claim == Claim::ReceiveNic && self.set.filter != NONE;
        let filter = set.then(|| filter_name(self.set.filter));
        let claims_all = self.end.receive_stamps.nic.contains(&"all");
        let judged = match (stamps::judged(claimed, &told), &self.set.why) {
            ((Verdict::Refuted, _), Some(why)) => (Verdict::Refuted, Some(why.clone())),
            // Good stamps of a bad clock.
            ((Verdict::Proven, _), _) if self.clock.verdict == Verdict::Refuted => {
                (Verdict::Partial, Some("its clock is refuted".to_owned()))
            }
            ((Verdict::Proven, _), _) if filter.is_some_and(|set| claims_all && set != "all") => {
                let why = "the driver claims all packets and has set another filter";
                (Verdict::Partial, Some(why.to_owned()))
            }
            (judged, _) => judged,
        };
        let mut proven = self.proven(claim, claimed, judged, told);
        proven.filter = filter;
        proven
    }

    fn proven(
        &self,
        claim: Claim,
        claimed: bool,
        (verdict, why): (Verdict, Option<String>),
        told: Stamped,
    ) -> Proven {
        Proven {
            interface: self.end.interface.clone(),
            claim,
            claimed,
            verdict,
            why,
            filter: None,
            measured: Some(Measured::Stamps(told)),
        }
    }
}

/// The clock of a NIC, which is read again and again.
struct Watched {
    phc: Option<Result<Phc, String>>,
    readings: Vec<Offset>,
}

impl Watched {
    fn begin(device: Option<&str>) -> Self {
        let open =
            |device: &str| Phc::open(device).map_err(|error| format!("/dev/{device}: {error}"));
        let mut watched = Self { phc: device.map(open), readings: Vec::new() };
        watched.look();
        watched
    }

    fn look(&mut self) {
        if let Some(Ok(phc)) = &self.phc {
            match phc.offset() {
                Ok(reading) => self.readings.push(reading),
                Err(error) => self.phc = Some(Err(error)),
            }
        }
    }

    fn judged(&self, claims: &Claims) -> Proven {
        let mut measured = clock::measured(&self.readings);
        if let (Some(Ok(phc)), Some(measured)) = (&self.phc, &mut measured) {
            measured.frequency_ppb = phc.frequency_ppb();
        }
        let (verdict, why) = match (&self.phc, &measured) {
            (None, _) => (Verdict::Absent, None),
            (Some(Err(why)), _) => (Verdict::Untested, Some(why.clone())),
            (Some(Ok(_)), None) => (Verdict::Refuted, Some("it stands still".to_owned())),
            (Some(Ok(_)), Some(measured)) => clock::judged(measured),
        };
        Proven {
            interface: claims.interface.clone(),
            claim: Claim::Phc,
            claimed: claims.phc.is_some(),
            verdict,
            why,
            filter: None,
            measured: measured.map(Measured::Clock),
        }
    }
}

/// Packets that are sent each way.
#[must_use]
pub fn packets() -> usize {
    PACKETS * RATES_PPS.len()
}
