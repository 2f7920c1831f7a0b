//! Two plain captures, cut into stretches that can be matched in any order.

use super::cuts::{self, Cut, Place, Side};
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{
    AnalysisError, Counts, Ongoing, Opened, Options, Order, Outline, Room, Sink, Stretch, Terms,
};
use tailtrim_tail::capture::Track;
use tailtrim_tail::matching::MEMORY;

/// Workers begin so many packets before a stretch: their matcher then has the same state as in one run over the
/// captures, as long as no more packets are in flight.
const BEFORE: u64 = 2 * MEMORY as u64;

/// Packets of a stretch: those before it take 6 % of the time, its pairs 21 MB.
pub(super) const PACKETS: u64 = 16 * BEFORE;

/// The trim counts from the first packet that leaves: the first cut leaves time for a first packet that takes this part
/// of the trim.
const DELAYED: i64 = 8;

/// Largest part of a capture in front of the first cut, which is read by one thread alone. Where it is more, reading
/// ahead is faster on two cores: 1 / 1.7 of the time of one core, in place of 1/8 + 7/8 · 1/2.
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
    /// Cuts two captures, so many packets apart; `None` where that is not worth it, or not possible.
    pub(super) fn of(
        sides: [Side; 2],
        terms: Terms,
        packets: u64,
        options: &Options,
    ) -> Option<Self> {
        let from_ns = terms.origin_ns().saturating_add(options.trim_ns);
        let from_ns = from_ns.saturating_add(options.trim_ns / DELAYED);
        let cuts = cuts::cuts(&sides, packets, BEFORE, from_ns);
        (!cuts.is_empty()).then(|| Self { sides, cuts, terms })
    }

    /// Whether the first cut is really at a record: it was found among bytes that look like records.
    pub(super) fn begin_at_a_cut(&self) -> bool {
        let leads = |side: usize| {
            self.cuts
                .first()
                .is_some_and(|cut| self.sides[side].leads_to(cut.at[side], cut.stamp_ns))
        };
        leads(0) && leads(1)
    }

    /// A stretch on its own; `None` where it does not end at a cut, or is damaged.
    pub(super) fn matched(&self, index: usize, options: &Options, room: Room) -> Option<Stretch> {
        let [before, sources] = self.own(index);
        let stretch = Stretch::matched(before, sources, &self.terms, options, room).ok()?;
        self.ends_at_cut(index, stretch.last_ns()).then_some(stretch)
    }

    /// The same without its pairs, which are counted if an order is expected.
    pub(super) fn outlined(
        &self,
        index: usize,
        expected: Option<&Order>,
        options: &Options,
    ) -> Option<Outlined> {
        let [before, sources] = self.own(index);
        let told = <Stretch>::outline(before, sources, &self.terms, options, expected).ok()?;
        self.ends_at_cut(index, told.0.last_ns()).then_some(told)
    }

    /// Whether the first cut lies within the first part of the ingress capture, see [`EARLY`].
    pub(super) fn begin_early(&self) -> bool {
        self.end(0)[0] <= self.sides[0].plain.size / EARLY
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

    /// Goes on from a stretch that cannot be joined. If it is not `whole`, its end is not a cut, or a capture is
    /// damaged: from there on the captures are read as one.
    pub(super) fn go_on<S: Sink>(
        &self,
        ongoing: &mut Ongoing<'_>,
        index: usize,
        whole: bool,
        sink: &mut S,
        progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), AnalysisError> {
        let end = if whole { index + 1 } else { self.cuts.len() };
        let (to, records) = (self.end(end), ongoing.packets());
        let [ingress, egress] = self.sources(self.cuts[index].at, to, records, !whole);
        ongoing.go_on(ingress, egress);
        ongoing.run(self.next_ns(end), sink, progress)
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
