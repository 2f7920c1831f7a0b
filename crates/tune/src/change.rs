//! One thing to change, and why.

use super::command::Command;
use super::form::Form;
use super::place::{Place, Value};
use serde::Serialize;
use tailtrim_host::Cpus;

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// As soon as it is applied.
    Now,
    /// When the host starts the next time.
    NextBoot,
    /// When it is set by hand in the firmware or in the application: shown, not done.
    ByHand,
}

/// One value of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Where it stands.
    pub place: Place,
    /// Form in which it is written.
    pub form: Form,
    /// Present value; `None` where there is none.
    pub old: Option<Value>,
    /// Wanted value.
    pub new: Option<Value>,
    /// StepState of the value before anything is done.
    pub state: StepState,
    /// That the kernel refuses it is an answer, not a failure: interrupts that it manages itself, threads
    /// that it has bound.
    pub optional: bool,
    /// Program to run once it is written, and again once it is restored.
    pub then: Option<Command>,
}

/// StepState of a step before anything is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// The value is another.
    Needed,
    /// The value is as wanted.
    Already,
    /// It is not set, but setting another value may change it: restored with that.
    Remembered,
    /// It is printed, not written: the operator did not ask for drop-ins.
    #[serde(rename = "told")]
    Printed,
    /// The value could not be read, for this reason: nothing is changed that cannot be restored.
    Unknown(String),
}

impl StepState {
    /// Why a step cannot be planned, if so.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            _ => None,
        }
    }
}

impl Step {
    /// A step to a value, in a place that was looked at.
    #[must_use]
    pub fn new(place: Place, form: Form, old: Option<Value>, new: impl Into<Value>) -> Self {
        let new = new.into();
        let already = old.as_ref().is_some_and(|old| form.same(old, &new));
        let state = if already { StepState::Already } else { StepState::Needed };
        Self { place, form, old, new: Some(new), state, optional: false, then: None }
    }

    /// A value that another step may change on its way.
    #[must_use]
    pub fn remembered(place: Place, form: Form, old: Option<Value>) -> Self {
        let state = StepState::Remembered;
        Self { place, form, old, new: None, state, optional: true, then: None }
    }

    /// The same step, of which a refusal is an answer.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Whether it is to be carried out.
    #[must_use]
    pub fn needed(&self) -> bool {
        self.state == StepState::Needed
    }
}

/// One thing to change: what, why, at what price, from whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its name.
    pub id: String,
    /// The checks of the audit that it answers.
    pub checks: Vec<String>,
    /// Effect, in a few words.
    pub title: String,
    /// Reason: the latency that it saves.
    pub reason: String,
    /// Cost.
    pub cost: String,
    /// Source of the recommendation.
    pub source: String,
    /// When it takes effect.
    pub when: When,
    /// The values to set.
    pub steps: Vec<Step>,
    /// The words for the boot line.
    pub words: Vec<String>,
    /// Warnings for this host: a drop-in with another value, a word that is there already.
    pub notes: Vec<String>,
    /// CPUs that no other program may use once it is applied.
    pub takes: Cpus,
}

impl Change {
    /// Whether anything is left to do.
    #[must_use]
    pub fn needed(&self) -> bool {
        match self.when {
            When::Now => self.steps.iter().any(Step::needed),
            When::NextBoot | When::ByHand => true,
        }
    }

    /// Whether a word of the operator's means this change.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.id == name || self.checks.iter().any(|check| check.eq_ignore_ascii_case(name))
    }
}
