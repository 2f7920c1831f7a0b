//! Carrying out a plan.

use super::host::Host;
use super::state::StateError;
use super::store::Store;
use serde::Serialize;
use tailtrim_tune::{
    Begin, Change, Journal, JournalError, JournalStep, Mark, Outcome, Place, Plan, Step,
};
use thiserror::Error;

/// Result of carrying out a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Values that are as wanted now.
    pub took: usize,
    /// Values that were as wanted by the time their turn came.
    pub already: usize,
    /// Values that read differently after they were written.
    pub differs: Vec<PlaceNote>,
    /// Values that this kernel does not allow to change.
    pub cannot: Vec<PlaceNote>,
    /// Places that had gone by the time their turn came.
    pub gone: Vec<Place>,
}

/// A place with a note about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceNote {
    /// Where.
    pub place: Place,
    /// The note.
    pub why: String,
}

/// A plan that was not carried out, or not to its end.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// Another one is in effect.
    #[error("a plan ({profile}) is already applied, completely or partly")]
    Pending {
        /// Its profile.
        profile: String,
    },
    /// The journal that is there cannot be read.
    #[error("the journal of an earlier plan cannot be read: {0}")]
    Journal(#[from] JournalError),
    /// The plan has a step that a journal cannot have.
    #[error("the plan cannot be stored in the journal: {0}")]
    Planned(JournalError),
    /// The journal cannot be written: nothing is changed without it.
    #[error(transparent)]
    Store(#[from] StateError),
    /// A record cannot be written down.
    #[error("a journal record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
    /// A value that was there cannot be read any more.
    #[error("{place}: {why}; nothing of {change} was changed")]
    Unread {
        /// The change.
        change: String,
        /// The place.
        place: Place,
        /// The reason.
        why: String,
    },
    /// A step failed.
    #[error("{change}: {place}: {why}; {done} values before it are set")]
    Failed {
        /// The change.
        change: String,
        /// The place.
        place: Place,
        /// The host's answer.
        why: String,
        /// Number of steps that were carried out before.
        done: usize,
    },
}

/// Carry out a plan.
///
/// Old values are recorded before the first change, and each step once more before it is done. Managers that
/// are taken over are stopped first: they restore values of their own, which are then the old ones.
///
/// # Errors
///
/// [`ApplyError`]; whatever was changed can be reverted.
pub fn apply(
    host: &mut impl Host,
    store: &mut impl Store,
    plan: &Plan,
    begin: Begin,
) -> Result<Applied, ApplyError> {
    if let Some(bytes) = store.load()? {
        let journal = Journal::parse(&bytes)?;
        // Without a step nothing was changed.
        if !journal.reverted && !journal.steps.is_empty() {
            return Err(ApplyError::Pending { profile: journal.begin.profile });
        }
        store.retire(&journal.begin.id)?;
    }
    let mut applied = Applied::default();
    let mut writer = Writer { store, marks: Vec::new() };
    let mut recorded = Vec::new();
    let (managers, rest): (Vec<_>, Vec<_>) =
        plan.steps().partition(|(change, _)| change.id.starts_with("take-over."));
    for steps in [managers, rest] {
        let before = recorded.len();
        record(host, &steps, &mut recorded, &mut applied)?;
        writer.publish(&begin, &recorded)?;
        for step in recorded[before..].iter().filter(|step| step.new.is_some()) {
            writer.mark(&Mark::Start { number: step.number })?;
            carry_out(host, &mut writer, step, &mut applied)?;
        }
    }
    writer.mark(&Mark::Applied)?;
    Ok(applied)
}

/// The journal as it is written: the whole of it once more when steps are added, since its header counts them.
struct Writer<'a, S> {
    store: &'a mut S,
    marks: Vec<u8>,
}

