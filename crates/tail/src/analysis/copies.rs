//! Copies of a mirror port: one packet that its capture has several times.
//!
//! A switch that mirrors a port, or several on the way of a packet, writes it down each time: with another VLAN tag, TTL or
//! MAC address, or as it was. Matching would take all of them for duplicates. That they are copies shows in some records of
//! both captures, mostly in the first ones, so that it is known from the first packet on:
//!
//! * nearly none of the signatures that come again do so more than [`MOST`] times: frames that are all alike, or a few that
//!   are sent in turn, come again and again;
//! * all but some come again within a time that is an [`EIGHTH`](PARTS) of the time looked at, or less: a recording that is
//!   sent several times comes again only when it is over;
//! * the frames of one signature differ in their L2 header, TTL or length, as what is sent twice does not; or the egress
//!   capture has nearly each of them once, and at least a tenth of the signatures come again: packets that are lost and sent
//!   again leave once, too, but are fewer.

use super::{Source, Terms};
use crate::capture::{CaptureError, Record};
use crate::signature::Signature;
use std::collections::{HashMap, HashSet, VecDeque};

/// Fewer signatures that come again say nothing.
pub(crate) const FEWEST: usize = 32;

/// Ports that are mirrored at once: four on the way through a switch and back.
pub(crate) const MOST: usize = 4;

/// See above.
const PARTS: i64 = 8;

/// Signatures of which one comes again where only the other capture tells copies.
pub(crate) const SHARE: usize = 10;

/// Times within which signatures come again that are kept.
const REACHES: usize = 1 << 16;

/// Copies may come this many times as late as nearly all of the first records do: behind a device, some packets wait.
const SLACK: i64 = 64;

/// Least time within which a copy may come: interrupts are moderated by some microseconds.
const LEAST_NS: i64 = 10_000;

/// Whether packets of one signature may be copies, by how many they are, the time between the first and the last one, and the
/// time looked at.
pub(crate) fn may_be_copies(count: usize, reach_ns: i64, span_ns: i64) -> bool {
    count <= MOST && reach_ns.saturating_mul(PARTS) <= span_ns
}

/// Evidence of copies in some records of both captures that were taken at the same time.
#[derive(Debug, Default)]
struct Evidence {
    signatures: usize,
    /// Signatures that come again, how many of them more than [`MOST`] times, and in frames that differ.
    again: usize,
    many: usize,
    unlike: usize,
    /// Time within which each of them comes again.
    reaches_ns: Vec<i64>,
    /// Signatures that the egress capture has, and those that it has once.
    left: usize,
    once: usize,
    span_ns: i64,
}

impl Evidence {
    /// Evidence of these records, none if fewer than so many signatures come again. `forms` tells in what else the frames of
    /// `first` differ, one value for each.
    fn of(
        first: &[Record],
        second: &[Record],
        fewest: usize,
        forms: impl FnOnce() -> Vec<u64>,
    ) -> Self {
        let mut places: HashMap<Signature, Vec<usize>> = HashMap::with_capacity(first.len());
        let stamped = || first.iter().enumerate().filter(|(_, record)| record.stamped);
        for (place, record) in stamped() {
            places.entry(record.signature).or_default().push(place);
        }
        let again: Vec<&Vec<usize>> = places.values().filter(|places| places.len() > 1).collect();
        let stamps = || stamped().map(|(_, record)| record.stamp_ns);
        let ends = stamps().min().zip(stamps().max());
        let signatures = places.len();
        let Some((begin_ns, end_ns)) = ends.filter(|_| again.len() >= fewest) else {
            return Self { signatures, ..Self::default() };
        };
        let forms = forms();
        let form = |place: &usize| (forms.get(*place), first[*place].length);
        let differ = |places: &&&Vec<usize>| places.iter().any(|at| form(at) != form(&places[0]));
        let reach = |places: &&Vec<usize>| {
            let ends = [places.first()?, places.last()?].map(|place| first[*place].stamp_ns);
            Some(ends[1].saturating_sub(ends[0]))
        };
        let mut left: HashMap<Signature, usize> = HashMap::new();
        for record in second.iter().filter(|record| places.contains_key(&record.signature)) {
            *left.entry(record.signature).or_default() += 1;
        }
        Self {
            signatures,
            again: again.len(),
            many: again.iter().filter(|places| places.len() > MOST).count(),
            unlike: again.iter().filter(differ).count(),
            reaches_ns: again.iter().filter_map(reach).collect(),
            left: left.len(),
            once: left.values().filter(|count| **count == 1).count(),
            span_ns: end_ns.saturating_sub(begin_ns),
        }
    }

