//! Comparison of set values with the present ones.

use serde::Serialize;
use tailtrim_tune::{Journal, JournalStep, Outcome, Place, Places, Value};

/// State of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As wanted.
    InPlace,
    /// Something else.
    Differs,
    /// The kernel does not allow to change it.
    Cannot,
    /// It was not tried yet, or it failed.
    NotDone,
    /// Its place ended with the host's last start, a thread or a device.
    Gone,
    /// It cannot be read.
    Unknown,
}

/// One value, as wanted and as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The change that it is part of.
    pub change: String,
    /// Where.
    pub place: Place,
    /// The wanted value, for people.
    pub wanted: String,
    /// The value before.
    pub before: String,
    /// The present value.
    pub reads: String,
    /// Its state.
    pub standing: Standing,
    /// Reason why it is not as wanted.
    pub why: Option<String>,
}

/// Compare the values in a journal with the present ones.
#[must_use]
pub fn inspect(host: &impl Places, journal: &Journal, boot_id: &str) -> Vec<Finding> {
    let restarted = journal.begin.boot_id != boot_id;
    let wanted = journal.steps.iter().filter(|step| step.new.is_some());
    wanted.map(|step| look(host, journal, step, restarted)).collect()
}

fn look(host: &impl Places, journal: &Journal, step: &JournalStep, restarted: bool) -> Finding {
    let shown = |value: &Option<Value>| match value {
        Some(value) => step.form.shown(value),
        None => "not there".to_owned(),
    };
    let now = host.place(&step.place);
    let (standing, why) = standing(journal, step, &now, restarted);
    Finding {
        change: step.change.clone(),
        place: step.place.clone(),
        wanted: shown(&step.new),
        before: shown(&step.old),
        reads: now.as_ref().map_or_else(|_| "unknown".to_owned(), shown),
        standing,
        why,
    }
}

fn standing(
    journal: &Journal,
    step: &JournalStep,
    now: &Result<Option<Value>, tailtrim_host::Unread>,
    restarted: bool,
) -> (Standing, Option<String>) {
    if restarted && !step.place.survives_restart() {
        return (Standing::Gone, Some("the host was rebooted since".to_owned()));
    }
    let outcome = journal.outcomes.get(&step.number);
    let wanted = step.new.clone().unwrap_or_default();
    match now {
        Ok(Some(now)) if step.form.same(now, &wanted) => return (Standing::InPlace, None),
        Err(why) => return (Standing::Unknown, Some(why.to_string())),
        Ok(_) => {}
    }
    match (outcome, now) {
        (Some(Outcome::Cannot(why)), _) => (Standing::Cannot, Some(why.clone())),
        (Some(Outcome::Failed(why)), _) => (Standing::NotDone, Some(why.clone())),
        (None, _) => (Standing::NotDone, Some("not reached".to_owned())),
        (_, Ok(Some(now))) => {
            let stuck = matches!(outcome, Some(Outcome::Took));
            let why = if stuck {
                "it was as wanted when it was set; another program has changed it since".to_owned()
            } else {
                step.form.why_not(&wanted, now)
            };
            (Standing::Differs, Some(why))
        }
        _ => (Standing::Gone, Some("the thread, device or process has ended".to_owned())),
    }
}
