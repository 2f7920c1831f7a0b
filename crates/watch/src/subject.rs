//! Subject of minutes: a target that is probed, or a device that is tapped.

use crate::objective::Objective;
use crate::plan::TargetPlan;
use serde::Serialize;
use tailtrim_roundtrip::StampLevel;

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

/// Description of a target, for those who read its minutes.
#[derive(Serialize)]
struct Described<'a> {
    schema: &'a str,
    name: &'a str,
    address: &'a str,
    protocol: &'a str,
    interval_ns: u64,
    timeout_ns: i64,
    stamps: StampLevel,
    objectives: Vec<String>,
}

/// The description of a target, as JSON.
pub(crate) fn described(plan: &TargetPlan) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec_pretty(&Described {
        schema: SCHEMA,
        name: &plan.name,
        address: &plan.address,
        protocol: plan.protocol.name(),
        interval_ns: plan.interval_ns,
        timeout_ns: plan.timeout_ns,
        stamps: plan.level,
        objectives: plan.objectives.iter().map(ToString::to_string).collect(),
    })
}
