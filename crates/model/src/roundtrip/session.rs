//! Matching replies to probes: each probe ends in one outcome, each datagram is one thing.
//!
//! A probe is decided when its reply and its send stamps have come, or when its time is over. Probes leave in
//! the order in which they were sent, so that what is kept is bounded by rate times timeout.

use super::outcome::{Counts, Ending, Obstacle};
use super::split::Stamps;
use std::collections::VecDeque;

/// Decided probes that are remembered, to tell late replies from further ones.
const MEMORY: u64 = 1 << 16;

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A reply that comes later after its probe left the application is late.
    pub timeout_ns: i64,
    /// How long an answered probe waits for its send stamps.
    pub stamps_ns: i64,
    /// Whether stamps of the kernel are expected for what is sent.
    pub software: bool,
    /// Whether those of the NIC are.
    pub hardware: bool,
}

/// A probe and what is known of it, at the end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Which probe of the session.
    pub number: u64,
    /// When it was to depart, `CLOCK_REALTIME`.
    pub intended_ns: i64,
    /// When it passed which point.
    pub stamps: Stamps,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of the reply's IP packet.
    pub reply_bytes: Option<u32>,
    /// TTL or hop limit that the reply came with.
    pub reply_hops: Option<u8>,
    /// How far the clocks of the two hosts may be apart, as both say.
    pub clock_bound_ns: Option<u64>,
}

/// A reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reply {
    /// When the application had it.
    pub app_receive_ns: i64,
    /// When the kernel had it.
    pub received_ns: Option<i64>,
    /// When the NIC had it.
    pub nic_received_ns: Option<i64>,
    /// T2 and T3 of the far host.
    pub far_ns: Option<(i64, i64)>,
    /// How far the clocks may be apart.
    pub clock_bound_ns: Option<u64>,
    /// Bytes of its IP packet.
    pub bytes: u32,
    /// TTL or hop limit that is left.
    pub hops: Option<u8>,
}

/// What a reply was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first in time.
    First,
    /// The first, after the timeout.
    Late,
    /// A further one.
    Duplicate,
    /// Nobody's.
    Stray,
}

/// Where on its way out a probe was stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// Before the queueing discipline.
    Queued,
    /// By the driver.
    Driver,
    /// By the NIC, in its own clock.
    Nic,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    trip: RoundTrip,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Flying,
    /// With a reply since then.
    Answered(i64),
    Undelivered,
    /// With a reply after the timeout.
    Late,
}

/// What became of a decided probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Replied,
    Lost,
    Undelivered,
}

