//! Huge pages.

use super::{HostContext, Steps, some};
use crate::change::StepState;
use crate::form::Form;

pub(crate) fn huge_pages(context: &HostContext<'_>) -> Steps {
    let Some(pages) = context.request.huge_pages else { return Ok(Vec::new()) };
    let size = format!("hugepages/hugepages-{}kB/nr_hugepages", pages.kib);
    let path = match context.division.node {
        Some(node) => format!("/sys/devices/system/node/node{node}/{size}"),
        None => format!("/sys/kernel/mm/{size}"),
    };
    let otherwise = format!("this CPU or kernel has no huge pages of {}: no {path}", pages.size());
    let mut step = context.file(path, Form::Number, &pages.count.to_string());
    if let Some(step) = &mut step {
        let old = step.old.as_ref().and_then(|old| old.shown().parse::<u64>().ok());
        if old.is_some_and(|old| old >= pages.count) {
            step.new.clone_from(&step.old);
            step.state = StepState::Already;
        }
    }
    some(step.into_iter().collect(), &otherwise)
}
