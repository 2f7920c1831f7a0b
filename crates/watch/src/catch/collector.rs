//! Probes beyond a limit, and what was around them.

use super::bucket::Bucket;
use super::hops::{Hops, PathChange};
use super::parts::{Parts, Usual};
use super::seen::{Record, Seen};
use crate::minute::Outcome;
use crate::plan::TargetPlan;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use tailtrim_probes::target::STAMPS_NS;

/// Time before and after a late probe that is kept with it.
pub(super) const AROUND_NS: i64 = 1_000_000_000;

/// From the timeout of a probe until it has been reported: its stamps and the next look at timeouts, twice that.
const REPORTED_NS: i64 = STAMPS_NS + 200_000_000;

/// So many probes within their limits come between two disturbances of a target. Before that, it has been out of order
/// since the one before, or was never in order: keeping the same again would leave nothing for others.
const IN_ORDER: u32 = 8;

/// Changes of the path of a target are looked up at most once in this time: its probes from several ports see one of them
/// one by one.
const PATH_NS: i64 = 60_000_000_000;

/// Most catches of which the time is remembered, for probes that are decided after they were written.
const REMEMBERED: usize = 8;

/// Fate of a probe beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is kept with what was around it.
    Kept,
    /// It is in what is kept around another one.
    Around,
    /// Its target was out of order already.
    Continued,
    /// There were as many in this hour as are kept.
    Limited,
}

/// Why a path is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// For the first time.
    Start,
    /// The number of hops has changed.
    Changed(PathChange),
    /// A probe that is kept was not answered.
    Unanswered,
}

/// A path that is to be looked up.
#[derive(Debug, Clone)]
pub(crate) struct PathWanted {
    pub(crate) plan: Arc<TargetPlan>,
    pub(crate) address: SocketAddr,
    pub(crate) at_ns: i64,
    pub(crate) why: Why,
    /// Routers on the way there, where that is known.
    pub(crate) routers: Option<u8>,
}

/// A late probe and what was around it.
#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) plan: Arc<TargetPlan>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) late: Record,
    pub(crate) from_ns: i64,
    pub(crate) until_ns: i64,
    /// The usual time of each part before it.
    pub(crate) usual: Usual,
    /// All probes that left in this time, in the order in which they left.
    pub(crate) records: Vec<Record>,
    /// The targets of these.
    pub(crate) targets: BTreeMap<usize, Arc<TargetPlan>>,
    /// Whether the watch ended, lost reports, or saw a step of the clock, before all of them were decided.
    pub(crate) cut: bool,
}

struct Watched {
    plan: Arc<TargetPlan>,
    address: Option<SocketAddr>,
    usual: Usual,
    /// Probes within their limits since the last one that was not.
    in_order: u32,
    hops: BTreeMap<usize, Hops>,
    path_is_known: bool,
    changed_ns: i64,
    /// Its probes may still be in catches.
    ended_ns: Option<i64>,
}

struct Pending {
    catch: Catch,
    ripe_ns: i64,
}

/// Looks at all probes. Times are of `CLOCK_REALTIME`.
pub(crate) struct Collector {
    catches: Bucket,
    paths: Bucket,
    watched: BTreeMap<usize, Watched>,
    records: VecDeque<Record>,
    pending: Vec<Pending>,
    /// Catches that a step of the clock has cut.
    stepped: Vec<Catch>,
    /// Times of catches that were handed over.
    done: VecDeque<(i64, i64)>,
    longest_ns: i64,
    pub(super) fates: Vec<Fate>,
    pub(super) wanted: Vec<PathWanted>,
    /// Reports that were dropped before they came here.
    pub(super) dropped: u64,
}

