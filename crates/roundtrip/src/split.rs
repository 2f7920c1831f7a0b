//! The stamps of a round trip, the parts between them, and the statistics of each part.
//!
//! ```text
//! application   kernel queue    driver          far host          kernel        application
//!   app_send ──▶ queued ──▶ sent ══network══▶ far_received … far_sent ══network══▶ received ──▶ app_receive
//! ```

use serde::Serialize;
use tailtrim_stats::Spread;
use tailtrim_stats::{Histogram, Ranked};

/// Times at which a round trip passed each point. Missing ones are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Right before the system call that sent the probe, `CLOCK_REALTIME`.
    pub app_send_ns: i64,
    /// When the kernel handed it to the queueing discipline, same clock.
    pub queued_ns: Option<i64>,
    /// When the driver handed it to the NIC, same clock.
    pub sent_ns: Option<i64>,
    /// When the NIC sent it, the NIC's clock.
    pub nic_sent_ns: Option<i64>,
    /// When the far host received it, the far host's clock (T2).
    pub far_received_ns: Option<i64>,
    /// When the far host sent its reply, same clock (T3).
    pub far_sent_ns: Option<i64>,
    /// When the reply really left, as the far host reported afterwards, same clock.
    pub far_left_ns: Option<i64>,
    /// When the NIC received the reply, the NIC's clock.
    pub nic_received_ns: Option<i64>,
    /// When the kernel took it from the driver, `CLOCK_REALTIME`.
    pub received_ns: Option<i64>,
    /// When the application had it, same clock.
    pub app_receive_ns: Option<i64>,
}

/// Where a round trip begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StampLevel {
    /// In this process, without a stamp of the kernel: taking one makes the round trip longer.
    Application,
    /// From this process until the kernel takes the reply from the driver, as in ping(8).
    Arrival,
    /// Between kernel and driver.
    #[default]
    Software,
    /// On the wire, by the NIC.
    Hardware,
}

impl StampLevel {
    /// Whether it takes the kernel's stamps of probes on their way out.
    #[must_use]
    pub fn stamps_sent(self) -> bool {
        matches!(self, Self::Software | Self::Hardware)
    }

    /// Whether it takes the kernel's stamps of replies.
    #[must_use]
    pub fn stamps_received(self) -> bool {
        self != Self::Application
    }
}

impl Stamps {
    /// Time that the far host had the probe, as far as it reports it.
    #[must_use]
    pub fn residence_ns(&self) -> Option<i64> {
        self.far_departure_ns()?.checked_sub(self.far_received_ns?)
    }

    /// When the reply left the far host: T3 is written before it is sent, so a time that was reported afterwards is
    /// preferred.
    #[must_use]
    pub fn far_departure_ns(&self) -> Option<i64> {
        self.far_left_ns.or(self.far_sent_ns)
    }

    /// From sending to receiving at a level, the far host's residence included.
    #[must_use]
    pub fn whole_ns(&self, level: StampLevel) -> Option<i64> {
        match level {
            StampLevel::Application => self.app_receive_ns?.checked_sub(self.app_send_ns),
            StampLevel::Arrival => self.received_ns?.checked_sub(self.app_send_ns),
            StampLevel::Software => self.received_ns?.checked_sub(self.sent_ns?),
            StampLevel::Hardware => self.nic_received_ns?.checked_sub(self.nic_sent_ns?),
        }
    }

    /// The round-trip time at a level: without the far host's residence, where it is known (RFC 8762 section 4: (T4 −
    /// T1) − (T3 − T2)).
    #[must_use]
    pub fn round_trip_ns(&self, level: StampLevel) -> Option<i64> {
        self.whole_ns(level)?.checked_sub(self.residence_ns().unwrap_or(0))
    }

    /// When the round trip began at a level, in `CLOCK_REALTIME`: the NIC's own clock is another one.
    #[must_use]
    pub fn begin_ns(&self, level: StampLevel) -> Option<i64> {
        match level {
            StampLevel::Application | StampLevel::Arrival => Some(self.app_send_ns),
            StampLevel::Software => self.sent_ns,
            StampLevel::Hardware => Some(self.sent_ns.unwrap_or(self.app_send_ns)),
        }
    }
}

