//! A minute of a target: each probe in one outcome, and the latencies of those that were answered.

use crate::tapped::{TapLine, Tapped};
use crate::values::{Values, Written};
use serde::Serialize;

/// Length of a minute in ns.
pub(crate) const MINUTE_NS: i64 = 60_000_000_000;

/// Outcome of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A reply came in time.
    Answered(Sample),
    /// A reply came in time, and a stamp is missing.
    Unstamped,
    /// A reply came in time, and the clock was stepped meanwhile.
    Disturbed,
    /// A reply came after the timeout.
    Late,
    /// No reply.
    Lost,
    /// Only replies came whose bytes were changed.
    Altered,
    /// An ICMP message said that the probe does not arrive.
    Undelivered,
    /// This host did not send it.
    Refused,
    /// This process was late by more than a second, and did not send it.
    Missed,
    /// The watch ended before the timeout, or the clock was stepped.
    Cut,
}

impl Outcome {
    /// As in metrics and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Unstamped => "unstamped",
            Self::Disturbed => "disturbed",
            Self::Late => "late",
            Self::Lost => "lost",
            Self::Altered => "altered",
            Self::Undelivered => "undelivered",
            Self::Refused => "refused",
            Self::Missed => "missed",
            Self::Cut => "cut",
        }
    }
}

/// The round trip of an answered probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When it began, `CLOCK_REALTIME`.
    pub begin_ns: i64,
    /// The round-trip time, without the far host's residence where it is known.
    pub latency_ns: i64,
    /// Time that the far host had the probe, by its own report.
    pub residence_ns: Option<i64>,
    /// Time in this host, before and behind the stamps.
    pub own_host_ns: Option<i64>,
}

/// Probes by outcome. All but `due`, `unstamped` and `disturbed` add up to `due`; these two are among `answered`, and no samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Probes that were to be sent.
    pub due: u64,
    /// A reply came in time.
    pub answered: u64,
    /// Of those, probes that lack a stamp: no samples.
    pub unstamped: u64,
    /// Of those, probes under way when the clock was stepped: no samples.
    pub disturbed: u64,
    /// A reply came after the timeout.
    pub late: u64,
    /// No reply until the minute was written.
    pub lost: u64,
    /// Only replies came whose bytes were changed.
    pub altered: u64,
    /// An ICMP message said that the probe does not arrive.
    pub undelivered: u64,
    /// This host did not send it.
    pub refused: u64,
    /// This process was late by more than a second, and did not send it.
    pub missed: u64,
    /// The watch ended before the timeout, or the clock was stepped.
    pub cut: u64,
}

impl Counts {
    /// Enters a probe.
    pub fn add(&mut self, outcome: Outcome) {
        self.due += 1;
        let count = match outcome {
            Outcome::Answered(_) => &mut self.answered,
            Outcome::Unstamped => {
                self.unstamped += 1;
                &mut self.answered
            }
            Outcome::Disturbed => {
                self.disturbed += 1;
                &mut self.answered
            }
            Outcome::Late => &mut self.late,
            Outcome::Lost => &mut self.lost,
            Outcome::Altered => &mut self.altered,
            Outcome::Undelivered => &mut self.undelivered,
            Outcome::Refused => &mut self.refused,
            Outcome::Missed => &mut self.missed,
            Outcome::Cut => &mut self.cut,
        };
        *count += 1;
    }

    /// Probes that left and were not answered in time.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.late + self.lost + self.altered + self.undelivered
    }
}

/// Datagrams that came beside first replies in time, by kind, in the minute in which they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// First replies after the timeout.
    pub late: u64,
    /// Further replies.
    pub duplicate: u64,
    /// Replies to no probe that is remembered.
    pub stray: u64,
    /// Replies whose bytes were changed.
    pub altered: u64,
    /// No replies: too short, wrong, or cut.
    pub malformed: u64,
    /// Replies that are not signed with the key.
    pub unauthentic: u64,
    /// First replies in time that came after one to a later probe.
    pub reordered: u64,
    /// Datagrams for which the socket had no room.
    pub overflowed: u64,
}

impl Arrivals {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.late += other.late;
        self.duplicate += other.duplicate;
        self.stray += other.stray;
        self.altered += other.altered;
        self.malformed += other.malformed;
        self.unauthentic += other.unauthentic;
        self.reordered += other.reordered;
        self.overflowed += other.overflowed;
    }

    /// The difference to earlier counts.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            late: self.late - before.late,
            duplicate: self.duplicate - before.duplicate,
            stray: self.stray - before.stray,
            altered: self.altered - before.altered,
            malformed: self.malformed - before.malformed,
            unauthentic: self.unauthentic - before.unauthentic,
            reordered: self.reordered - before.reordered,
            // A socket that could not be asked has told none.
            overflowed: self.overflowed.saturating_sub(before.overflowed),
        }
    }
}