    /// Adds that of other records.
    fn add(&mut self, other: Self) {
        self.signatures += other.signatures;
        self.again += other.again;
        self.many += other.many;
        self.unlike += other.unlike;
        let more = REACHES.saturating_sub(self.reaches_ns.len());
        self.reaches_ns.extend(other.reaches_ns.into_iter().take(more));
        self.left += other.left;
        self.once += other.once;
        self.span_ns = self.span_ns.max(other.span_ns);
    }

    /// Time within which a packet's signature that comes again is a copy of it; `None` where none are.
    fn within_ns(&self) -> Option<i64> {
        if self.again < FEWEST || self.many * 100 > self.again {
            return None;
        }
        let mut reaches_ns = self.reaches_ns.clone();
        reaches_ns.sort_unstable();
        let reach_ns = reaches_ns[(reaches_ns.len() - 1) * 99 / 100].max(0);
        let nearly_all = |count: usize, of: usize| count * 20 >= of * 19;
        let differ = nearly_all(self.unlike, self.again);
        let often = self.again * SHARE >= self.signatures;
        let once = often && self.left >= FEWEST && nearly_all(self.once, self.left);
        let soon = reach_ns.saturating_mul(PARTS) <= self.span_ns;
        (soon && (differ || once)).then(|| reach_ns.saturating_mul(SLACK).max(LEAST_NS))
    }
}

/// Time within which a packet's signature that comes again is a copy of it, by the first records; `None` where none are.
/// `forms` tells in what else the frames of `first` differ, one value for each.
pub(super) fn within_ns(
    first: &[Record],
    second: &[Record],
    forms: impl FnOnce() -> Vec<u64>,
) -> Option<i64> {
    Evidence::of(first, second, FEWEST, forms).within_ns()
}

/// The same by all records, which also tell of a mirror port that begins later to write packets down several times, or seldom
/// does.
///
/// # Errors
/// The errors of [`Source::read`].
pub fn copies_within_ns<P: Source + ?Sized>(
    ingress: &mut P,
    egress: &mut P,
    terms: &Terms,
) -> Result<Option<i64>, CaptureError> {
    let (signer, mut batch, mut left_ns) = (terms.signer(), Vec::new(), i64::MIN);
    let mut all = Evidence::default();
    loop {
        let first = ingress.peek(signer)?;
        let Some(begun_ns) = first.iter().find(|one| one.stamped).map(|one| one.stamp_ns) else {
            return Ok(all.within_ns());
        };
        while left_ns < begun_ns && egress.read(signer, &mut batch)? {
            let last = batch.iter().rev().find(|record| record.stamped);
            left_ns = last.map_or(left_ns, |last| last.stamp_ns.saturating_add(terms.shift_ns()));
        }
        let seen = Evidence::of(&first, &egress.peek(signer)?, 1, || ingress.peek_forms());
        let found = seen.within_ns();
        if found.is_some() {
            return Ok(found);
        }
        all.add(seen);
        let mut passed = 0;
        while passed < first.len() && ingress.read(signer, &mut batch)? {
            passed += batch.len();
        }
    }
}

/// The signatures of a time, and how many were copies.
#[derive(Debug)]
pub struct Copies {
    within_ns: i64,
    recent: HashSet<Signature>,
    order: VecDeque<(i64, Signature)>,
    pub(super) count: u64,
}

impl Copies {
    /// Knows no packet yet. Copies come within this.
    #[must_use]
    pub fn new(within_ns: i64) -> Self {
        Self { within_ns, recent: HashSet::new(), order: VecDeque::new(), count: 0 }
    }

    /// Leaves out the copies among the next packets.
    pub(super) fn leave_out(&mut self, batch: &mut Vec<Record>) {
        batch.retain(|record| self.is_first(record));
    }

    /// Whether the next packet is the first one of its signature.
    pub fn is_first(&mut self, record: &Record) -> bool {
        while let Some(&(stamp_ns, signature)) = self.order.front()
            && record.stamp_ns.saturating_sub(stamp_ns) > self.within_ns
        {
            self.order.pop_front();
            self.recent.remove(&signature);
        }
        let new = self.recent.insert(record.signature);
        if new {
            self.order.push_back((record.stamp_ns, record.signature));
        }
        self.count += u64::from(!new);
        new
    }
}
