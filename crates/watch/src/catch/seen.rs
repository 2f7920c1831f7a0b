//! Reports of the thread that sends and receives about single probes.

use crate::minute::Outcome;
use crate::plan::TargetPlan;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use tailtrim_roundtrip::{RoundTrip, Stamps};

/// Report about a single probe, or about its target.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are of the largest kind")]
pub(crate) enum Seen {
    /// A target is probed from now on.
    Started { place: usize, plan: Arc<TargetPlan> },
    /// Its sockets were opened, to this address.
    Opened { place: usize, address: SocketAddr },
    /// No further report of it will come.
    Ended { place: usize },
    /// A probe of the socket with this number is decided.
    Decided { place: usize, link: usize, trip: RoundTrip, outcome: Outcome },
    /// The clock was stepped: times before and after it do not compare.
    Stepped,
    /// So many reports were dropped, since they were not taken in time.
    Dropped(u64),
}

/// Sender of such reports. It never waits.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    sender: Option<SyncSender<Vec<Seen>>>,
    seen: Vec<Seen>,
    dropped: u64,
}

impl Sight {
    pub(crate) fn of(sender: SyncSender<Vec<Seen>>) -> Self {
        Self { sender: Some(sender), ..Self::default() }
    }

    /// Adds a report.
    pub(crate) fn see(&mut self, seen: Seen) {
        if self.sender.is_some() {
            self.seen.push(seen);
        }
    }

    /// Hands the reports on. If the receiver is behind by as many batches as there is room for, reports about probes are
    /// dropped, and those about targets wait.
    pub(crate) fn hand_on(&mut self) {
        let Some(sender) = &self.sender else { return };
        if self.dropped > 0 {
            self.seen.push(Seen::Dropped(self.dropped));
        }
        match sender.try_send(std::mem::take(&mut self.seen)) {
            Ok(()) => self.dropped = 0,
            Err(TrySendError::Full(mut seen)) => {
                seen.retain(|seen| !matches!(seen, Seen::Dropped(_)));
                let all = seen.len();
                seen.retain(|seen| !matches!(seen, Seen::Decided { .. }));
                self.dropped += (all - seen.len()) as u64;
                self.seen = seen;
            }
            // It has failed, and says so when it is joined.
            Err(TrySendError::Disconnected(_)) => self.sender = None,
        }
    }
}

/// For a stamp that is missing.
const NONE: i64 = i64::MIN;

/// A decided probe, in few bytes: tens of thousands are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) place: usize,
    pub(crate) outcome: &'static str,
    /// Whether it was beyond a limit of its target.
    pub(crate) bad: bool,
    pub(crate) far_hops: Option<u8>,
    pub(crate) reply_hops: Option<u8>,
    pub(crate) clock_bound_ns: Option<u64>,
    pub(crate) app_send_ns: i64,
    queued_ns: i64,
    sent_ns: i64,
    far_received_ns: i64,
    far_departure_ns: i64,
    received_ns: i64,
    app_receive_ns: i64,
}

impl Record {
    pub(crate) fn of(place: usize, trip: &RoundTrip, outcome: Outcome, bad: bool) -> Self {
        let stamps = &trip.stamps;
        let or_none = |stamp: Option<i64>| stamp.unwrap_or(NONE);
        Self {
            place,
            outcome: outcome.name(),
            bad,
            far_hops: trip.far_hops,
            reply_hops: trip.reply_hops,
            clock_bound_ns: trip.clock_bound_ns,
            app_send_ns: stamps.app_send_ns,
            queued_ns: or_none(stamps.queued_ns),
            sent_ns: or_none(stamps.sent_ns),
            far_received_ns: or_none(stamps.far_received_ns),
            far_departure_ns: or_none(stamps.far_departure_ns()),
            received_ns: or_none(stamps.received_ns),
            app_receive_ns: or_none(stamps.app_receive_ns),
        }
    }

    /// Its stamps; a time that the far host reported afterwards is in that of sending.
    pub(crate) fn stamps(&self) -> Stamps {
        let known = |stamp: i64| (stamp != NONE).then_some(stamp);
        Stamps {
            app_send_ns: self.app_send_ns,
            queued_ns: known(self.queued_ns),
            sent_ns: known(self.sent_ns),
            far_received_ns: known(self.far_received_ns),
            far_sent_ns: known(self.far_departure_ns),
            received_ns: known(self.received_ns),
            app_receive_ns: known(self.app_receive_ns),
            ..Stamps::default()
        }
    }

    /// From this application to itself, the far host's residence included.
    pub(crate) fn whole_ns(&self) -> Option<i64> {
        (self.app_receive_ns != NONE).then(|| self.app_receive_ns - self.app_send_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn who_sends_does_not_wait_for_who_looks() {
        let (sender, receiver) = sync_channel(1);
        let mut sight = Sight::of(sender);
        for number in 0..5 {
            let trip = tailtrim_roundtrip::RoundTrip {
                number,
                intended_ns: 0,
                stamps: Stamps::default(),
                ending: tailtrim_roundtrip::Ending::Lost,
                reply_bytes: None,
                reply_hops: None,
                far_hops: None,
                clock_bound_ns: None,
                far_number: None,
                sender_stamp: 0,
            };
            sight.see(Seen::Decided { place: 0, link: 0, trip, outcome: Outcome::Lost });
            sight.see(Seen::Ended { place: number as usize });
            sight.hand_on();
        }
        assert_eq!(receiver.recv().unwrap().len(), 2);
        sight.hand_on();
        // All that concerns targets, and the number of the others.
        let later = receiver.recv().unwrap();
        assert_eq!(later.iter().filter(|seen| matches!(seen, Seen::Ended { .. })).count(), 4);
        assert!(later.iter().any(|seen| matches!(seen, Seen::Dropped(4))), "{later:?}");
        assert_eq!(later.len(), 5);
        drop(receiver);
        sight.see(Seen::Stepped);
        sight.hand_on();
        assert!(sight.sender.is_none());
    }
}