/// A part of round trips: number of samples, number without a stamp for it, and distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Answered probes for which it is known.
    pub samples: u64,
    /// Answered probes that lack a stamp for it.
    pub missing: u64,
    /// Its distribution in ns.
    pub ns: Spread,
}

/// All parts of the answered round trips of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// From the application's call to the queueing discipline.
    pub app_send: Part,
    /// From there to the driver.
    pub queueing: Part,
    /// From driver to driver without the far host's residence where it is known, with it where not.
    pub network: Part,
    /// Time that the far host had the probe, by its own report.
    pub residence: Part,
    /// From the driver to the application.
    pub app_receive: Part,
    /// The round trip as the application sees it, residence included.
    pub application: Part,
    /// The same between kernel and driver.
    pub software: Part,
    /// The same by the NIC.
    pub hardware: Part,
}

/// One-way delays, for hosts whose clocks agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OneWay {
    /// From this host's driver to the far host.
    pub forward: Part,
    /// From the far host to this host's driver.
    pub backward: Part,
    /// Largest error of each by the difference of the clocks, in ns, as reported by both sides; the largest seen.
    pub clock_bound_ns: u64,
}

#[derive(Debug)]
struct Tally {
    histogram: Histogram,
    missing: u64,
}

impl Tally {
    fn new() -> Self {
        Self { histogram: Histogram::new(), missing: 0 }
    }

    fn record(&mut self, value_ns: Option<i64>) {
        match value_ns {
            Some(value_ns) => self.histogram.record(value_ns),
            None => self.missing += 1,
        }
    }

    fn told(&self) -> Part {
        let ranked = Ranked::new(&self.histogram);
        Part { samples: ranked.count(), missing: self.missing, ns: Spread::of(&ranked) }
    }
}

/// Counts the parts of round trips.
#[derive(Debug)]
pub struct Split {
    app_send: Tally,
    queueing: Tally,
    network: Tally,
    residence: Tally,
    app_receive: Tally,
    whole: [Tally; 3],
    forward: Tally,
    backward: Tally,
    clock_bound_ns: u64,
    unbounded: bool,
}

impl Default for Split {
    fn default() -> Self {
        Self::new()
    }
}

impl Split {
    /// Nothing counted.
    #[must_use]
    pub fn new() -> Self {
        Self {
            app_send: Tally::new(),
            queueing: Tally::new(),
            network: Tally::new(),
            residence: Tally::new(),
            app_receive: Tally::new(),
            whole: [Tally::new(), Tally::new(), Tally::new()],
            forward: Tally::new(),
            backward: Tally::new(),
            clock_bound_ns: 0,
            unbounded: false,
        }
    }

    /// Counts an answered round trip. `clock_bound_ns` is the largest difference of the two hosts' clocks; `None`:
    /// unknown.
    pub fn record(&mut self, stamps: &Stamps, clock_bound_ns: Option<u64>) {
        let between = |from: Option<i64>, to: Option<i64>| to?.checked_sub(from?);
        self.app_send.record(between(Some(stamps.app_send_ns), stamps.queued_ns));
        self.queueing.record(between(stamps.queued_ns, stamps.sent_ns));
        self.network.record(stamps.round_trip_ns(StampLevel::Software));
        self.residence.record(stamps.residence_ns());
        self.app_receive.record(between(stamps.received_ns, stamps.app_receive_ns));
        for (tally, level) in self.whole.iter_mut().zip([
            StampLevel::Application,
            StampLevel::Software,
            StampLevel::Hardware,
        ]) {
            tally.record(stamps.whole_ns(level));
        }
        match clock_bound_ns {
            Some(bound_ns) => {
                self.clock_bound_ns = self.clock_bound_ns.max(bound_ns);
                self.forward.record(between(stamps.sent_ns, stamps.far_received_ns));
                self.backward.record(between(stamps.far_departure_ns(), stamps.received_ns));
            }
            None => self.unbounded = true,
        }
    }

