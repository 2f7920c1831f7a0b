//! A test whether AF_XDP really gets packets without copies: a driver may fall back to copying when the socket is bound.

use super::frame::Frame;
use super::side::Side;
use super::{Claim, Measured, Proven, Verdict, wait_for_link};
use serde::Serialize;
use std::time::Duration;
use tailtrim_ports::claims::Claims;
use tailtrim_ports::port::{
    Port, PortError, PortKind, PortName, Received, Receiving, XdpMode, XdpPort,
};
use tailtrim_sys::clock;

/// Packets that are sent to the socket, and the time between two.
const PACKETS: usize = 100;
const GAP: Duration = Duration::from_micros(100);
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

/// Tries it, where the driver claims it: binding may reset the link.
pub(super) fn tried(claims: &Claims, peer: &mut Side, frame: &mut Frame) -> Proven {
    let claimed = claims.af_xdp.as_ref().is_some_and(|told| told.zero_copy);
    let (verdict, why, measured) = match claimed.then(|| bound(&claims.interface, peer, frame)) {
        None => (Verdict::Absent, None, None),
        Some(Err(why)) => (Verdict::Untested, Some(why), None),
        Some(Ok(told)) => {
            let (verdict, why) = judged(&told);
            (verdict, why, Some(Measured::Xdp(told)))
        }
    };
    let interface = claims.interface.clone();
    Proven { interface, claim: Claim::ZeroCopy, claimed, verdict, why, filter: None, measured }
}

fn judged(told: &Bound) -> (Verdict, Option<String>) {
    let came =
        |verdict| (verdict, Some(format!("{} of {} packets came", told.received, told.packets)));
    match told.received {
        _ if !told.mode.zero_copy => {
            (Verdict::Refuted, Some("binding a socket fell back to copying".to_owned()))
        }
        0 => came(Verdict::Refuted),
        some if some < told.packets => came(Verdict::Partial),
        _ => (Verdict::Proven, None),
    }
}

fn bound(interface: &str, peer: &mut Side, frame: &mut Frame) -> Result<Bound, String> {
    let text = |error: PortError| error.to_string();
    let name = PortName { kind: PortKind::Xdp, interface: interface.to_owned(), queue: 0 };
    let receiving =
        Receiving { snap: 2_048, memory_bytes: 1 << 20, promptly: true, hardware: false };
    let mut port = XdpPort::open(&name, Some(receiving)).map_err(text)?;
    let mode = port.capabilities().xdp.ok_or("not a port of AF_XDP")?;
    wait_for_link(interface).map_err(|error| error.to_string())?;
    peer.send_only(frame, PACKETS, GAP).map_err(|error| error.to_string())?;
    let (mut received, ends_ns) = (0, clock::monotonic_ns() + LONGEST_NS);
    let mut count = |packet: Received<'_>| {
        received += usize::from(frame.number_of(packet.bytes).is_some());
    };
    while clock::monotonic_ns() < ends_ns && port.wait(QUIET).map_err(text)? {
        port.receive(PACKETS, &mut count).map_err(text)?;
    }
    let counters = port.counters().map_err(text)?;
    Ok(Bound { mode, packets: PACKETS, received, elsewhere: counters.elsewhere })
}
