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
}

/// The probes of one stream.
#[derive(Debug)]
pub struct Session {
    patience: Patience,
    /// Number of the first one in `flights`.
    first: u64,
    flights: VecDeque<Flight>,
    /// One bit for each of the last [`MEMORY`] decided probes: whether a reply came.
    replied: Vec<u64>,
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
            replied: vec![0; (MEMORY / 64) as usize],
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
        match flight.state {
            State::Answered(_) => return Kind::Duplicate,
            State::Flying | State::Undelivered => {}
        }
        let stamps = &mut flight.trip.stamps;
        // The kernel's stamp decides where there is one: this process may have slept.
        let came_ns = reply.received_ns.unwrap_or(reply.app_receive_ns);
        if came_ns - stamps.app_send_ns > timeout_ns {
            self.settle_until(number);
            return self.judge_decided(number);
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

    /// Marks a probe in flight whose late reply has come as timed out; it is decided with the next
    /// [`settle`](Self::settle).
    fn settle_until(&mut self, number: u64) {
        if let Some(flight) = self.flight(number) {
            flight.state = State::Undelivered;
        }
    }

    fn judge_decided(&mut self, number: u64) -> Kind {
        if self.next().saturating_sub(number) > MEMORY {
            return Kind::Stray;
        }
        if std::mem::replace(&mut self.was_replied(number), true) { Kind::Duplicate } else { Kind::Late }
    }

    fn was_replied(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.replied[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % MEMORY;
    ((at / 64) as usize, 1 << (at % 64))
}
