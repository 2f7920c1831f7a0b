//! Stretches that other hosts match and count, joined in their order without their pairs.

use super::remote::{Hosts, Sent};
use super::stretches::Stretches;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Counts, Ongoing, Options, Order, Outline};

/// Reasons why captures are not analysed in stretches. `E` is the error of the hosts that match them.
#[derive(Debug, thiserror::Error)]
pub enum StretchError<E> {
    /// As in one piece.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// An error of the hosts.
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

/// The answers of the hosts, or the error.
pub(super) type Answered<'a, T, E> = Result<Answers<'a, T, StretchError<E>>, StretchError<E>>;

/// A stretch that is joined, but whose counts are not added.
struct Joined {
    index: usize,
    order: Order,
    /// If they were counted in this order.
    counts: Option<Counts>,
}

/// Coordinator: has stretches matched by hosts and joins them.
pub(super) struct Coordinator<'a, H, P> {
    pub(super) stretches: &'a Stretches,
    pub(super) hosts: Sent<'a, H>,
    pub(super) options: &'a Options,
    pub(super) progress: P,
}

impl<H, P> Coordinator<'_, H, P>
where
    H: Hosts,
    P: FnMut(u64, u64) -> ControlFlow<()>,
{
    /// Reads up to the first cut, has the rest matched, and joins it.
    pub(super) fn analyze(mut self) -> Result<Analysis, StretchError<H::Error>> {
        let Self { stretches, hosts, options, progress } = &mut self;
        let mut ongoing = stretches.begun(options);
        let first = stretches.run_to_first(&mut ongoing, &mut *progress)?;
        let first = first.ok_or(StretchError::OnePiece)?;
        let expected = stretches.expected(first, &ongoing);
        let mut outlines = hosts.outlines(first, ongoing.begin(), &expected)?;
        let (mut came, mut joined) = (BTreeMap::new(), Vec::new());
        for (index, cut) in stretches.cuts.iter().enumerate().skip(first) {
            let [entered, left] = cut.at;
            if progress(entered, left).is_break() {
                return Err(AnalysisError::Stopped.into());
            }
            let told = took(&mut outlines, &mut came, index)?;
            let whole = told.is_some();
            if let Some((outline, counts)) = told
                && let Some(order) = join(stretches, &mut ongoing, index, outline, options)
            {
                let counts = counts.filter(|_| expected[index - first].as_ref() == Some(&order));
                joined.push(Joined { index, order, counts });
                if joined.iter().all(|one| one.counts.is_some()) {
                    add(hosts, &mut ongoing, &mut joined)?;
                }
                continue;
            }
            add(hosts, &mut ongoing, &mut joined)?;
            stretches.go_on(&mut ongoing, index, whole, &mut *progress)?;
            if !whole {
                break;
            }
        }
        add(hosts, &mut ongoing, &mut joined)?;
        Ok(ongoing.finish())
    }
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
fn add<H: Hosts>(
    hosts: &Sent<'_, H>,
    ongoing: &mut Ongoing<'_>,
    joined: &mut Vec<Joined>,
) -> Result<(), StretchError<H::Error>> {
    let without = joined.iter().filter(|one| one.counts.is_none());
    let orders: Vec<_> = without.map(|one| (one.index, one.order.clone())).collect();
    let mut answers: Answers<'_, Counts, _> = match orders.len() {
        0 => Box::new(std::iter::empty()),
        _ => hosts.counts(ongoing.begin(), orders)?,
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