impl Collector {
    pub(crate) fn new(an_hour: u32, now_ns: i64) -> Self {
        Self {
            catches: Bucket::full(an_hour, now_ns),
            paths: Bucket::full(an_hour, now_ns),
            watched: BTreeMap::new(),
            records: VecDeque::new(),
            pending: Vec::new(),
            stepped: Vec::new(),
            done: VecDeque::new(),
            longest_ns: 0,
            fates: Vec::new(),
            wanted: Vec::new(),
            dropped: 0,
        }
    }

    /// The longest timeout of a target.
    pub(super) fn longest_ns(&self) -> i64 {
        self.longest_ns
    }

    /// Enters a report.
    pub(crate) fn take(&mut self, seen: Seen, now_ns: i64) {
        match seen {
            Seen::Started { place, plan } => {
                self.longest_ns = self.longest_ns.max(plan.timeout_ns);
                let (usual, hops) = (Usual::default(), BTreeMap::new());
                let watched = Watched {
                    plan,
                    address: None,
                    usual,
                    in_order: 0,
                    hops,
                    path_is_known: false,
                    changed_ns: i64::MIN,
                    ended_ns: None,
                };
                self.watched.insert(place, watched);
            }
            Seen::Opened { place, address } => {
                let Some(watched) = self.watched.get_mut(&place) else { return };
                if watched.address.replace(address) != Some(address) {
                    (watched.hops, watched.path_is_known) = (BTreeMap::new(), false);
                }
            }
            Seen::Ended { place } => {
                if let Some(watched) = self.watched.get_mut(&place) {
                    watched.ended_ns = Some(now_ns);
                }
            }
            Seen::Decided { place, link, trip, outcome } => {
                let Some(watched) = self.watched.get_mut(&place) else { return };
                let bad = is_bad(&watched.plan, outcome, trip.stamps.whole_ns(APPLICATION));
                let record = Record::of(place, &trip, outcome, bad);
                self.records.push_back(record);
                self.follow(record, link, now_ns);
                if bad {
                    let fate = self.late(record, now_ns);
                    self.fates.push(fate);
                } else if outcome != Outcome::Disturbed
                    && let Some(watched) = self.watched.get_mut(&place)
                    && let Some(parts) = Parts::of(&trip.stamps)
                {
                    watched.in_order = watched.in_order.saturating_add(1);
                    watched.usual.enter(parts);
                }
            }
            Seen::Stepped => {
                self.stepped = self.ripe(now_ns, true);
                self.stepped.iter_mut().for_each(|catch| catch.cut = true);
                self.records.clear();
            }
            Seen::Dropped(reports) => {
                self.dropped += reports;
                self.pending.iter_mut().for_each(|pending| pending.catch.cut = true);
            }
        }
    }

    fn late(&mut self, record: Record, now_ns: i64) -> Fate {
        let Self { watched, pending, done, catches, wanted, longest_ns, .. } = self;
        let Some(watched) = watched.get_mut(&record.place) else { return Fate::Continued };
        let in_order = std::mem::take(&mut watched.in_order);
        let spans = pending.iter().map(|pending| (pending.catch.from_ns, pending.catch.until_ns));
        let within = |(from_ns, until_ns)| (from_ns..=until_ns).contains(&record.app_send_ns);
        if spans.chain(done.iter().copied()).any(within) {
            return Fate::Around;
        }
        if in_order < IN_ORDER {
            return Fate::Continued;
        }
        if !catches.take(now_ns) {
            return Fate::Limited;
        }
        if record.whole_ns().is_none()
            && let Some(address) = watched.address
        {
            let plan = Arc::clone(&watched.plan);
            let at_ns = record.app_send_ns;
            let why = Why::Unanswered;
            wanted.push(PathWanted { plan, address, at_ns, why, routers: None });
        }
        let until_ns = record.app_send_ns + record.whole_ns().unwrap_or(0) + AROUND_NS;
        let catch = Catch {
            plan: Arc::clone(&watched.plan),
            address: watched.address,
            late: record,
            from_ns: record.app_send_ns - AROUND_NS,
            until_ns,
            usual: watched.usual.clone(),
            records: Vec::new(),
            targets: BTreeMap::new(),
            cut: false,
        };
        pending.push(Pending { catch, ripe_ns: until_ns + *longest_ns + REPORTED_NS });
        Fate::Kept
    }

