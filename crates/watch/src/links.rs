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

/// Outcome of a decided probe. If it was under way during a step of the clock, its stamps cannot be subtracted and its
/// timeout is unknown: it counts for no objective.
pub(crate) fn outcome(trip: &RoundTrip, level: StampLevel, stepped: bool) -> Outcome {
    match trip.ending {
        Ending::Answered if stepped => Outcome::Disturbed,
        _ if stepped => Outcome::Cut,
        Ending::Answered => {
            let stamps = &trip.stamps;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Share, State};
    use tailtrim_roundtrip::{Obstacle, Stamps};

    const LEVEL: StampLevel = StampLevel::Application;

    fn trip(ending: Ending) -> RoundTrip {
        let app_receive_ns = (ending == Ending::Answered).then_some(9_000_000);
        RoundTrip {
            number: 0,
            intended_ns: 0,
            stamps: Stamps { app_receive_ns, ..Stamps::default() },
            ending,
            reply_bytes: None,
            reply_hops: None,
            far_hops: None,
            clock_bound_ns: None,
            far_number: None,
            sender_stamp: 0,
        }
    }

    #[test]
    fn probes_under_way_during_a_step_of_the_clock_count_for_no_objective() {
        let states =
            ["adjusted p99 < 5ms", "loss < 1%"].map(|text| State::new(text.parse().unwrap()));
        let undelivered = Ending::Undelivered(Obstacle::Icmp(3, 3));
        for ending in [Ending::Late, Ending::Altered, Ending::Lost, Ending::Cut, undelivered] {
            assert_eq!(outcome(&trip(ending), LEVEL, true), Outcome::Cut, "{ending:?}");
        }
        assert_eq!(outcome(&trip(Ending::Answered), LEVEL, true), Outcome::Disturbed);
        for state in &states {
            for outcome in [Outcome::Cut, Outcome::Disturbed] {
                assert_eq!(state.judge(outcome), Share::default());
            }
        }
        // Without a step they are what they were.
        assert_eq!(outcome(&trip(Ending::Lost), LEVEL, false), Outcome::Lost);
        assert!(matches!(outcome(&trip(Ending::Answered), LEVEL, false), Outcome::Answered(_)));
    }
}
