//! Two captures that other hosts match, stretch by stretch: they read the same files.
//!
//! Tasks, orders and what comes of them are bytes that only the same version of tailtrim reads.

use super::cuts::Cut;
use super::stretches::Stretches;
use super::{sides, stretches};
use crate::source::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{
    Analysis, AnalysisError, Counts, Ongoing, Options, Order, Outline, Stretch,
};
use tailtrim_tail::capture::CaptureError;

/// Where a stretch lies.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Task {
    begin: Cut,
    /// Where the next one begins.
    end: Option<Cut>,
    /// The order that its pairs will have, as far as one can tell: then they are counted at once.
    expected: Option<Order>,
}

/// A stretch that is joined, but whose counts are not added.
struct Joined {
    index: usize,
    order: Order,
    /// If they were counted in this order.
    counts: Option<Counts>,
}

/// An answer to a task: its index, and what came of it. [`None`] where it cannot be done on its own.
pub type Answer = (usize, Option<Vec<u8>>);

/// Answers in any order, as they come.
pub type Answers<'a, E> = Box<dyn Iterator<Item = Result<Answer, E>> + 'a>;

/// Hosts that read the same captures.
pub trait Hosts {
    /// Why they did not answer.
    type Error;

    /// Has [`outline`] done for each task.
    ///
    /// # Errors
    /// They cannot be asked.
    fn outlines(&self, tasks: Vec<Vec<u8>>) -> Result<Answers<'_, Self::Error>, Self::Error>;

    /// Has [`counts`] done for each task of an index, with its order.
    ///
    /// # Errors
    /// They cannot be asked.
    fn counts(&self, ordered: Vec<Ordered>) -> Result<Answers<'_, Self::Error>, Self::Error>;
}

/// A task and the order in which its pairs are to be counted.
#[derive(Debug, Clone)]
pub struct Ordered {
    /// Its index among all tasks.
    pub index: usize,
    /// The task.
    pub task: Vec<u8>,
    /// The order.
    pub order: Vec<u8>,
}

/// Why the hosts did not analyse the captures.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError<E> {
    /// As on one host.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The hosts.
    #[error("{0}")]
    Hosts(E),
    /// These captures are to be analysed by one host: they are short, not plain pcap files, or signatures come again much
    /// later, which only shows when all is matched.
    #[error("the captures cannot be analysed in stretches")]
    OneHost,
    /// An answer is missing, or cannot be read.
    #[error(
        "stretch {0}: a host answered with something else, expected the same version of tailtrim on all"
    )]
    Answer(usize),
}

impl<E> From<CaptureError> for RemoteError<E> {
    fn from(error: CaptureError) -> Self {
        Self::Analysis(error.into())
    }
}

/// What a host says of a stretch, see [`Hosts::outlines`].
///
/// # Errors
/// The captures cannot be read, or the task has other bytes than one of this version.
pub fn outline(
    ingress: Source,
    egress: Source,
    task: &[u8],
    options: &Options,
) -> io::Result<Option<Vec<u8>>> {
    let task: Task = value(task)?;
    let Some(stretches) = of_task(ingress, egress, &task, options)? else { return Ok(None) };
    let ([before, sources], expected) = (stretches.own(0), task.expected.as_ref());
    let told = <Stretch>::outline(before, sources, &stretches.terms, options, expected);
    let told = told.ok().filter(|(outline, _)| stretches.ends_at_cut(0, outline.last_ns()));
    told.as_ref().map(bytes).transpose()
}

/// What a host counts of a stretch, see [`Hosts::counts`].
///
/// # Errors
/// The captures cannot be read, or the task or the order has other bytes than one of this version.
pub fn counts(
    ingress: Source,
    egress: Source,
    (task, order): (&[u8], &[u8]),
    options: &Options,
) -> io::Result<Option<Vec<u8>>> {
    let Some(stretches) = of_task(ingress, egress, &value(task)?, options)? else {
        return Ok(None);
    };
    let (order, [before, sources]): (Order, _) = (value(order)?, stretches.own(0));
    let counts = <Stretch>::counted(before, sources, &stretches.terms, options, &order);
    counts.map_err(io::Error::other)?.as_ref().map(bytes).transpose()
}

fn of_task(
    mut ingress: Source,
    mut egress: Source,
    task: &Task,
    options: &Options,
) -> io::Result<Option<Stretches>> {
    let (terms, sides) = sides(&mut ingress, &mut egress, options).map_err(io::Error::other)?;
    let cuts = [Some(task.begin), task.end].into_iter().flatten().collect();
    Ok(sides.map(|sides| Stretches { sides, cuts, terms }))
}

fn bytes<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(io::Error::other)
}

fn value<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(io::Error::other)
}

/// Analyses two captures on other hosts, in stretches of so many packets. Otherwise as [`super::analyze`] without samples:
/// to send them takes longer than to match them here.
///
/// # Errors
/// [`RemoteError`].
pub fn analyze<H: Hosts>(
    mut ingress: Source,
    mut egress: Source,
    packets: u64,
    options: &Options,
    hosts: &H,
    progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, RemoteError<H::Error>> {
    let stretches = stretches(&mut ingress, &mut egress, packets, options)?;
    let Some(stretches) = stretches else { return Err(RemoteError::OneHost) };
    Remote { stretches: &stretches, hosts, options, progress }.analyze()
}

struct Remote<'a, H, P> {
    stretches: &'a Stretches,
    hosts: &'a H,
    options: &'a Options,
    progress: P,
}

