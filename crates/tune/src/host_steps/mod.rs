//! From a change in the catalogue to steps on one host.

pub(crate) mod cpus;
pub(crate) mod isolation;
pub(crate) mod memory;
pub(crate) mod nics;
pub(crate) mod services;
pub(crate) mod words;

use super::change::{Step, StepState};
use super::division::Division;
use super::form::Form;
use super::place::{Place, Places, Value};
use super::request::{Boot, Request};
use tailtrim_host::{Cpus, Topology};

/// Steps; `Err` says why there are none, an empty list that none is asked for.
pub(crate) type Steps = Result<Vec<Step>, String>;

/// The host, and what is wanted of it.
pub(crate) struct HostContext<'a> {
    pub(crate) host: &'a dyn Places,
    pub(crate) topology: &'a Topology,
    pub(crate) division: &'a Division,
    pub(crate) request: &'a Request,
    /// The profile's value for the change.
    pub(crate) value: &'a str,
    /// `/boot/config-…` of the running kernel, where it can be read.
    pub(crate) config: Option<String>,
}

pub(crate) const CPUS: &str = "/sys/devices/system/cpu";

impl HostContext<'_> {
    /// A step for a place; `None` where there is no such place.
    pub(crate) fn look(&self, place: Place, form: Form, new: impl Into<Value>) -> Option<Step> {
        match self.host.place(&place) {
            Ok(Some(old)) => Some(Step::new(place, form, Some(old), new)),
            Ok(None) => None,
            Err(why) => {
                let mut step = Step::new(place, form, None, new);
                step.state = StepState::Unknown(why.to_string());
                Some(step)
            }
        }
    }

    /// A step for a file of the kernel.
    pub(crate) fn file(&self, path: impl Into<String>, form: Form, new: &str) -> Option<Step> {
        self.look(Place::file(path), form, new)
    }

    /// A step for a set of CPUs that is to lie within another: as it is where it does already.
    pub(crate) fn within(&self, path: String, form: Form, wanted: &Cpus) -> Option<Step> {
        let text = if form == Form::Mask { wanted.to_mask() } else { wanted.to_string() };
        let mut step = self.file(path, form, &text)?;
        let old = step.old.as_ref().and_then(|old| self.cpus(&step.form, old));
        if old.is_some_and(|old| old.is_subset(wanted)) {
            step.new.clone_from(&step.old);
            step.state = StepState::Already;
        }
        Some(step)
    }

    fn cpus(&self, form: &Form, value: &Value) -> Option<Cpus> {
        let text = value.shown();
        match form {
            Form::Mask => Cpus::from_mask(&text).ok(),
            _ => text.parse().ok(),
        }
    }

    /// A step for a file of ours, with its folder where that is not there either.
    pub(crate) fn drop_in(&self, folder: &str, name: &str, content: String) -> Vec<Step> {
        let path = format!("{folder}/{name}");
        let mut steps = Vec::new();
        if self.host.list(folder).is_err() {
            let place = Place::Directory { path: folder.to_owned() };
            steps.push(Step::new(place, Form::Bytes, None, ""));
        }
        let place = Place::Config { path };
        let old = self.host.place(&place).unwrap_or(None);
        steps.push(Step::new(place, Form::Bytes, old, content));
        if self.request.boot == Boot::Print {
            for step in &mut steps {
                step.state = StepState::Printed;
            }
        }
        steps
    }

    /// The CPUs whose power settings count: the isolated ones, all where none are.
    pub(crate) fn power_managed(&self) -> Cpus {
        let all = self.topology.online().minus(&self.division.offline);
        if self.division.isolated.is_empty() { all } else { self.division.isolated.clone() }
    }

    /// The host's CPUs, once some are isolated.
    pub(crate) fn housekeeping(&self) -> Result<&Cpus, String> {
        if self.division.isolated.is_empty() {
            return Err("no CPU is isolated".to_owned());
        }
        Ok(&self.division.housekeeping)
    }

    /// Whether the running kernel has an option; `None` where its configuration cannot be read.
    pub(crate) fn built_with(&self, option: &str) -> Option<bool> {
        let config = self.config.as_ref()?;
        let wanted = format!("CONFIG_{option}=");
        Some(config.lines().any(|line| {
            line.strip_prefix(&wanted).is_some_and(|value| matches!(value.trim(), "y" | "m"))
        }))
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.host.text(path).ok()
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        self.host.list(folder).unwrap_or_default()
    }
}

/// Whether the CPU says that a hypervisor is beneath it.
pub(crate) fn is_guest(context: &HostContext<'_>) -> bool {
    services::cpu_has(context, "flags", "hypervisor")
}

/// Steps, or that there is nothing of the kind.
pub(crate) fn some(steps: Vec<Step>, otherwise: &str) -> Steps {
    if steps.is_empty() { Err(otherwise.to_owned()) } else { Ok(steps) }
}
