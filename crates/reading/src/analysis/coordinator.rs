//! Stretches that threads or other hosts match and count, joined in their order without their pairs.

use super::cuts::Cut;
use super::stretches::{Outlined, Stretches};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Counts, Ongoing, Options, Order, Outline};

/// Reasons why captures are not analysed in stretches. `E` is the error of those that match them.
#[derive(Debug, thiserror::Error)]
pub enum StretchError<E> {
    /// As in one piece.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// An error of the matching threads or hosts.
    #[error("{0}")]
    Others(E),
    /// These captures are to be analysed in one piece: they are short, not plain pcap files, or signatures come again much
    /// later, which only shows when all is matched.
    #[error("the captures cannot be analysed in stretches")]
    OnePiece,
    /// An answer is missing, or cannot be read.
    #[error(
        "stretch {0}: a host answered with something else, expected the same version of tailtrim on all"
    )]
    Answer(usize),
}

/// Answers of an index each, in any order, as they come. [`None`] where a stretch cannot be matched on its own.
pub type Answers<'a, T, E> = Box<dyn Iterator<Item = Result<(usize, Option<T>), E>> + 'a>;

/// The answers of the threads or hosts that match, or the error.
pub(super) type Answered<'a, T, E> = Result<Answers<'a, T, StretchError<E>>, StretchError<E>>;

/// Threads or hosts that match stretches.
pub(super) trait Workers {
    type Error;

    /// Whether they only count pairs as they match them, in the order that was expected.
    const COUNTS_ONCE: bool;

    /// Has all stretches matched. Where an order is expected, their pairs are counted, too.
    fn outlines(&self, expected: &[Option<Order>]) -> Answered<'_, Outlined, Self::Error>;

    /// Has the pairs of some stretches counted.
    fn counts(&self, orders: Vec<(usize, Order)>) -> Answered<'_, Counts, Self::Error>;
}

/// A stretch that is joined, but whose counts are not added.
struct Joined {
    index: usize,
    order: Order,
    /// If they were counted in this order.
    counts: Option<Counts>,
}

/// Coordinator: has stretches matched and joins them.
pub(super) struct Coordinator<'a, M, P> {
    pub(super) stretches: &'a Stretches,
    pub(super) others: M,
    pub(super) options: &'a Options,
    pub(super) progress: P,
}

impl<'a, M, P> Coordinator<'a, M, P>
where
    M: Workers,
    P: FnMut(u64, u64) -> ControlFlow<()>,
{
    /// Reads up to the first cut, has the rest matched, and joins it.
    pub(super) fn analyze(mut self) -> Result<Analysis, StretchError<M::Error>> {
        let Self { stretches, others, options, progress } = &mut self;
        let mut ongoing = stretches.begun(options);
        // If the first cut does not lie between two records, reading up to it fails. If a packet before it has a later
        // stamp, it is not a cut either.
        let begun = ongoing.run(stretches.next_ns(0), &mut (), &mut *progress);
        match begun {
            Err(AnalysisError::Capture(_)) => return Err(StretchError::OnePiece),
            begun => begun?,
        }
        if ongoing.last_ns() >= stretches.cuts[0].stamp_ns {
            return Err(StretchError::OnePiece);
        }
        let expected = expected(stretches, &ongoing);
        if M::COUNTS_ONCE && expected.iter().any(Option::is_none) {
            return Err(StretchError::OnePiece);
        }
        let mut outlines = others.outlines(&expected)?;
        let (mut came, mut joined) = (BTreeMap::new(), Vec::new());
        for (index, cut) in stretches.cuts.iter().enumerate() {
            let [entered, left] = cut.at;
            if progress(entered, left).is_break() {
                return Err(AnalysisError::Stopped.into());
            }
            let told = took(&mut outlines, &mut came, index)?;
            let whole = told.is_some();
            if let Some((outline, counts)) = told
                && let Some(order) = join(stretches, &mut ongoing, index, outline, options)
            {
                let counts = counts.filter(|_| expected[index].as_ref() == Some(&order));
                if M::COUNTS_ONCE && counts.is_none() {
                    return Err(StretchError::OnePiece);
                }
                joined.push(Joined { index, order, counts });
                if joined.iter().all(|one| one.counts.is_some()) {
                    add(others, &mut ongoing, &mut joined)?;
                }
                continue;
            }
            add(others, &mut ongoing, &mut joined)?;
            stretches.go_on(&mut ongoing, index, whole, &mut (), &mut *progress)?;
            if !whole {
                break;
            }
        }
        add(others, &mut ongoing, &mut joined)?;
        Ok(ongoing.finish())
    }
}

/// The order of each stretch if all packets that leave from the first cut on become samples, where all egress records are
/// equally long. Whether it is right shows when the stretch is joined.
fn expected(stretches: &Stretches, ongoing: &Ongoing<'_>) -> Vec<Option<Order>> {
    let Stretches { sides: [_, egress], cuts, .. } = stretches;
    let order = |cut: &Cut| ongoing.expected(egress.records_between(cuts[0].at[1], cut.at[1])?);
    cuts.iter().map(order).collect()
}

fn join(
    stretches: &Stretches,
    ongoing: &mut Ongoing<'_>,
    index: usize,
    outline: Outline,
    options: &Options,
) -> Option<Order> {
    let names = [0, 1].map(|side| stretches.sides[side].name.as_str());
    let next_ns = stretches.next_ns(index + 1);
    ongoing.join_outline(outline, names, &stretches.terms, options, next_ns)
}

/// Adds the counts of stretches that are joined, and has the pairs counted of those without any.
fn add<M: Workers>(
    others: &M,
    ongoing: &mut Ongoing<'_>,
    joined: &mut Vec<Joined>,
) -> Result<(), StretchError<M::Error>> {
    let without = joined.iter().filter(|one| one.counts.is_none());
    let orders: Vec<_> = without.map(|one| (one.index, one.order.clone())).collect();
    let mut answers: Answers<'_, Counts, _> = match orders.len() {
        0 => Box::new(std::iter::empty()),
        _ => others.counts(orders)?,
    };
    let mut came = BTreeMap::new();
    for Joined { index, counts, .. } in joined.drain(..) {
        let counts = match counts {
            Some(counts) => counts,
            None => took(&mut answers, &mut came, index)?.ok_or(StretchError::OnePiece)?,
        };
        ongoing.add_counts(counts);
    }
    Ok(())
}

/// The answer of this index, once it has come.
fn took<T, E>(
    answers: &mut Answers<'_, T, StretchError<E>>,
    came: &mut BTreeMap<usize, Option<T>>,
    index: usize,
) -> Result<Option<T>, StretchError<E>> {
    loop {
        if let Some(answer) = came.remove(&index) {
            return Ok(answer);
        }
        let (other, answer) = answers.next().ok_or(StretchError::Answer(index))??;
        came.insert(other, answer);
    }
}