impl<'a, H, P> Remote<'a, H, P>
where
    H: Hosts,
    P: FnMut(u64, u64) -> ControlFlow<()>,
{
    fn analyze(mut self) -> Result<Analysis, RemoteError<H::Error>> {
        let (stretches, hosts) = (self.stretches, self.hosts);
        let mut ongoing = stretches.begun(self.options);
        ongoing.run(stretches.next_ns(0), &mut (), &mut self.progress)?;
        let expected = self.expected(&ongoing);
        let mut outlines = hosts.outlines(self.tasks(&expected)?).map_err(RemoteError::Hosts)?;
        let (mut came, mut joined) = (BTreeMap::new(), Vec::new());
        for (index, cut) in stretches.cuts.iter().enumerate() {
            let [entered, left] = cut.at;
            if (self.progress)(entered, left).is_break() {
                return Err(AnalysisError::Stopped.into());
            }
            let told = took(&mut outlines, &mut came, index)?;
            let told: Option<(Outline, Option<Counts>)> = told
                .map(|bytes| value(&bytes))
                .transpose()
                .map_err(|_| RemoteError::Answer(index))?;
            let whole = told.is_some();
            if let Some((outline, counts)) = told
                && let Some(order) = self.join(&mut ongoing, index, outline)
            {
                let counts = counts.filter(|_| expected[index].as_ref() == Some(&order));
                joined.push(Joined { index, order, counts });
                if joined.iter().all(|one| one.counts.is_some()) {
                    self.add(&mut ongoing, &mut joined)?;
                }
                continue;
            }
            self.add(&mut ongoing, &mut joined)?;
            stretches.go_on(&mut ongoing, index, whole, &mut (), &mut self.progress)?;
            if !whole {
                break;
            }
        }
        self.add(&mut ongoing, &mut joined)?;
        Ok(ongoing.finish())
    }

    /// The order of each stretch if all packets that leave from the first cut on become samples, where all egress
    /// records are equally long. Whether it is right shows when the stretch is joined.
    fn expected(&self, ongoing: &Ongoing<'_>) -> Vec<Option<Order>> {
        let Stretches { sides: [_, egress], cuts, .. } = self.stretches;
        let order = |cut: &Cut| ongoing.expected(egress.records_between(cuts[0].at[1], cut.at[1])?);
        cuts.iter().map(order).collect()
    }

    fn task(
        &self,
        index: usize,
        expected: Option<Order>,
    ) -> Result<Vec<u8>, RemoteError<H::Error>> {
        let cuts = &self.stretches.cuts;
        let task = Task { begin: cuts[index], end: cuts.get(index + 1).copied(), expected };
        bytes(&task).map_err(unsendable)
    }

    fn tasks(&self, expected: &[Option<Order>]) -> Result<Vec<Vec<u8>>, RemoteError<H::Error>> {
        expected.iter().enumerate().map(|(index, order)| self.task(index, order.clone())).collect()
    }

    fn join(&self, ongoing: &mut Ongoing<'a>, index: usize, outline: Outline) -> Option<Order> {
        let stretches = self.stretches;
        let names = [0, 1].map(|side| stretches.sides[side].name.as_str());
        let next_ns = stretches.next_ns(index + 1);
        ongoing.join_outline(outline, names, &stretches.terms, self.options, next_ns)
    }

    /// Adds the counts of stretches that are joined, and has the pairs counted of those without any.
    fn add(
        &mut self,
        ongoing: &mut Ongoing<'a>,
        joined: &mut Vec<Joined>,
    ) -> Result<(), RemoteError<H::Error>> {
        let without = joined.iter().filter(|one| one.counts.is_none());
        let ordered = without.map(|one| {
            let (index, order) = (one.index, bytes(&one.order).map_err(unsendable)?);
            Ok(Ordered { index, task: self.task(index, None)?, order })
        });
        let ordered = ordered.collect::<Result<Vec<_>, RemoteError<H::Error>>>()?;
        let mut answers: Answers<'_, H::Error> = match ordered.len() {
            0 => Box::new(std::iter::empty()),
            _ => self.hosts.counts(ordered).map_err(RemoteError::Hosts)?,
        };
        let mut came = BTreeMap::new();
        for Joined { index, counts, .. } in joined.drain(..) {
            let counts = match counts {
                Some(counts) => counts,
                None => {
                    let answer = took(&mut answers, &mut came, index)?;
                    let answer = answer.ok_or(RemoteError::OneHost)?;
                    value(&answer).map_err(|_| RemoteError::Answer(index))?
                }
            };
            ongoing.add_counts(counts);
        }
        Ok(())
    }
}

/// The answer of this index, once it has come.
fn took<E>(
    answers: &mut Answers<'_, E>,
    came: &mut BTreeMap<usize, Option<Vec<u8>>>,
    index: usize,
) -> Result<Option<Vec<u8>>, RemoteError<E>> {
    loop {
        if let Some(answer) = came.remove(&index) {
            return Ok(answer);
        }
        match answers.next() {
            Some(Ok((other, answer))) => {
                came.insert(other, answer);
            }
            Some(Err(error)) => return Err(RemoteError::Hosts(error)),
            None => return Err(RemoteError::Answer(index)),
        }
    }
}

fn unsendable<E>(error: io::Error) -> RemoteError<E> {
    AnalysisError::Sink(error).into()
}
