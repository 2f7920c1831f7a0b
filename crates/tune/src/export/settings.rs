//! Settings of a plan, by kind.

use crate::change::{Change, Step, StepState, When};
use crate::place::{NicGroup, Place};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// The values that a plan sets at run time.
#[derive(Debug, Default)]
pub(super) struct Settings<'a> {
    /// Name, value, the change's title.
    pub(super) sysctls: Vec<(String, String, &'a str)>,
    /// Path and value of files in `/sys`.
    pub(super) files: Vec<(&'a str, String)>,
    /// Settings by interface and group.
    pub(super) nics: BTreeMap<(&'a str, NicGroup), Vec<(&'a str, String)>>,
    /// Services that are stopped.
    pub(super) stopped: Vec<&'a str>,
    /// The exit latency that is held, in µs.
    pub(super) latency: Option<String>,
    /// Changes that are none of these.
    pub(super) others: Vec<&'a str>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        let mut settings = Self::default();
        for change in plan.changes.iter().filter(|change| change.when == When::Now) {
            // Numbers of interrupts and threads, and folders, are this host's and this day's.
            if matches!(
                change.id.as_str(),
                "irq.affinity" | "isolation.kthreads" | "isolation.cpuset" | "cache.ways"
            ) {
                settings.others.push(&change.id);
                continue;
            }
            for step in change.steps.iter().filter(|step| is_set(step)) {
                settings.take(change, step);
            }
        }
        settings
    }

    fn take(&mut self, change: &'a Change, step: &'a Step) {
        let Some(new) = &step.new else { return };
        let value = new.shown();
        let value = if value.contains('[') { step.form.shown(new) } else { value };
        match &step.place {
            Place::File { path } => match step.place.sysctl() {
                Some(name) => self.sysctls.push((name, value, &change.title)),
                None => self.files.push((path, value)),
            },
            Place::Nic { interface, group, key } => {
                self.nics.entry((interface, *group)).or_default().push((key, value));
            }
            Place::Service { name } => self.stopped.push(name),
            Place::Latency => self.latency = Some(value),
            Place::Config { .. } | Place::Directory { .. } | Place::Thread { .. } => {}
        }
    }
}

fn is_set(step: &Step) -> bool {
    matches!(step.state, StepState::Needed | StepState::Already)
}

/// A comment that names what is not in a file; nothing where all is.
pub(super) fn left_out(names: &[&str], tool: &str) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(
        "# Not in here, since {tool} has no word for it: {}.\n# `tailtrim tune apply` does it.\n",
        names.join(", ")
    )
}
