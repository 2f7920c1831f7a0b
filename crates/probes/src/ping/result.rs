//! Result of a round-trip measurement.

use serde::Serialize;
use std::net::SocketAddr;
use tailtrim_roundtrip::{Counts, OneWay, Parts, StampLevel};
use tailtrim_stats::LatenessSummary;
use tailtrim_tail::summary::{Summary, Warning, counted, counted_do, grouped};

/// Round trips of all streams.
#[derive(Debug, Clone, Serialize)]
pub struct Pinged {
    /// Where a round trip begins and ends.
    pub level: StampLevel,
    /// Replies after this time are late.
    pub timeout_ns: i64,
    /// Departure lateness of the probes of the first stream.
    pub lateness_ns: LatenessSummary,
    /// By how much the clock was set or slewed meanwhile.
    pub clock_stepped_ns: i64,
    /// Each stream.
    pub streams: Vec<StreamResult>,
}

/// Round trips of a stream.
#[derive(Debug, Clone, Serialize)]
pub struct StreamResult {
    /// Name of the stream: target, and source and class where there are several.
    pub name: String,
    /// Address of the target.
    pub target: SocketAddr,
    /// From where.
    pub local: SocketAddr,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// DSCP and ECN of the probes.
    pub traffic_class: Option<u8>,
    /// Bytes of a probe's IP packet.
    pub packet_bytes: usize,
    /// Probes and replies by outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// Answered probes that lack a stamp for the level asked for: they are not samples.
    pub unstamped: u64,
    /// The parts of the round trips.
    pub parts: Parts,
    /// One-way delays, where both clocks agree.
    pub one_way: Option<OneWay>,
    /// The round-trip times, with the statistics of every analysis.
    pub summary: Summary,
}

/// Warnings of taps that may not have recorded all the time; here each probe was waited for.
const OF_CAPTURES: [&str; 4] =
    ["ingress_empty", "egress_empty", "egress_began_late", "egress_ended_early"];

impl StreamResult {
    /// Puts into the summary the counts that its matching did not see.
    pub(super) fn complete(&mut self) {
        let Counts { probes, replies, .. } = &self.counts;
        let ingress = &mut self.summary.ingress;
        ingress.packets += probes.cut + self.unstamped;
        ingress.cut += probes.cut;
        ingress.unstamped += self.unstamped;
        // A late reply is one beyond the window, not a loss; quantiles count both alike.
        let late = probes.late.min(ingress.lost);
        ingress.lost -= late;
        ingress.beyond_window += late;
        let egress = &mut self.summary.egress;
        let unmatched = replies.late
            + replies.stray
            + replies.altered
            + replies.malformed
            + replies.unauthentic;
        egress.packets += replies.duplicate + unmatched + self.unstamped;
        egress.copy += replies.duplicate;
        egress.unmatched += unmatched;
        egress.unstamped += self.unstamped;
        self.summary.warnings.retain(|warning| !OF_CAPTURES.contains(&warning.code));
        self.warn();
    }

    fn warn(&mut self) {
        let Counts { probes, replies, overflowed, unattributed_errors, obstacles, .. } =
            &self.counts;
        let causes: Vec<String> =
            obstacles.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let unanswered = if probes.answered == 0 { probes.sent() } else { 0 };
        let all = [
            ("unanswered", unanswered, "no probe was answered".to_owned()),
            (
                "refused",
                probes.refused,
                format!(
                    "this host could not send {}: {}",
                    counted(probes.refused, "probe"),
                    causes.join(", ")
                ),
            ),
            (
                "undelivered",
                probes.undelivered,
                format!(
                    "{} did not arrive, as ICMP messages say: {}",
                    counted(probes.undelivered, "probe"),
                    causes.join(", ")
                ),
            ),
            (
                "altered",
                replies.altered,
                format!(
                    "{} replies have another T1 than was sent, so they are not answers: {} got only \
                     such; the far host or the path changes packets",
                    grouped(replies.altered),
                    counted(probes.altered, "probe")
                ),
            ),
            (
                "unstamped",
                self.unstamped,
                format!(
                    "{} a stamp of the chosen level, no samples therefore; level \
                     application needs no stamps",
                    counted_do(self.unstamped, "answered probe", ["lacks", "lack"])
                ),
            ),
            (
                "overflowed",
                *overflowed,
                format!(
                    "the socket had no room for {}: up to that many answered probes may be \
                     counted as lost",
                    counted(*overflowed, "datagram")
                ),
            ),
            (
                "unattributed_errors",
                *unattributed_errors,
                format!(
                    "{} of ICMP could not be assigned to a probe",
                    counted(*unattributed_errors, "message")
                ),
            ),
        ];
        let warnings = all.into_iter().filter(|(_, count, _)| *count > 0);
        self.summary.warnings.extend(warnings.map(|(code, count, text)| Warning {
            code,
            count,
            text,
            invalidates: false,
        }));
    }
}
