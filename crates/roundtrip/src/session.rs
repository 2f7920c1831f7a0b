//! Matching replies to probes: each probe ends in one outcome, each datagram is of one kind.
//!
//! A probe is decided when its reply and its send stamps have come, or when its time is over. Probes leave in the order
//! in which they were sent, so that memory is bounded by rate times timeout.

mod deciding;
mod memory;
mod numbering;
mod trip;

pub use trip::{Kind, Passed, Patience, Reply, RoundTrip};

use super::outcome::{Counts, Ending, FollowUps, Obstacle};
use super::split::Stamps;
use memory::{Decided, Fate, Memory};
use numbering::Numbering;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
struct Flight {
    trip: RoundTrip,
    state: FlightState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlightState {
    Flying,
    /// A reply has come at this time.
    Answered(i64),
    Undelivered,
    /// Only a reply with another T1 has come.
    Altered,
    /// A reply has come after the timeout.
    Late,
}

/// The probes of one stream.
#[derive(Debug)]
pub struct Session {
    patience: Patience,
    /// Number of the first one in `flights`.
    first: u64,
    flights: VecDeque<Flight>,
    /// Number of these without a reply.
    unanswered: usize,
    /// No more will be sent.
    ending: bool,
    memory: Memory,
    highest: Option<u64>,
    numbering: Numbering,
    counts: Counts,
}

impl Session {
    /// No probes yet.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            first: 0,
            flights: VecDeque::new(),
            unanswered: 0,
            ending: false,
            memory: Memory::new(patience.remembered),
            highest: None,
            numbering: Numbering::new(patience.follow_up),
            counts: Counts {
                follow_up: patience.follow_up.then(FollowUps::default),
                ..Counts::default()
            },
        }
    }

    /// The number of the next probe.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + self.flights.len() as u64
    }

    /// Whether no probe is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts that the caller changes: events at the socket that this session does not see.
    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// Enters a probe that left; `sender_stamp` is its T1.
    pub fn sent(&mut self, intended_ns: i64, app_send_ns: i64, sender_stamp: u64) {
        let trip = RoundTrip {
            number: self.next(),
            intended_ns,
            stamps: Stamps { app_send_ns, ..Stamps::default() },
            ending: Ending::Lost,
            reply_bytes: None,
            reply_hops: None,
            far_hops: None,
            clock_bound_ns: None,
            far_number: None,
            sender_stamp,
        };
        self.counts.probes.due += 1;
        self.unanswered += 1;
        self.flights.push_back(Flight { trip, state: FlightState::Flying });
    }

    /// Ends the sending of probes: information that only a reply to a later probe could bring is not waited for.
    pub fn no_more(&mut self) {
        self.ending = true;
    }

    /// Counts probes that this host did not send. They have no number.
    pub fn refused(&mut self, count: u64, why: Obstacle) {
        self.counts.probes.due += count;
        self.counts.probes.refused += count;
        self.counts.obstacle(why, count);
    }

    /// A probe's stamp on its way out, by the low bits of its number. Returns whether the probe is known and had no
    /// stamp of that point.
    pub fn passed(&mut self, low: u32, point: Passed, time_ns: i64) -> bool {
        let number = self.nearest(low.into(), 32);
        let Some(flight) = self.flight(number) else { return false };
        let stamps = &mut flight.trip.stamps;
        let slot = match point {
            Passed::Queued => &mut stamps.queued_ns,
            Passed::Driver => &mut stamps.sent_ns,
            Passed::Nic => &mut stamps.nic_sent_ns,
        };
        let fresh = slot.is_none();
        slot.get_or_insert(time_ns);
        fresh
    }

    /// The number with these low bits that is nearest to the next one.
    #[must_use]
    pub fn nearest(&self, low: u64, bits: u32) -> u64 {
        let span = 1_u64 << bits.clamp(1, 63);
        let next = self.next();
        let candidate = (next & !(span - 1)) | (low & (span - 1));
        if candidate >= next && candidate - next >= span / 2 && candidate >= span {
            candidate - span
        } else if candidate < next && next - candidate > span / 2 {
            candidate + span
        } else {
            candidate
        }
    }

    fn flight(&mut self, number: u64) -> Option<&mut Flight> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.flights.get_mut(at)
    }

    /// Enters a reply to the probe of this number.
    pub fn replied(&mut self, number: u64, reply: &Reply) -> Kind {
        let kind = self.judge(number, reply);
        if let Some((far, left_ns)) = reply.follow_up
            && !matches!(kind, Kind::Stray | Kind::Altered)
        {
            self.told(far, left_ns);
        }
        self.counts.replies.datagrams += 1;
        let replies = &mut self.counts.replies;
        match kind {
            Kind::First => replies.first += 1,
            Kind::Late => replies.late += 1,
            Kind::Duplicate => replies.duplicate += 1,
            Kind::Altered => replies.altered += 1,
            Kind::Stray => replies.stray += 1,
        }
        if kind == Kind::First {
            let behind = self.highest.is_some_and(|highest| number < highest);
            self.counts.reordered += u64::from(behind);
            self.highest = self.highest.max(Some(number));
        }
        kind
    }

    fn judge(&mut self, number: u64, reply: &Reply) -> Kind {
        let far = reply.far_number.map(|low| self.numbering.unfold(low));
        if number < self.first {
            return self.judge_decided(number, reply.sender_stamp, far);
        }
        let timeout_ns = self.patience.timeout_ns;
        let Some(flight) = self.flight(number) else { return Kind::Stray };
        if reply.sender_stamp != flight.trip.sender_stamp {
            if matches!(flight.state, FlightState::Flying | FlightState::Undelivered) {
                flight.state = FlightState::Altered;
                flight.trip.ending = Ending::Altered;
                flight.trip.far_number = far;
            }
            return Kind::Altered;
        }
        if matches!(flight.state, FlightState::Answered(_) | FlightState::Late) {
            if let Some(far) = far.filter(|_| flight.trip.far_number != far) {
                self.numbering.doubled(number, far);
            }
            return Kind::Duplicate;
        }
        flight.trip.far_number = far;
        let stamps = &mut flight.trip.stamps;
        // The kernel's stamp decides where there is one: this process may have slept.
        let came_ns = reply.received_ns.unwrap_or(reply.app_receive_ns);
        if came_ns - stamps.app_send_ns > timeout_ns {
            flight.state = FlightState::Late;
            flight.trip.ending = Ending::Late;
            return Kind::Late;
        }
        stamps.app_receive_ns = Some(reply.app_receive_ns);
        stamps.received_ns = reply.received_ns;
        stamps.nic_received_ns = reply.nic_received_ns;
        stamps.far_received_ns = reply.far_ns.map(|(received, _)| received);
        stamps.far_sent_ns = reply.far_ns.map(|(_, sent)| sent);
        flight.trip.clock_bound_ns = reply.clock_bound_ns;
        flight.trip.reply_bytes = Some(reply.bytes);
        flight.trip.reply_hops = reply.hops;
        flight.trip.far_hops = reply.far_hops;
        flight.trip.ending = Ending::Answered;
        flight.state = FlightState::Answered(reply.app_receive_ns);
        self.unanswered -= 1;
        if let Some(far) = far {
            self.numbering.enter(number, far);
        }
        Kind::First
    }

    /// Enters the far host's report of the time at which a reply really left.
    fn told(&mut self, far: u32, left_ns: i64) {
        let far = self.numbering.unfold(far);
        let Some(number) = self.numbering.told(far) else { return };
        if let Some(flight) = self.flight(number)
            && flight.trip.far_number == Some(far)
        {
            flight.trip.stamps.far_left_ns.get_or_insert(left_ns);
        }
    }

    /// A reply to a probe that was decided: late, if it is the first.
    fn judge_decided(&mut self, number: u64, sender_stamp: u64, far: Option<u64>) -> Kind {
        if self.first - number > self.memory.room() {
            return Kind::Stray;
        }
        let low = far.unwrap_or(0) as u32;
        let remembered = self.memory.of(number);
        let Decided { fate, far: before, sender_stamp: sent } = *remembered;
        if sender_stamp != sent {
            return Kind::Altered;
        }
        let probes = &mut self.counts.probes;
        match fate {
            Fate::Replied => {
                if let Some(far) = far.filter(|_| before != low) {
                    self.numbering.doubled(number, far);
                }
                return Kind::Duplicate;
            }
            Fate::Lost => probes.lost -= 1,
            Fate::Altered => probes.altered -= 1,
            Fate::Undelivered => probes.undelivered -= 1,
        }
        (remembered.fate, remembered.far) = (Fate::Replied, low);
        probes.late += 1;
        if let Some(far) = far.filter(|_| fate == Fate::Lost) {
            let (memory, first, lost) = (&self.memory, self.first, probes.lost);
            let after = || (number + 1..first).filter(|n| memory.is_lost(*n)).count() as u64;
            self.numbering.replied_late(number, far, after, lost);
        }
        Kind::Late
    }

    /// Enters a message that the probe of this number does not arrive. Returns whether it was in flight; only the first
    /// such message counts.
    pub fn undelivered(&mut self, number: u64, why: Obstacle) -> bool {
        let Some(flight) = self.flight(number) else { return false };
        if flight.state != FlightState::Flying {
            return false;
        }
        flight.state = FlightState::Undelivered;
        flight.trip.ending = Ending::Undelivered(why);
        self.counts.obstacle(why, 1);
        true
    }

    /// Takes out the probes that are decided, in the order in which they were sent.
    pub fn settle(&mut self, now_ns: i64) -> Option<RoundTrip> {
        let flight = self.flights.front()?;
        if !self.is_decided(flight, now_ns) {
            return None;
        }
        let Flight { trip, state } = self.flights.pop_front()?;
        self.unanswered -= usize::from(!matches!(state, FlightState::Answered(_)));
        let probes = &mut self.counts.probes;
        let fate = match trip.ending {
            Ending::Late => {
                probes.late += 1;
                Fate::Replied
            }
            Ending::Altered => {
                probes.altered += 1;
                Fate::Altered
            }
            Ending::Answered => {
                probes.answered += 1;
                if let Some(follow_up) = &mut self.counts.follow_up {
                    let told = trip.stamps.far_left_ns.is_some();
                    follow_up.told += u64::from(told);
                    follow_up.untold += u64::from(!told);
                }
                Fate::Replied
            }
            Ending::Undelivered(_) => {
                probes.undelivered += 1;
                Fate::Undelivered
            }
            Ending::Lost | Ending::Cut => {
                probes.lost += 1;
                Fate::Lost
            }
        };
        if let Some(far) = trip.far_number {
            self.numbering.replied(trip.number, far, self.counts.probes.lost);
        }
        self.remember(fate, &trip);
        Some(trip)
    }

    /// Notes that the first probe was taken out.
    fn remember(&mut self, fate: Fate, trip: &RoundTrip) {
        self.memory.add(fate, trip);
        self.first += 1;
    }

    /// Departure of the first probe in flight: no undecided round trip began before it.
    #[must_use]
    pub fn oldest_ns(&self) -> Option<i64> {
        self.flights.front().map(|flight| flight.trip.stamps.app_send_ns)
    }

    /// Ends the session: probes in flight without a reply are cut. Returns all in flight.
    pub fn finish(&mut self) -> Vec<RoundTrip> {
        self.ending = true;
        let mut ended = Vec::new();
        while let Some(&Flight { trip, state }) = self.flights.front() {
            match state {
                FlightState::Flying => {
                    self.counts.probes.cut += 1;
                    self.numbering.close();
                    self.flights.pop_front();
                    self.unanswered -= 1;
                    self.remember(Fate::Lost, &trip);
                    ended.push(RoundTrip { ending: Ending::Cut, ..trip });
                }
                _ => ended.extend(self.settle(i64::MAX)),
            }
        }
        self.counts.lost_ways = self.numbering.ways(self.counts.probes.lost);
        ended
    }
}

#[cfg(test)]
mod tests;
