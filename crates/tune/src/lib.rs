//! Changes to a host for the sake of its tail, and the journal by which they are taken back.
//!
//! 1. a [`Request`] says which CPUs and interfaces the workload is to have, and by which [`Profile`],
//! 2. [`divide`] gives each CPU to the host, to a virtual machine's system or to the application,
//! 3. [`plan`] looks at the host and lists each [`Change`] with its reason, cost and source,
//! 4. a [`Journal`] keeps the old value of everything that is changed,
//! 5. [`export`] says the same in the language of other tools.
//!
//! Nothing here writes: the `localhost` crate carries plans out, and takes them back.

#![forbid(unsafe_code)]

mod allowed_places;
mod catalogue;
mod change;
mod command;
mod division;
pub mod export;
mod form;
mod grub;
mod host_steps;
mod journal;
mod managers;
mod place;
mod plan;
mod request;

pub use change::{Change, Step, StepState, When};
pub use command::Command;
pub use division::{Division, DivisionError, divide};
pub use form::Form;
pub use journal::{Begin, FORMAT, Journal, JournalError, JournalStep, Mark, Outcome};
pub use managers::Manager;
pub use place::{NicGroup, Place, Places, Value};
pub use plan::{Absent, Cut, Plan, PlanError, plan};
pub use request::{Boot, HugePages, Profile, Request, Smt, Turbo};
pub use tailtrim_host::Workload;

/// The changes that answer a check of the audit: id, what it does, when it takes effect.
pub fn answers(check: &str) -> impl Iterator<Item = (&'static str, &'static str, When)> + use<'_> {
    let concern = move |item: &&catalogue::CatalogueChange| item.checks.contains(&check);
    catalogue::all().filter(concern).map(|item| (item.id, item.title, item.method.when()))
}