impl<S: Store> Writer<'_, S> {
    fn publish(&mut self, begin: &Begin, steps: &[JournalStep]) -> Result<(), ApplyError> {
        let bytes = [Journal::begun(begin, steps)?, self.marks.clone()].concat();
        // A journal that cannot be parsed could not be taken back.
        Journal::parse(&bytes).map_err(ApplyError::Planned)?;
        Ok(self.store.publish(&bytes)?)
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), ApplyError> {
        let line = mark.line()?;
        self.store.append(&line)?;
        self.marks.extend(line);
        Ok(())
    }
}

/// Record the old values of all steps before any of them is done: doing one may change another.
fn record(
    host: &impl Host,
    steps: &[(&Change, &Step)],
    recorded: &mut Vec<JournalStep>,
    applied: &mut Applied,
) -> Result<(), ApplyError> {
    let made: Vec<&str> = steps
        .iter()
        .filter(|(_, step)| matches!(step.place, Place::Directory { .. }))
        .filter_map(|(_, step)| step.place.path())
        .collect();
    for (change, step) in steps {
        let old = match host.place(&step.place) {
            Ok(old) => old,
            Err(why) if step.optional && step.needed() => {
                applied.cannot.push(PlaceNote { place: step.place.clone(), why: why.to_string() });
                continue;
            }
            Err(why) => {
                let (change, place) = (change.id.clone(), step.place.clone());
                return Err(ApplyError::Unread { change, place, why: why.to_string() });
            }
        };
        let mut new = step.new.clone().filter(|_| step.needed());
        if let (Some(old), Some(wanted)) = (&old, &new)
            && step.form.same(old, wanted)
        {
            applied.already += 1;
            new = None;
        }
        if old.is_none() && !may_be_made(&step.place, &made) {
            if new.is_some() {
                applied.gone.push(step.place.clone());
            }
            continue;
        }
        recorded.push(JournalStep {
            number: recorded.len(),
            change: change.id.clone(),
            place: step.place.clone(),
            form: step.form.clone(),
            old,
            new,
            optional: step.optional,
            then: step.then,
        });
    }
    Ok(())
}

fn may_be_made(place: &Place, made: &[&str]) -> bool {
    match place {
        Place::Config { .. } | Place::Directory { .. } | Place::Latency => true,
        Place::File { path } => made
            .iter()
            .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))),
        Place::Nic { .. } | Place::Service { .. } | Place::Thread { .. } => false,
    }
}

fn carry_out(
    host: &mut impl Host,
    writer: &mut Writer<'_, impl Store>,
    step: &JournalStep,
    applied: &mut Applied,
) -> Result<(), ApplyError> {
    let outcome = attempt(host, step);
    writer.mark(&Mark::Done { number: step.number, outcome: outcome.clone() })?;
    let place = step.place.clone();
    match outcome {
        Outcome::Took => applied.took += 1,
        Outcome::Differs(read) => {
            let wanted = step.new.clone().unwrap_or_default();
            let why = format!(
                "wanted {}, reads {}: {}",
                step.form.shown(&wanted),
                step.form.shown(&read),
                step.form.why_not(&wanted, &read)
            );
            applied.differs.push(PlaceNote { place, why });
        }
        Outcome::Cannot(why) => applied.cannot.push(PlaceNote { place, why }),
        Outcome::Failed(why) => {
            let done = applied.took + applied.differs.len();
            return Err(ApplyError::Failed { change: step.change.clone(), place, why, done });
        }
    }
    Ok(())
}

fn attempt(host: &mut impl Host, step: &JournalStep) -> Outcome {
    let Some(new) = &step.new else { return Outcome::Took };
    let written = host.write(&step.place, Some(&step.form.written(new)));
    if let Err(why) = written {
        let why = why.to_string();
        return if step.optional { Outcome::Cannot(why) } else { Outcome::Failed(why) };
    }
    if let Some(command) = step.then
        && let Err(why) = host.run(command)
    {
        return Outcome::Failed(format!("{command}: {why}"));
    }
    match host.place(&step.place) {
        Ok(Some(read)) if step.form.same(&read, new) => Outcome::Took,
        Ok(read) => Outcome::Differs(read.unwrap_or_default()),
        // It was written, and cannot be read back: `verify` reports that.
        Err(_) => Outcome::Took,
    }
}