    /// Follows the number of hops.
    fn follow(&mut self, record: Record, link: usize, now_ns: i64) {
        let Some(watched) = self.watched.get_mut(&record.place) else { return };
        if record.app_send_ns == 0 || record.whole_ns().is_none() {
            return;
        }
        let hops = watched.hops.entry(link).or_default();
        let change = hops.look(record.far_hops, record.reply_hops);
        let routers = hops.routers(watched.plan.ttl.unwrap_or(255));
        let Some(address) = watched.address else { return };
        let again = now_ns >= watched.changed_ns.saturating_add(PATH_NS);
        let why = match change {
            _ if !std::mem::replace(&mut watched.path_is_known, true) => Why::Start,
            Some(change) if again && self.paths.take(now_ns) => {
                watched.changed_ns = now_ns;
                Why::Changed(change)
            }
            _ => return,
        };
        let plan = Arc::clone(&watched.plan);
        self.wanted.push(PathWanted { plan, address, at_ns: record.app_send_ns, why, routers });
    }

    /// Hands over what is complete, or with `all` also the rest, and forgets what no catch can need.
    pub(crate) fn ripe(&mut self, now_ns: i64, all: bool) -> Vec<Catch> {
        let (ripe, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition::<Vec<_>, _>(|pending| all || pending.ripe_ns <= now_ns);
        self.pending = pending;
        let mut handed = std::mem::take(&mut self.stepped);
        for Pending { mut catch, ripe_ns } in ripe {
            catch.cut |= ripe_ns > now_ns;
            let span = catch.from_ns..=catch.until_ns;
            let within = self.records.iter().filter(|record| span.contains(&record.app_send_ns));
            catch.records = within.copied().collect();
            catch.records.sort_by_key(|record| record.app_send_ns);
            for record in &catch.records {
                if let Some(watched) = self.watched.get(&record.place) {
                    catch.targets.entry(record.place).or_insert_with(|| Arc::clone(&watched.plan));
                }
            }
            self.done.push_back((catch.from_ns, catch.until_ns));
            handed.push(catch);
        }
        while self.done.len() > REMEMBERED {
            self.done.pop_front();
        }
        // A probe that is decided now may have left a timeout ago.
        let first = self.pending.iter().map(|pending| pending.catch.from_ns).min();
        let oldest_ns = now_ns - self.longest_ns - REPORTED_NS - AROUND_NS;
        let oldest_ns = first.unwrap_or(oldest_ns).min(oldest_ns);
        self.watched.retain(|_, watched| watched.ended_ns.is_none_or(|ns| ns >= oldest_ns));
        while self.records.front().is_some_and(|record| record.app_send_ns < oldest_ns) {
            self.records.pop_front();
        }
        handed
    }
}

const APPLICATION: tailtrim_roundtrip::StampLevel = tailtrim_roundtrip::StampLevel::Application;

/// Whether a probe is beyond a limit of its target, or would be if the time in both hosts counted: a user of the target
/// waits for these, too.
fn is_bad(plan: &TargetPlan, outcome: Outcome, whole_ns: Option<i64>) -> bool {
    plan.objectives.iter().any(|objective| match outcome {
        Outcome::Answered(sample) => {
            objective.judge_answered(sample.latency_ns)
                || whole_ns.is_some_and(|ns| objective.judge_answered(ns))
        }
        Outcome::Late | Outcome::Lost | Outcome::Altered | Outcome::Undelivered => {
            objective.counts_lost()
        }
        Outcome::Unstamped
        | Outcome::Disturbed
        | Outcome::Refused
        | Outcome::Missed
        | Outcome::Cut => false,
    })
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
