//! Taking a plan back, from whatever state it is in.

use super::apply::PlaceNote;
use super::host::Host;
use super::state::StateError;
use super::store::Store;
use serde::Serialize;
use std::collections::BTreeSet;
use tailtrim_tune::{Command, Journal, JournalError, JournalStep, Mark, Outcome, Place, Value};
use thiserror::Error;

/// Restoring one value may change another that was restored before (a watchdog that is two in one): all values are
/// checked again until all are as they were.
const PASSES: usize = 4;

/// Result of taking a plan back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Values that were restored.
    pub restored: usize,
    /// Values that were as before.
    pub as_before: usize,
    /// Values that ended with the host's last start, a thread or a device.
    pub gone: Vec<PlaceNote>,
    /// Values that another program changed meanwhile; they were restored all the same.
    pub drifted: Vec<PlaceNote>,
    /// Values that could not be restored: the journal stays.
    pub left: Vec<PlaceNote>,
}

/// A plan that cannot be taken back.
#[derive(Debug, Error)]
pub enum RevertError {
    /// The journal cannot be read.
    #[error("{0}; nothing was restored, the journal was kept")]
    Journal(#[from] JournalError),
    /// The journal cannot be written.
    #[error(transparent)]
    Store(#[from] StateError),
    /// A record cannot be written down.
    #[error("a journal record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}

enum Restoring {
    AsBefore,
    Restored,
    Gone(String),
    Left(String),
}

/// Take back what is applied, in reverse order; `None` where nothing is applied.
///
/// `boot_id` is the kernel's name for the time since it was started: values of an earlier time ended with it.
///
/// # Errors
///
/// The journal cannot be read or written. Values that cannot be restored are listed in [`Reverted::left`].
pub fn revert(
    host: &mut impl Host,
    store: &mut impl Store,
    boot_id: &str,
) -> Result<Option<Reverted>, RevertError> {
    let Some(bytes) = store.load()? else { return Ok(None) };
    let journal = Journal::parse(&bytes)?;
    if journal.torn > 0 {
        store.cut(journal.whole)?;
    }
    let mut told = Reverted::default();
    if !journal.reverted {
        let restarted = journal.begin.boot_id != boot_id;
        drifts(host, &journal, restarted, &mut told);
        let restored = restore_all(host, &journal, restarted, &mut told);
        run_after(host, &journal, &restored, &mut told);
        if !told.left.is_empty() {
            return Ok(Some(told));
        }
        store.append(&Mark::Reverted.line()?)?;
    }
    store.retire(&journal.begin.id)?;
    Ok(Some(told))
}

/// Records values that are neither as before nor as they were set.
fn drifts(host: &impl Host, journal: &Journal, restarted: bool, told: &mut Reverted) {
    for step in &journal.steps {
        if restarted && !step.place.survives_restart() {
            continue;
        }
        let took = matches!(journal.outcomes.get(&step.number), Some(Outcome::Took));
        let (true, Ok(Some(now)), Some(new)) = (took, host.place(&step.place), &step.new) else {
            continue;
        };
        if step.old.as_ref() != Some(&now) && !step.form.same(&now, new) {
            let why =
                format!("was set to {}, and read {}", step.form.shown(new), step.form.shown(&now));
            told.drifted.push(PlaceNote { place: step.place.clone(), why });
        }
    }
}

/// Restore all values; return the numbers of those that were not as before.
fn restore_all(
    host: &mut impl Host,
    journal: &Journal,
    restarted: bool,
    told: &mut Reverted,
) -> BTreeSet<usize> {
    let mut restored = BTreeSet::new();
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let mut changed = false;
        (gone, left) = (Vec::new(), Vec::new());
        for step in journal.steps.iter().rev() {
            let place = step.place.clone();
            match restore(host, journal, step, restarted) {
                Restoring::AsBefore => {}
                Restoring::Restored => {
                    changed = true;
                    restored.insert(step.number);
                }
                Restoring::Gone(why) => gone.push(PlaceNote { place, why }),
                Restoring::Left(why) => left.push(PlaceNote { place, why }),
            }
        }
        if !changed && left.is_empty() {
            break;
        }
    }
    told.restored = restored.len();
    told.as_before = journal.steps.len().saturating_sub(restored.len() + gone.len() + left.len());
    told.gone = gone;
    told.left = left;
    restored
}

fn restore(
    host: &mut impl Host,
    journal: &Journal,
    step: &JournalStep,
    restarted: bool,
) -> Restoring {
    if restarted && !step.place.survives_restart() {
        return Restoring::Gone("the host was rebooted since".to_owned());
    }
    let now = match host.place(&step.place) {
        Ok(now) => now,
        Err(why) => return Restoring::Left(why.to_string()),
    };
    if now == step.old || goes_with_folder(journal, step) {
        return Restoring::AsBefore;
    }
    if now.is_none() && !matches!(step.place, Place::Config { .. } | Place::Directory { .. }) {
        return Restoring::Gone("no longer exists".to_owned());
    }
    let keeps_bytes = host.keeps_bytes();
    let written = |old: &Value| if keeps_bytes { old.0.clone() } else { step.form.written(old) };
    let bytes = step.old.as_ref().map(written);
    if let Err(why) = host.write(&step.place, bytes.as_deref()) {
        let refused = matches!(journal.outcomes.get(&step.number), Some(Outcome::Cannot(_)));
        let why = why.to_string();
        return if refused {
            Restoring::Gone(format!("as when it was tried: {why}"))
        } else {
            Restoring::Left(why)
        };
    }
    match host.place(&step.place) {
        Ok(read) if read == step.old => Restoring::Restored,
        Ok(read) => Restoring::Left(format!("was {}, reads {}", shown(&step.old), shown(&read))),
        Err(why) => Restoring::Left(why.to_string()),
    }
}

fn shown(value: &Option<Value>) -> String {
    value.as_ref().map_or_else(|| "not there".to_owned(), |value| format!("{:?}", value.shown()))
}

/// Whether a file ends with a directory that was made.
fn goes_with_folder(journal: &Journal, step: &JournalStep) -> bool {
    let (Place::File { path }, None) = (&step.place, &step.old) else { return false };
    journal.steps.iter().any(|other| match &other.place {
        Place::Directory { path: folder } => {
            path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
        _ => false,
    })
}

/// Runs the commands that apply restored files, such as the one for the boot loader's menu, once more.
///
/// Also where no record shows that the step was begun, but its value was another: the record may have been lost.
fn run_after(
    host: &mut impl Host,
    journal: &Journal,
    restored: &BTreeSet<usize>,
    told: &mut Reverted,
) {
    let changed = |step: &&JournalStep| {
        journal.started.contains(&step.number) || restored.contains(&step.number)
    };
    let commands: BTreeSet<(Command, &Place)> = journal
        .steps
        .iter()
        .filter(changed)
        .filter_map(|step| Some((step.then?, &step.place)))
        .collect();
    for (command, place) in commands {
        if let Err(why) = host.run(command) {
            let why = format!("{command}: {why}");
            told.left.push(PlaceNote { place: place.clone(), why });
        }
    }
}
