//! A socket to a target, and what came of its probes.

use crate::minute::{Arrivals, Outcome, Sample};
use crate::plan::TargetPlan;
use std::net::SocketAddr;
use tailtrim_probes::socket::SocketError;
use tailtrim_probes::target::{Destination, Probing, Target};
use tailtrim_roundtrip::{Ending, RoundTrip, StampLevel};

/// Decided probes are remembered this long, for late replies and duplicates.
const REMEMBERED_NS: u64 = 10_000_000_000;

/// Opens the socket of one source port.
pub(crate) fn open(
    number: usize,
    plan: &TargetPlan,
    address: SocketAddr,
    source_port: u16,
) -> Result<Target, SocketError> {
    let of_all = REMEMBERED_NS / plan.interval_ns;
    let shared = Probing {
        payload_bytes: plan.payload_bytes,
        timeout_ns: plan.timeout_ns,
        remembered: (of_all as usize / plan.source_ports.len()).clamp(16, 1 << 16),
        level: plan.level,
        device: plan.interface.clone(),
        busy_poll_us: None,
        hops: plan.ttl,
        receive_buffer: None,
        same_clock: false,
    };
    let destination = Destination {
        address,
        source: plan.source,
        source_port,
        traffic_class: plan.traffic_class,
        protocol: plan.protocol.clone(),
    };
    Target::open(number, destination, &shared)
}

/// Datagrams that came to a socket beside first replies in time.
pub(crate) fn arrivals(link: &Target) -> Arrivals {
    let counts = link.session().counts();
    Arrivals {
        late: counts.replies.late,
        duplicate: counts.replies.duplicate,
        stray: counts.replies.stray,
        altered: counts.replies.altered,
        malformed: counts.replies.malformed,
        unauthentic: counts.replies.unauthentic,
        reordered: counts.reordered,
        // A socket that cannot be asked is closed soon.
        overflowed: link.socket().overflowed().map_or(0, u64::from),
    }
}

/// Outcome of a decided probe. Stamps of one that was under way during a step of the clock cannot be subtracted.
pub(crate) fn outcome(trip: &RoundTrip, level: StampLevel, stepped: bool) -> Outcome {
    match trip.ending {
        Ending::Answered => {
            let stamps = &trip.stamps;
            if stepped {
                return Outcome::Disturbed;
            }
            let sample = stamps.begin_ns(level).zip(stamps.round_trip_ns(level));
            let Some((begin_ns, latency_ns)) = sample else { return Outcome::Unstamped };
            let whole_ns = stamps.whole_ns(StampLevel::Application).zip(stamps.whole_ns(level));
            Outcome::Answered(Sample {
                begin_ns,
                latency_ns,
                residence_ns: stamps.residence_ns(),
                own_host_ns: whole_ns.map(|(application_ns, whole_ns)| application_ns - whole_ns),
            })
        }
        Ending::Late => Outcome::Late,
        Ending::Altered => Outcome::Altered,
        Ending::Lost => Outcome::Lost,
        Ending::Undelivered(_) => Outcome::Undelivered,
        Ending::Cut => Outcome::Cut,
    }
}
