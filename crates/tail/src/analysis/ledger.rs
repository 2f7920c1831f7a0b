//! An analysis whose packets were matched elsewhere: an engine hands over pairs in the order in which they
//! were decided, and counts; the result is the same as that of the native matcher, to the byte.

use super::decoding::Facts;
use super::findings::{self, Findings};
use super::latencies::Latencies;
use super::outcomes::{Ends, Tally, lost_from_ns};
use super::seconds::{Load, by_second, millisecond};
use super::terms::unwrap_shift;
use super::{Analysis, Options, Sink};
use crate::matching::{Alone, Fate, Pair, Seen, Window};
use crate::signature::Signature;
use crate::summary;
use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use tailtrim_stats::Histogram;

/// When something was decided: packets of both captures in the order in which they are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The running maximum of the stamps at the deciding packet.
    pub order_ns: i64,
    /// It left; of equal maxima, what entered comes first.
    pub left: bool,
    /// Its place in its capture.
    pub index: i64,
}

/// A pair, and the packet that decided it: the later one of the two. As the signature it carries the
/// ingress packet's place in its capture (`low`), see [`Ledger::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidedPair {
    /// When it was decided.
    pub place: Place,
    /// The pair.
    pub pair: Pair,
}

/// A packet whose signature repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TangledPacket {
    /// Its signature.
    pub signature: Signature,
    /// Where it stands among the packets of both captures.
    pub place: Place,
    /// When it passed its tap.
    pub stamp_ns: i64,
    /// Its place in its burst.
    pub position: u16,
    /// See [`Seen::forgotten_ns`].
    pub forgotten_ns: i64,
}

/// Pairs or packets that came in the wrong order: the engine did not sort as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine handed over its rows out of order, at row {row}")]
pub struct LedgerError {
    /// Rows that were in order.
    pub row: u64,
}

/// The counts of an analysis. Call [`tangled`](Self::tangled), [`pairs`](Self::pairs) and
/// [`settle`](Self::settle) in this order, then ask for the counts and [`finish`](Self::finish).
pub struct Ledger {
    options: Options,
    facts: [Facts; 2],
    signature_bytes: usize,
    shift_ns: i64,
    origin_ns: i64,
    latencies: Latencies,
    current: Option<(Signature, Place, Alone)>,
    tangled: Vec<DecidedPair>,
    fates: Vec<(Fate, i64)>,
    /// Ingress packets in flight at the end.
    open: Vec<i64>,
    /// Pairs of signatures that repeat, once pairs are counted.
    resolved: Option<Peekable<std::vec::IntoIter<DecidedPair>>>,
    last: Option<Place>,
    rows: u64,
}

impl Ledger {
    /// Empty counts for these captures, whose signatures are of at most so many bytes.
    #[must_use]
    pub fn new(ingress: Facts, egress: Facts, signature_bytes: usize, options: Options) -> Self {
        let origin_ns = ingress.origin_ns.or(egress.origin_ns).unwrap_or(0);
        let shift_ns = if ingress.wraps && egress.wraps {
            unwrap_shift(origin_ns, egress.origin_ns.unwrap_or(origin_ns))
        } else {
            0
        };
        let shift_ns = shift_ns.saturating_sub(options.correction_ns);
        Self {
            latencies: Latencies::new(&options, origin_ns, ingress.burst_gap_ns),
            options,
            facts: [ingress, egress],
            signature_bytes,
            shift_ns,
            origin_ns,
            current: None,
            tangled: Vec::new(),
            fates: Vec::new(),
            open: Vec::new(),
            resolved: None,
            last: None,
            rows: 0,
        }
    }

    /// The largest distance between the two stamps of a packet.
    #[must_use]
    pub fn window(&self) -> Window {
        self.options.window
    }

    /// To be added to the egress stamps.
    #[must_use]
    pub fn shift_ns(&self) -> i64 {
        self.shift_ns
    }

    /// Where the seconds begin to count.
    #[must_use]
    pub fn origin_ns(&self) -> i64 {
        self.origin_ns
    }

    /// Samples that left until then are trimmed; `None` without any match, `i64::MIN` without a trim.
    #[must_use]
    pub fn trimmed_until_ns(&self) -> Option<i64> {
        self.latencies.trimmed_until_ns()
    }

    /// Ends of the captures, which decide the outcomes of packets without a pair, once all pairs are
    /// [counted](Self::settle).
    #[must_use]
    pub fn ends(&self) -> Ends {
        let last_ns = self.facts[1].tap.last_ns;
        let shifted = |stamp_ns: i64| stamp_ns.saturating_add(self.shift_ns);
        let begun_ns = self.facts[1].origin_ns.map(shifted);
        Ends::new(
            &self.options,
            lost_from_ns(&self.options, self.origin_ns, begun_ns),
            (self.latencies.longest_ns, self.latencies.trimmed_until_ns()),
            self.facts[0].tap.first_ns.unwrap_or(i64::MAX),
            last_ns.map_or(i64::MIN, shifted),
        )
    }