    /// The statistics of the parts.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let [application, software, hardware] = self.whole.each_ref().map(Tally::told);
        Parts {
            app_send: self.app_send.told(),
            queueing: self.queueing.told(),
            network: self.network.told(),
            residence: self.residence.told(),
            app_receive: self.app_receive.told(),
            application,
            software,
            hardware,
        }
    }

    /// One-way delays; `None` where the clocks were not known to agree all the time, where the far host reports no
    /// times, or where a packet came earlier than the bound of the clocks allows: then it is not known.
    #[must_use]
    pub fn one_way(&self) -> Option<OneWay> {
        let (forward, backward) = (self.forward.told(), self.backward.told());
        let least_ns = forward.ns.min.min(backward.ns.min)?;
        let bound_ns = i64::try_from(self.clock_bound_ns).unwrap_or(i64::MAX);
        // The user's word that the clocks are one has no bound.
        let wrong = bound_ns > 0 && least_ns < -bound_ns;
        (!self.unbounded && !wrong).then_some(OneWay {
            forward,
            backward,
            clock_bound_ns: self.clock_bound_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps() -> Stamps {
        Stamps {
            app_send_ns: 1_000,
            queued_ns: Some(1_010),
            sent_ns: Some(1_030),
            nic_sent_ns: None,
            far_received_ns: Some(1_500),
            far_sent_ns: Some(1_700),
            far_left_ns: None,
            nic_received_ns: None,
            received_ns: Some(2_300),
            app_receive_ns: Some(2_340),
        }
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let mut split = Split::new();
        split.record(&stamps(), Some(7));
        let parts = split.parts();
        let middle = |part: Part| part.ns.p50.unwrap();
        assert_eq!(middle(parts.app_send), 10);
        assert_eq!(middle(parts.queueing), 20);
        assert_eq!(middle(parts.network), 1_070);
        assert_eq!(middle(parts.residence), 200);
        assert_eq!(middle(parts.app_receive), 40);
        let sum =
            [parts.app_send, parts.queueing, parts.network, parts.residence, parts.app_receive];
        assert_eq!(sum.into_iter().map(middle).sum::<i64>(), middle(parts.application));
        assert_eq!((parts.hardware.samples, parts.hardware.missing), (0, 1));
        let one_way = split.one_way().unwrap();
        assert_eq!((middle(one_way.forward), middle(one_way.backward)), (470, 600));
        assert_eq!(one_way.clock_bound_ns, 7);
    }

    #[test]
    fn what_the_far_host_tells_afterwards_counts() {
        let mut split = Split::new();
        split.record(&Stamps { far_left_ns: Some(1_900), ..stamps() }, Some(7));
        let middle = |part: Part| part.ns.p50.unwrap();
        let parts = split.parts();
        assert_eq!((middle(parts.residence), middle(parts.network)), (400, 870));
        assert_eq!(middle(split.one_way().unwrap().backward), 400);
    }

    #[test]
    fn clocks_that_nobody_vouches_for_give_no_one_way_delays() {
        let mut split = Split::new();
        split.record(&stamps(), Some(7));
        split.record(&stamps(), None);
        assert_eq!(split.one_way(), None);
        assert_eq!(split.parts().residence.samples, 2);
    }

    #[test]
    fn a_packet_that_came_before_it_left_refutes_the_bound_of_the_clocks() {
        let far = |ahead_ns: i64| Stamps {
            far_received_ns: Some(1_500 + ahead_ns),
            far_sent_ns: Some(1_700 + ahead_ns),
            ..stamps()
        };
        for (ahead_ns, bound_ns, known) in [
            (267_000_000, 244_140, false),
            (-267_000_000, 244_140, false),
            (700, 200, true),
            (700, 0, true),
        ] {
            let mut split = Split::new();
            split.record(&far(ahead_ns), Some(bound_ns));
            assert_eq!(split.one_way().is_some(), known, "{ahead_ns} {bound_ns}");
        }
    }

    #[test]
    fn without_the_far_host_its_residence_counts_as_network() {
        let stamps = Stamps { far_sent_ns: None, ..stamps() };
        assert_eq!(stamps.round_trip_ns(StampLevel::Software), Some(1_270));
        assert_eq!(stamps.round_trip_ns(StampLevel::Hardware), None);
    }
}