/// The probes of one stream.
#[derive(Debug)]
pub struct Session {
    patience: Patience,
    /// Number of the first one in `flights`.
    first: u64,
    flights: VecDeque<Flight>,
    /// What became of the last [`MEMORY`] decided probes.
    memory: Vec<Fate>,
    highest: Option<u64>,
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
            memory: vec![Fate::Lost; MEMORY as usize],
            highest: None,
            counts: Counts::default(),
        }
    }

    /// The number of the next probe.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + self.flights.len() as u64
    }

    /// Whether anything is waited for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts what the caller sees of the datagrams and this one does not.
    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// A probe that left.
    pub fn sent(&mut self, intended_ns: i64, app_send_ns: i64) {
        let trip = RoundTrip {
            number: self.next(),
            intended_ns,
            stamps: Stamps { app_send_ns, ..Stamps::default() },
            ending: Ending::Lost,
            reply_bytes: None,
            reply_hops: None,
            clock_bound_ns: None,
        };
        self.counts.probes.due += 1;
        self.flights.push_back(Flight { trip, state: State::Flying });
    }

    /// Probes that this host did not send. They have no number.
    pub fn refused(&mut self, count: u64, why: Obstacle) {
        self.counts.probes.due += count;
        self.counts.probes.refused += count;
        self.counts.obstacle(why, count);
    }

    /// A probe's stamp on its way out, by the low bits of its number. Returns whether the probe is known and
    /// had none there.
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

    /// A reply to the probe of this number.
    pub fn replied(&mut self, number: u64, reply: &Reply) -> Kind {
        let kind = self.judge(number, reply);
        self.counts.replies.datagrams += 1;
        let replies = &mut self.counts.replies;
        match kind {
            Kind::First => replies.first += 1,
            Kind::Late => replies.late += 1,
            Kind::Duplicate => replies.duplicate += 1,
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
        if number < self.first {
            return self.judge_decided(number);
        }
        let timeout_ns = self.patience.timeout_ns;
        let Some(flight) = self.flight(number) else { return Kind::Stray };
        if matches!(flight.state, State::Answered(_) | State::Late) {
            return Kind::Duplicate;
        }
        let stamps = &mut flight.trip.stamps;
        // The kernel's stamp decides where there is one: this process may have slept.
        let came_ns = reply.received_ns.unwrap_or(reply.app_receive_ns);
        if came_ns - stamps.app_send_ns > timeout_ns {
            flight.state = State::Late;
            flight.trip.ending = Ending::Lost;
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
        flight.trip.ending = Ending::Answered;
        flight.state = State::Answered(reply.app_receive_ns);
        Kind::First
    }

    /// A reply to a probe that was decided: late, if it is the first.
    fn judge_decided(&mut self, number: u64) -> Kind {
        if self.first - number > MEMORY {
            return Kind::Stray;
        }
        let fate = &mut self.memory[(number % MEMORY) as usize];
        let probes = &mut self.counts.probes;
        match std::mem::replace(fate, Fate::Replied) {
            Fate::Replied => return Kind::Duplicate,
            Fate::Lost => probes.lost -= 1,
            Fate::Undelivered => probes.undelivered -= 1,
        }
        probes.late += 1;
        Kind::Late
    }

    /// Somebody says that the probe of this number does not arrive. Returns whether it was in flight; only
    /// the first such message counts.
    pub fn undelivered(&mut self, number: u64, why: Obstacle) -> bool {
        let Some(flight) = self.flight(number) else { return false };
        if flight.state != State::Flying {
            return false;
        }
        flight.state = State::Undelivered;
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
        let flight = self.flights.pop_front()?;
        let probes = &mut self.counts.probes;
        let fate = match (flight.state, flight.trip.ending) {
            (State::Late, _) => {
                probes.late += 1;
                Fate::Replied
            }
            (_, Ending::Answered) => {
                probes.answered += 1;
                Fate::Replied
            }
            (_, Ending::Undelivered(_)) => {
                probes.undelivered += 1;
                Fate::Undelivered
            }
            (_, Ending::Lost) => {
                probes.lost += 1;
                Fate::Lost
            }
        };
        self.memory[(self.first % MEMORY) as usize] = fate;
        self.first += 1;
        Some(flight.trip)
    }

    fn is_decided(&self, flight: &Flight, now_ns: i64) -> bool {
        let Patience { timeout_ns, stamps_ns, software, hardware } = self.patience;
        let stamps = &flight.trip.stamps;
        match flight.state {
            State::Answered(at_ns) => {
                let complete = (stamps.sent_ns.is_some() || !software)
                    && (stamps.nic_sent_ns.is_some() || !hardware);
                complete || now_ns - at_ns > stamps_ns
            }
            // A filter may let the one after pass: what says that it did not arrive does not end the wait.
            State::Flying | State::Undelivered | State::Late => {
                now_ns - stamps.app_send_ns > timeout_ns
            }
        }
    }

    /// When the first probe in flight left: nothing that is still to be decided began before.
    #[must_use]
    pub fn oldest_ns(&self) -> Option<i64> {
        self.flights.front().map(|flight| flight.trip.stamps.app_send_ns)
    }

    /// Ends the session: what is in flight and not answered is cut. Returns what was answered.
    pub fn finish(&mut self) -> Vec<RoundTrip> {
        let mut answered = Vec::new();
        while let Some(flight) = self.flights.front() {
            match flight.state {
                State::Flying => {
                    self.counts.probes.cut += 1;
                    self.flights.pop_front();
                    self.memory[(self.first % MEMORY) as usize] = Fate::Lost;
                    self.first += 1;
                }
                _ => answered.extend(self.settle(i64::MAX)),
            }
        }
        answered
    }
}

#[cfg(test)]
mod tests;
