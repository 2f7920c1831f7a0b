//! Two captures that other hosts match, stretch by stretch: they read the same files.
//!
//! Tasks, orders and results are bytes that only the same version of tailtrim reads.

use super::coordinator::{Answered, Answers, Coordinator, StretchError};
use super::cuts::{Cut, Lengths};
use super::second_look::SecondLook;
use super::stretches::{Outlined, Stretches};
use super::{sides, stretches};
use crate::converted;
use crate::source::CaptureInput;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Begin, Counts, Options, Order, Stretch};

/// Position of a stretch.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Task {
    begin: Cut,
    /// Beginning of the next one.
    end: Option<Cut>,
    /// The begin of the samples.
    samples: Begin,
    /// The expected order of its pairs, if there is one: then they are counted at once.
    expected: Option<Order>,
}

/// Hosts that read the same captures.
pub trait Hosts {
    /// Reason why they did not answer.
    type Error;

    /// Runs [`outline`] for each task.
    ///
    /// # Errors
    /// They cannot be asked.
    fn outlines(
        &self,
        tasks: Vec<Vec<u8>>,
    ) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error>;

    /// Runs [`counts`] for each task of an index, with its order.
    ///
    /// # Errors
    /// They cannot be asked.
    fn counts(
        &self,
        ordered: Vec<Ordered>,
    ) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error>;
}

/// A task and the order in which its pairs are to be counted.
#[derive(Debug, Clone)]
pub struct Ordered {
    /// Its number, which the answer is to bear.
    pub index: usize,
    /// The task.
    pub task: Vec<u8>,
    /// The order.
    pub order: Vec<u8>,
}

/// Outline of a stretch, computed by a host, see [`Hosts::outlines`].
///
/// # Errors
/// The captures cannot be read, or the task is not of this version.
pub fn outline(
    ingress: CaptureInput,
    egress: CaptureInput,
    task: &[u8],
    options: &Options,
) -> io::Result<Option<Vec<u8>>> {
    let task: Task = value(task)?;
    let Some(stretches) = of_task(ingress, egress, &task, options)? else { return Ok(None) };
    let counting = (task.samples, task.expected.as_ref());
    stretches.outlined(0, counting, options).as_ref().map(bytes).transpose()
}

/// Counts of a stretch, computed by a host, see [`Hosts::counts`].
///
/// # Errors
/// The captures cannot be read, or the task or the order is not of this version.
pub fn counts(
    ingress: CaptureInput,
    egress: CaptureInput,
    (task, order): (&[u8], &[u8]),
    options: &Options,
) -> io::Result<Option<Vec<u8>>> {
    let Some(stretches) = of_task(ingress, egress, &value(task)?, options)? else {
        return Ok(None);
    };
    let (order, [before, sources]): (Order, _) = (value(order)?, stretches.own(0));
    let counts = <Stretch>::counted(before, sources, (&stretches.terms, options), &order);
    counts.map_err(io::Error::other)?.as_ref().map(bytes).transpose()
}

fn of_task(
    mut ingress: CaptureInput,
    mut egress: CaptureInput,
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

/// Analyses two captures on other hosts, in stretches of so many packets. Otherwise as [`super::analyze`] without
/// samples: sending them would take longer than matching here.
///
/// # Errors
/// [`StretchError`].
pub fn analyze<H: Hosts>(
    mut ingress: CaptureInput,
    mut egress: CaptureInput,
    packets: u64,
    options: &Options,
    hosts: &H,
    progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, StretchError<H::Error>> {
    if options.direction.is_some() {
        return Err(StretchError::OnePiece);
    }
    let again = SecondLook::at(&ingress, &egress);
    let lengths = Lengths { part: 1, least: packets, most: packets };
    let stretches =
        stretches(&mut ingress, &mut egress, &lengths, options).map_err(AnalysisError::from)?;
    let Some(stretches) = stretches else { return Err(StretchError::OnePiece) };
    let sent = Sent { stretches: &stretches, hosts };
    let mut analysis =
        Coordinator { stretches: &stretches, hosts: sent, options, progress }.analyze()?;
    if let Some(again) = again {
        let copies = again.later_copies(&analysis.summary, options);
        let twice = again.twice(&analysis.summary, options);
        // Captures that have packets several times are matched once more, on one host.
        if matches!(copies, Ok(Some(_))) || matches!(twice, Ok(Some(_))) {
            return Err(StretchError::OnePiece);
        }
        again.explain(&mut analysis, options, super::all_cores());
    }
    converted::tell(&mut analysis.summary).map_err(AnalysisError::from)?;
    Ok(analysis)
}

/// Stretches that are sent to hosts.
pub(super) struct Sent<'a, H> {
    stretches: &'a Stretches,
    hosts: &'a H,
}

impl<H: Hosts> Sent<'_, H> {
    fn task(
        &self,
        index: usize,
        samples: Begin,
        expected: Option<Order>,
    ) -> Result<Vec<u8>, StretchError<H::Error>> {
        let (begin, end) =
            (self.stretches.cuts[index], self.stretches.cuts.get(index + 1).copied());
        let task = Task { begin, end, samples, expected };
        bytes(&task).map_err(unsendable)
    }

    /// Has all stretches from the first one on matched. Where an order is expected, their pairs are counted, too.
    pub(super) fn outlines(
        &self,
        first: usize,
        samples: Begin,
        expected: &[Option<Order>],
    ) -> Answered<'_, Outlined, H::Error> {
        let task =
            |(at, order): (usize, &Option<Order>)| self.task(first + at, samples, order.clone());
        let tasks = expected.iter().enumerate().map(task).collect::<Result<_, _>>()?;
        let told = read(self.hosts.outlines(tasks).map_err(StretchError::Others)?);
        Ok(Box::new(told.map(move |one| one.map(|(at, outlined)| (first + at, outlined)))))
    }

    /// Has the pairs of some stretches counted.
    pub(super) fn counts(
        &self,
        samples: Begin,
        orders: Vec<(usize, Order)>,
    ) -> Answered<'_, Counts, H::Error> {
        let ordered = |(index, order): (usize, Order)| {
            let task = self.task(index, samples, None)?;
            Ok(Ordered { index, task, order: bytes(&order).map_err(unsendable)? })
        };
        let ordered = orders.into_iter().map(ordered).collect::<Result<_, StretchError<_>>>()?;
        Ok(read(self.hosts.counts(ordered).map_err(StretchError::Others)?))
    }
}

/// Decodes the answers.
fn read<'a, T: DeserializeOwned, E: 'a>(
    answers: Answers<'a, Vec<u8>, E>,
) -> Answers<'a, T, StretchError<E>> {
    Box::new(answers.map(|answer| {
        let (index, answer) = answer.map_err(StretchError::Others)?;
        let told = answer.map(|bytes| value(&bytes)).transpose();
        Ok((index, told.map_err(|_| StretchError::Answer(index))?))
    }))
}

fn unsendable<E>(error: io::Error) -> StretchError<E> {
    AnalysisError::Sink(error).into()
}