/// Faults of the meter itself in a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Largest departure lateness of the probes that were sent, in ns.
    pub lateness_max_ns: i64,
    /// By how much the clock was stepped, in ns.
    pub clock_stepped_ns: i64,
    /// CPU time of this host that its hypervisor gave to others, in ns; `None`: unknown.
    pub stolen_ns: Option<u64>,
}

/// All probes of a target that were due in one minute, or all packets that entered a device.
#[derive(Debug, Default)]
pub struct Minute {
    /// Probes by outcome.
    pub counts: Counts,
    /// Other datagrams that came in this minute.
    pub arrivals: Arrivals,
    /// Faults of the meter.
    pub health: Health,
    /// The slowest one.
    pub worst: Option<Sample>,
    /// Round-trip times, or latencies of a device.
    pub values: Values,
    /// Of a tapped device.
    pub tapped: Option<Box<Tapped>>,
}

/// A minute as it is written: one line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// Nanoseconds since the epoch.
    begin_ns: i64,
    #[serde(flatten)]
    counts: &'a Counts,
    arrivals: &'a Arrivals,
    health: &'a Health,
    worst: Option<Sample>,
    #[serde(flatten)]
    values: Written,
}

impl Minute {
    /// Enters a probe that was due so long after the begin of the minute, which is `begin_ns`.
    pub fn add(&mut self, begin_ns: i64, due_us: i64, outcome: Outcome) {
        self.counts.add(outcome);
        match outcome {
            Outcome::Answered(sample) => {
                let at_us = (sample.begin_ns - begin_ns) / 1_000;
                self.values.record(at_us, Some(sample.latency_ns));
                if self.worst.is_none_or(|worst| sample.latency_ns > worst.latency_ns) {
                    self.worst = Some(sample);
                }
            }
            Outcome::Late | Outcome::Lost | Outcome::Altered | Outcome::Undelivered => {
                self.values.record(due_us, None);
            }
            _ => {}
        }
    }

    /// The minute as one line of JSON.
    ///
    /// # Errors
    /// A number has no form in JSON, which does not happen.
    pub fn line(&self, begin_ns: i64) -> serde_json::Result<Vec<u8>> {
        let mut text = match &self.tapped {
            Some(tapped) => serde_json::to_vec(&TapLine::of(self, begin_ns, tapped))?,
            None => self.probe_line(begin_ns)?,
        };
        text.push(b'\n');
        Ok(text)
    }

    fn probe_line(&self, begin_ns: i64) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Line {
            begin_ns,
            counts: &self.counts,
            arrivals: &self.arrivals,
            health: &self.health,
            worst: self.worst,
            values: self.values.written(),
        })
    }
}

/// Begin of the minute of this time.
#[must_use]
pub(crate) fn begin_of(ns: i64) -> i64 {
    ns.div_euclid(MINUTE_NS) * MINUTE_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn answered(begin_ns: i64, latency_ns: i64) -> Outcome {
        Outcome::Answered(Sample { begin_ns, latency_ns, residence_ns: Some(7), own_host_ns: None })
    }

    #[test]
    fn each_probe_has_one_outcome_and_they_add_up() {
        let mut minute = Minute::default();
        for outcome in [
            answered(1_000, 30),
            answered(2_000, 20),
            answered(3_000, 30),
            Outcome::Unstamped,
            Outcome::Disturbed,
            Outcome::Late,
            Outcome::Lost,
            Outcome::Altered,
            Outcome::Undelivered,
            Outcome::Refused,
            Outcome::Missed,
            Outcome::Cut,
        ] {
            minute.add(0, 9, outcome);
        }
        let line: Value = serde_json::from_slice(&minute.line(60).unwrap()).unwrap();
        let of = |key: &str| line[key].as_u64().unwrap();
        let parts =
            ["answered", "late", "lost", "altered", "undelivered", "refused", "missed", "cut"];
        assert_eq!(parts.map(of).iter().sum::<u64>(), of("due"));
        assert_eq!((of("due"), of("answered"), of("unstamped"), of("disturbed")), (12, 5, 1, 1));
        // Probes that left and are known to be answered in time or not.
        assert_eq!(line["latency_ns"], serde_json::json!([30, 20, 30, null, null, null, null]));
        assert_eq!(line["at_us"], serde_json::json!([1, 2, 3, 9, 9, 9, 9]));
        // The first of several that are as slow.
        assert_eq!(
            (line["worst"]["begin_ns"].as_i64(), line["worst"]["latency_ns"].as_i64()),
            (Some(1_000), Some(30))
        );
        assert_eq!(line["begin_ns"], 60);
    }

    #[test]
    fn minutes_begin_at_whole_ones() {
        assert_eq!([0, 59_999_999_999, MINUTE_NS, -1].map(begin_of), [0, 0, MINUTE_NS, -MINUTE_NS]);
    }
}