    /// Matches a packet whose signature repeats. They must come by signature, those of one signature
    /// in order.
    ///
    /// # Errors
    /// [`LedgerError`] when they do not.
    pub fn tangled(&mut self, packet: &TangledPacket) -> Result<(), LedgerError> {
        let key = Some((packet.signature, packet.place));
        if self.current.as_ref().map(|(signature, place, _)| (*signature, *place)) >= key {
            return Err(LedgerError { row: self.rows });
        }
        self.rows += 1;
        if self.current.as_ref().is_none_or(|(signature, ..)| *signature != packet.signature) {
            self.end_signature();
        }
        let window = self.options.window;
        let (_, place, alone) = self
            .current
            .get_or_insert_with(|| (packet.signature, packet.place, Alone::new(window)));
        *place = packet.place;
        let pair = if packet.place.left {
            alone.egress(packet.stamp_ns, packet.place.order_ns)
        } else {
            alone.ingress(Seen {
                stamp_ns: packet.stamp_ns,
                forgotten_ns: packet.forgotten_ns,
                tag: packet.position,
                signature: Signature { high: 0, low: packet.place.index },
            })
        };
        self.tangled.extend(pair.map(|pair| DecidedPair { place: packet.place, pair }));
        self.fates.append(&mut alone.fates);
        Ok(())
    }

    fn end_signature(&mut self) {
        if let Some((_, _, alone)) = self.current.take() {
            let (fates, open) = alone.finish();
            self.fates.extend(fates);
            self.open.extend(open);
        }
    }

    /// Counts pairs, which must come in the order in which they were decided.
    ///
    /// # Errors
    /// What keeps the sink from taking them, and [`LedgerError`] when they are out of order.
    pub fn pairs<S: Sink>(&mut self, pairs: &[DecidedPair], sink: &mut S) -> io::Result<()> {
        let mut resolved = self.resolved();
        let mut merged = Vec::with_capacity(pairs.len());
        for next in pairs {
            if self.last >= Some(next.place) {
                return Err(io::Error::other(LedgerError { row: self.rows }));
            }
            self.last = Some(next.place);
            self.rows += 1;
            while let Some(resolved) = resolved.next_if(|other| other.place < next.place) {
                merged.push(resolved.pair);
            }
            merged.push(next.pair);
        }
        self.resolved = Some(resolved);
        self.latencies.record(&merged, sink)
    }

    /// The pairs of signatures that repeat, as far as they are not counted.
    fn resolved(&mut self) -> Peekable<std::vec::IntoIter<DecidedPair>> {
        self.resolved.take().unwrap_or_else(|| {
            self.end_signature();
            let mut resolved = std::mem::take(&mut self.tangled);
            resolved.sort_unstable_by_key(|pair| pair.place);
            self.rows = 0;
            resolved.into_iter().peekable()
        })
    }

    /// No pair follows.
    ///
    /// # Errors
    /// What keeps the sink from taking those that are left.
    pub fn settle<S: Sink>(&mut self, sink: &mut S) -> io::Result<()> {
        let rest: Vec<Pair> = self.resolved().map(|resolved| resolved.pair).collect();
        self.latencies.record(&rest, sink)?;
        self.latencies.flush_second();
        Ok(())
    }

    /// The result. The tally counts packets whose signature does not repeat, the loads are by second since
    /// the origin. The worst packets carry as their signature (`low`) the place of their ingress packet in
    /// its capture: the caller puts the real one there.
    #[must_use]
    pub fn finish(
        mut self,
        mut tally: Tally,
        gaps: [Histogram; 2],
        [entering, leaving]: [BTreeMap<i64, Load>; 2],
    ) -> Analysis {
        self.judge(&mut tally);
        let maxima = &self.latencies.maxima;
        let seconds = by_second([&entering, &leaving], &tally.lost_by_second, maxima);
        let Tally { mut ingress, mut egress, trimmed_undelivered, undelivered, .. } = tally;
        let shift_ns = self.shift_ns;
        let [entered, mut left] = self.facts;
        (ingress.packets, ingress.unstamped) = (entered.packets, entered.unstamped);
        (egress.packets, egress.unstamped) = (left.packets, left.unstamped);
        let unstamped = [entered.unstamped, left.unstamped];
        left.tap.first_ns = left.tap.first_ns.map(|stamp_ns| stamp_ns.saturating_add(shift_ns));
        left.tap.last_ns = left.tap.last_ns.map(|stamp_ns| stamp_ns.saturating_add(shift_ns));
        let [ingress_gaps, egress_gaps] = gaps;
        Findings {
            signature: findings::signature(&self.options, self.signature_bytes),
            taps: summary::Taps { ingress: entered.tap, egress: left.tap },
            ingress,
            egress,
            unstamped,
            unnumbered: 0,
            trimmed_undelivered,
            undelivered,
            latencies: self.latencies,
            ingress_gaps,
            egress_gaps,
            seconds,
        }
        .analysis(&self.options)
    }

    /// Counts the packets whose signature repeats.
    fn judge(&mut self, tally: &mut Tally) {
        let ends = self.ends();
        let open = self.open.drain(..).map(|stamp_ns| (Fate::Lost, stamp_ns));
        for (fate, stamp_ns) in self.fates.drain(..).chain(open) {
            let at_ms = millisecond(stamp_ns, self.origin_ns);
            tally.add(ends.outcome(fate, stamp_ns), ends.is_trimmed(stamp_ns), at_ms, 1);
        }
    }
}
