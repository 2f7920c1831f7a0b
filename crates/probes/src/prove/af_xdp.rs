//! Claims about AF_XDP: a driver may fall back to copying when a socket is bound, and may have no stamp when a program asks.

use super::frame::Frame;
use super::side::{Side, Stage};
use super::{Claim, Measured, Proven, Stamped, Verdict, stamps, wait_for_link};
use serde::Serialize;
use std::time::Duration;
use tailtrim_ports::claims::{AfXdp, Claims};
use tailtrim_ports::port::{
    Hints, Port, PortError, PortKind, PortName, Received, Receiving, Stamping, XdpMode, XdpPort,
};
use tailtrim_sys::clock;

/// Packets that are sent to the socket, and the time between two.
const PACKETS: usize = 100;
const GAP_NS: i64 = 100_000;
/// Nothing more comes after so long.
const QUIET: Duration = Duration::from_millis(500);
/// The end also where others send all the time.
const LONGEST_NS: i64 = 3_000_000_000;

/// A socket of AF_XDP that was bound.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// Mode in which it was bound.
    #[serde(flatten)]
    pub mode: XdpMode,
    /// Packets that were sent to it.
    pub packets: usize,
    /// Of those, packets that came.
    pub received: usize,
    /// Packets that came to other queues.
    pub elsewhere: u64,
}

/// A socket that was tried.
struct Tried {
    mode: XdpMode,
    stage: Stage,
    elsewhere: u64,
    hints: Hints,
}

/// Tries what the driver claims, and nothing else: binding may reset the link.
pub(super) fn tried(claims: &Claims, peer: &mut Side, frame: &mut Frame) -> [Proven; 4] {
    let untested = |why: &str| (Verdict::Untested, Some(why.to_owned()), None);
    let mut of = |claim, has: fn(&AfXdp) -> bool, judged: Option<fn(&Tried) -> Judged>| {
        let claimed = claims.af_xdp.as_ref().map(has);
        let (verdict, why, measured) = match (claimed, judged) {
            (None, _) => untested("the kernel tells no claims"),
            (Some(false), _) => (Verdict::Absent, None, None),
            (Some(true), None) => untested("nothing here sends so, and it is not used"),
            (Some(true), Some(judged)) => {
                match bound(&claims.interface, peer, frame, claim == Claim::XdpHint) {
                    Ok(tried) => judged(&tried),
                    Err(why) => untested(&why),
                }
            }
        };
        let (interface, claimed) = (claims.interface.clone(), claimed == Some(true));
        Proven { interface, claim, claimed, verdict, why, filter: None, measured }
    };
    [
        of(Claim::ZeroCopy, |told| told.zero_copy, Some(zero_copy)),
        of(Claim::XdpHint, AfXdp::hints_stamps, Some(hint)),
        of(Claim::TransmitXdp, AfXdp::stamps_sent, None),
        of(Claim::LaunchTime, |told| told.launch_time, None),
    ]
}

type Judged = (Verdict, Option<String>, Option<Measured>);

fn zero_copy(tried: &Tried) -> Judged {
    let &Tried { mode, elsewhere, .. } = tried;
    let received = tried.stage.arrived();
    let came = Some(format!("{received} of {PACKETS} packets came"));
    let (verdict, why) = match received {
        _ if !mode.zero_copy => {
            (Verdict::Refuted, Some("binding a socket fell back to copying".to_owned()))
        }
        0 => (Verdict::Refuted, came),
        some if some < PACKETS => (Verdict::Partial, came),
        _ => (Verdict::Proven, None),
    };
    (verdict, why, Some(Measured::Xdp(Bound { mode, packets: PACKETS, received, elsewhere })))
}

fn hint(tried: &Tried) -> Judged {
    let told: Stamped = stamps::measured(
        std::slice::from_ref(&tried.stage),
        |stage| &stage.received_nic,
        Stage::arrived,
        &[("process of the other end".to_owned(), |stage| &stage.process)],
    );
    let (verdict, why) = match told.packets {
        0 => (Verdict::Untested, Some("no packet came".to_owned())),
        _ => stamps::judged(true, &told),
    };
    let Hints { unsupported, no_data, zero } = tried.hints;
    let answers = [("not supported", unsupported), ("no data", no_data), ("0", zero)];
    let answers = answers.iter().filter(|(_, count)| *count > 0);
    let answers: Vec<String> =
        answers.map(|(told, count)| format!("{told} {count} times")).collect();
    let why = match (why, &answers[..]) {
        (Some(why), [_, ..]) => Some(format!("{why}: the driver answers {}", answers.join(", "))),
        (why, _) => why,
    };
    (verdict, why, Some(Measured::Stamps(told)))
}

fn bound(
    interface: &str,
    peer: &mut Side,
    frame: &mut Frame,
    hints: bool,
) -> Result<Tried, String> {
    let text = |error: PortError| error.to_string();
    let name = PortName { kind: PortKind::Xdp, interface: interface.to_owned(), queue: None };
    let receiving =
        Receiving { snap: 2_048, memory_bytes: 1 << 20, promptly: true, hardware: hints };
    let mut port = XdpPort::open(&name, Some(receiving)).map_err(text)?;
    let mode = port.capabilities().xdp.ok_or("not a port of AF_XDP")?;
    wait_for_link(interface).map_err(|error| error.to_string())?;
    let (mut stage, first) = (Stage::new(GAP_NS, PACKETS), frame.number());
    stage.process = peer.send_paced(frame, GAP_NS, PACKETS).map_err(|error| error.to_string())?;
    let ends_ns = clock::monotonic_ns() + LONGEST_NS;
    let mut take = |packet: Received<'_>| {
        let number = frame.number_of(packet.bytes).map(|number| number.wrapping_sub(first));
        let Some(number) = number.map(usize::from) else { return };
        if stage.note_arrival(number) {
            let by_nic = packet.stamp.filter(|stamp| stamp.stamping == Stamping::Hardware);
            stage.received_nic[number] = by_nic.map(|stamp| stamp.ns);
        }
    };
    while clock::monotonic_ns() < ends_ns && port.wait(QUIET).map_err(text)? {
        port.receive(PACKETS, &mut take).map_err(text)?;
    }
    let counters = port.counters().map_err(text)?;
    Ok(Tried { mode, stage, elsewhere: counters.elsewhere, hints: counters.hints })
}
