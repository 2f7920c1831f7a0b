//! Two plain captures, cut into stretches that can be matched in any order.

use super::cuts::{self, Cut, Lengths, Place, Side};
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{
    AnalysisError, Begin, Counted, Counts, Ongoing, Opened, Options, Order, Outline, Stretch, Terms,
};
use tailtrim_tail::capture::Track;
use tailtrim_tail::matching::MEMORY;

/// Workers begin so many packets before a stretch: their matcher then has the same state as in one run over the
/// captures. That takes [`MEMORY`]; how many packets lie between two places is estimated.
const BEFORE: u64 = MEMORY as u64 * 3 / 2;

/// The largest part of a capture that one thread reads alone until something matches.
const EARLY: u64 = 8;

/// A stretch without its pairs, and the counts of these if an order was expected.
pub(super) type Outlined = (Outline, Option<Counts>);

/// Two captures and where they are cut.
pub(super) struct Stretches {
    pub(super) sides: [Side; 2],
    pub(super) cuts: Vec<Cut>,
    pub(super) terms: Terms,
}

impl Stretches {
    /// Cuts two captures into stretches of these lengths; `None` where that is not worth it, or not possible.
    pub(super) fn of(sides: [Side; 2], terms: Terms, lengths: &Lengths) -> Option<Self> {
        let cuts = cuts::cuts(&sides, lengths, BEFORE);
        (!cuts.is_empty()).then(|| Self { sides, cuts, terms })
    }

    /// A stretch on its own, with its counts; `None` where it does not end at a cut, or is damaged.
    pub(super) fn matched(
        &self,
        index: usize,
        order: (Begin, Option<&Order>),
        options: &Options,
        counted: Option<Counted>,
    ) -> Option<(Stretch, Counted)> {
        let [before, sources] = self.own(index);
        let told =
            Stretch::matched(before, sources, (&self.terms, options), order, counted).ok()?;
        self.ends_at_cut(index, told.0.last_ns()).then_some(told)
    }

    /// The same without its pairs, which are counted if an order is expected.
    pub(super) fn outlined(
        &self,
        index: usize,
        (begin, expected): (Begin, Option<&Order>),
        options: &Options,
    ) -> Option<Outlined> {
        let ([before, sources], read) = (self.own(index), (&self.terms, options));
        let told = <Stretch>::outline(before, sources, read, begin, expected).ok()?;
        self.ends_at_cut(index, told.0.last_ns()).then_some(told)
    }

    /// Sources for the packets in front of the stretch of this index, and for the stretch.
    pub(super) fn own(&self, index: usize) -> [[Opened; 2]; 2] {
        let Cut { at, before, .. } = self.cuts[index];
        let sources = self.sources(at, self.end(index + 1), [0; 2], false);
        [self.sources(before, at, [0; 2], false), sources]
    }

    /// Whether all stamps of a stretch, the last of which is known, are smaller than the cut behind it.
    pub(super) fn ends_at_cut(&self, index: usize, last_ns: i64) -> bool {
        self.cuts.get(index + 1).is_none_or(|next| last_ns < next.stamp_ns)
    }

    /// The analysis of the part in front of the first cut, before anything is read.
    pub(super) fn begun<'a>(&self, options: &'a Options) -> Ongoing<'a> {
        let begin = [Track::BEGIN; 2];
        let [ingress, egress] = self.sources(begin, self.end(0), [0; 2], false);
        Ongoing::new(ingress, egress, &self.terms, options)
    }

    /// Reads up to a cut behind which it is known when the samples begin, as what follows is counted accordingly. Returns
    /// its index; `None` where it is not a cut, or nothing matches in the first part of the captures.
    pub(super) fn run_to_first(
        &self,
        ongoing: &mut Ongoing<'_>,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<usize>, AnalysisError> {
        let mut run = ongoing.run(self.next_ns(0), &mut (), &mut progress);
        for (index, cut) in self.cuts.iter().enumerate() {
            match run {
                // If the cut does not lie between two records, reading up to it fails.
                Err(AnalysisError::Capture(_)) => return Ok(None),
                run => run?,
            }
            // If a packet before it has a later stamp, it is not a cut either.
            if ongoing.last_ns() >= cut.stamp_ns {
                return Ok(None);
            }
            if ongoing.begin().is_known() {
                return Ok(Some(index));
            }
            // Nothing matches: to read ahead is faster than one thread alone.
            if cut.at[0] > self.sides[0].plain.size / EARLY {
                return Ok(None);
            }
            run = self.go_on(ongoing, index, true, &mut progress);
        }
        Ok(None)
    }

    /// The order of each stretch from the first one on if all packets that leave after the trim become samples, where all
    /// egress records are equally long. Whether it is right shows when the stretch is joined.
    pub(super) fn expected(&self, first: usize, ongoing: &Ongoing<'_>) -> Vec<Option<Order>> {
        let (egress, cuts) = (&self.sides[1], &self.cuts);
        let trimmed = egress.from(ongoing.begin().trimmed_until_ns().saturating_add(1), 0.0);
        let order = |cut: &Cut| {
            let from = trimmed?.max(cuts[first].at[1]);
            let more = if cut.at[1] > from { egress.records_between(from, cut.at[1])? } else { 0 };
            ongoing.expected(more)
        };
        cuts[first..].iter().map(order).collect()
    }

    /// Goes on from a stretch that cannot be joined. If it is not `whole`, its end is not a cut, or a capture is
    /// damaged: from there on the captures are read as one.
    pub(super) fn go_on(
        &self,
        ongoing: &mut Ongoing<'_>,
        index: usize,
        whole: bool,
        progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), AnalysisError> {
        let end = if whole { index + 1 } else { self.cuts.len() };
        let (to, records) = (self.end(end), ongoing.packets());
        let [ingress, egress] = self.sources(self.cuts[index].at, to, records, !whole);
        ongoing.go_on(ingress, egress);
        ongoing.run(self.next_ns(end), &mut (), progress)
    }

    /// End of the stretch before that cut.
    pub(super) fn end(&self, cut: usize) -> Place {
        let sizes = [0, 1].map(|side| self.sides[side].plain.size);
        self.cuts.get(cut).map_or(sizes, |cut| cut.at)
    }

    /// The time of a cut behind which the egress capture goes on.
    pub(super) fn next_ns(&self, cut: usize) -> Option<i64> {
        let goes_on = |cut: &&Cut| cut.at[1] < self.sides[1].plain.size;
        self.cuts.get(cut).filter(goes_on).map(|cut| cut.stamp_ns)
    }

    /// Sources for the part between two places, behind so many records; damage is left out only with `salvage`.
    pub(super) fn sources(
        &self,
        from: Place,
        to: Place,
        records: [u64; 2],
        salvage: bool,
    ) -> [Opened; 2] {
        [0, 1].map(|side| {
            let Side { name, salvage: salvages, plain, track, .. } = &self.sides[side];
            let input = plain.input(from[side]..to[side]);
            let place = (from[side], records[side]);
            Box::new(track.capture(name.as_str(), input, place, salvage && *salvages)) as Opened
        })
    }
}
