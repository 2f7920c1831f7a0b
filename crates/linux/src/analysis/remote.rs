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
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Task {
    begin: Cut,
    /// Where the next one begins.
    end: Option<Cut>,
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
    let Some(stretches) = of_task(ingress, egress, task, options)? else { return Ok(None) };
    let [before, sources] = stretches.own(0);
    let outline: Result<Outline, _> =
        <Stretch>::outline(before, sources, &stretches.terms, options);
    let outline = outline.ok().filter(|outline| stretches.ends_at_cut(0, outline.last_ns()));
    outline.as_ref().map(bytes).transpose()
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
    let Some(stretches) = of_task(ingress, egress, task, options)? else { return Ok(None) };
    let (order, [before, sources]): (Order, _) = (value(order)?, stretches.own(0));
    let counts = <Stretch>::counted(before, sources, &stretches.terms, options, &order);
    counts.map_err(io::Error::other)?.as_ref().map(bytes).transpose()
}

fn of_task(
    mut ingress: Source,
    mut egress: Source,
    task: &[u8],
    options: &Options,
) -> io::Result<Option<Stretches>> {
    let Task { begin, end } = value(task)?;
    let (terms, sides) = sides(&mut ingress, &mut egress, options).map_err(io::Error::other)?;
    let cuts = [Some(begin), end].into_iter().flatten().collect();
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
        let mut outlines = hosts.outlines(self.tasks()?).map_err(RemoteError::Hosts)?;
        let mut ongoing = stretches.begun(self.options);
        ongoing.run(stretches.next_ns(0), &mut (), &mut self.progress)?;
        let (mut came, mut outstanding) = (BTreeMap::new(), Vec::new());
        for (index, cut) in stretches.cuts.iter().enumerate() {
            let [entered, left] = cut.at;
            if (self.progress)(entered, left).is_break() {
                return Err(AnalysisError::Stopped.into());
            }
            let outline = took(&mut outlines, &mut came, index)?;
            let outline: Option<Outline> = outline
                .map(|bytes| value(&bytes))
                .transpose()
                .map_err(|_| RemoteError::Answer(index))?;
            let whole = outline.is_some();
            if let Some(outline) = outline
                && let Some(order) = self.join(&mut ongoing, index, outline)
            {
                outstanding.push((index, order));
                continue;
            }
            self.count(&mut ongoing, &mut outstanding)?;
            stretches.go_on(&mut ongoing, index, whole, &mut (), &mut self.progress)?;
            if !whole {
                break;
            }
        }
        self.count(&mut ongoing, &mut outstanding)?;
        Ok(ongoing.finish())
    }

    fn task(&self, index: usize) -> Result<Vec<u8>, RemoteError<H::Error>> {
        let cuts = &self.stretches.cuts;
        let task = Task { begin: cuts[index], end: cuts.get(index + 1).copied() };
        bytes(&task).map_err(unsendable)
    }

    fn tasks(&self) -> Result<Vec<Vec<u8>>, RemoteError<H::Error>> {
        (0..self.stretches.cuts.len()).map(|index| self.task(index)).collect()
    }

    fn join(&self, ongoing: &mut Ongoing<'a>, index: usize, outline: Outline) -> Option<Order> {
        let stretches = self.stretches;
        let names = [0, 1].map(|side| stretches.sides[side].name.as_str());
        let next_ns = stretches.next_ns(index + 1);
        ongoing.join_outline(outline, names, &stretches.terms, self.options, next_ns)
    }

    /// Has the pairs of stretches that are joined counted, and adds the counts.
    fn count(
        &mut self,
        ongoing: &mut Ongoing<'a>,
        outstanding: &mut Vec<(usize, Order)>,
    ) -> Result<(), RemoteError<H::Error>> {
        if outstanding.is_empty() {
            return Ok(());
        }
        let indices: Vec<usize> = outstanding.iter().map(|(index, _)| *index).collect();
        let ordered = outstanding.drain(..).map(|(index, order)| {
            let order = bytes(&order).map_err(unsendable)?;
            Ok(Ordered { index, task: self.task(index)?, order })
        });
        let ordered = ordered.collect::<Result<_, RemoteError<H::Error>>>()?;
        let (mut answers, mut came) =
            (self.hosts.counts(ordered).map_err(RemoteError::Hosts)?, BTreeMap::new());
        for index in indices {
            let Some(answer) = took(&mut answers, &mut came, index)? else {
                return Err(RemoteError::OneHost);
            };
            let counts: Counts = value(&answer).map_err(|_| RemoteError::Answer(index))?;
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
