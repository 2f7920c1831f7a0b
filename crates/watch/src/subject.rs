//! Subject of minutes: a target that is probed, or a device that is tapped.

use crate::objective::Objective;
use crate::plan::TargetPlan;

/// Name and version of what is written.
pub(crate) const SCHEMA: &str = "tailtrim.watch/1";

/// The part of a plan that both have.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) objectives: Vec<Objective>,
    /// A later reply is late; a packet that leaves later is beyond the window.
    pub(crate) timeout_ns: i64,
}

impl Subject {
    pub(crate) fn of(plan: &TargetPlan) -> Self {
        let TargetPlan { name, objectives, timeout_ns, .. } = plan;
        Self { name: name.clone(), objectives: objectives.clone(), timeout_ns: *timeout_ns }
    }
}
