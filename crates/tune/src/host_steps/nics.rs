//! Interfaces that were named.

use super::{HostContext, Steps, some};
use crate::change::{Step, StepState};
use crate::form::Form;
use crate::place::{NicGroup, Place};
use tailtrim_host::Workload;

/// Steps for each interface; without interfaces none is asked for.
fn each(
    context: &HostContext<'_>,
    group: NicGroup,
    settings: &[(&str, &str)],
    otherwise: &str,
) -> Steps {
    if context.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for interface in &context.request.nics {
        for (key, value) in settings {
            let place = Place::Nic { interface: interface.clone(), group, key: (*key).to_owned() };
            steps.extend(context.look(place, Form::Text, *value).map(Step::optional));
        }
    }
    some(steps, otherwise)
}

pub(crate) const COALESCING: [(&str, &str); 4] =
    [("adaptive-rx", "off"), ("adaptive-tx", "off"), ("rx-usecs", "0"), ("tx-usecs", "0")];

pub(crate) fn coalescing(context: &HostContext<'_>) -> Steps {
    each(context, NicGroup::Coalesce, &COALESCING, "the driver does not coalesce")
}

pub(crate) const OFFLOADS: [(&str, &str); 5] = [
    ("lro", "off"),
    ("rx-gro-hw", "off"),
    ("rx-gro-list", "off"),
    ("rx-udp-gro-forwarding", "off"),
    ("gro", "off"),
];

pub(crate) fn offloads(context: &HostContext<'_>) -> Steps {
    each(context, NicGroup::Feature, &OFFLOADS, "the driver has none of these offloads")
}

pub(crate) fn rings(context: &HostContext<'_>) -> Steps {
    let Some(size) = context.request.ring else { return Ok(Vec::new()) };
    let size = size.to_string();
    each(
        context,
        NicGroup::Ring,
        &[("rx", &size), ("tx", &size)],
        "the driver does not tell its rings",
    )
}

pub(crate) fn queues(context: &HostContext<'_>) -> Steps {
    let Some(queues) = context.request.queues else { return Ok(Vec::new()) };
    let queues = queues.to_string();
    each(context, NicGroup::Channels, &[("combined", &queues)], "the driver has no combined queues")
}

/// Negotiated flow control comes back with the link: the negotiation goes first.
pub(crate) const PAUSE: [(&str, &str); 3] = [("autoneg", "off"), ("rx", "off"), ("tx", "off")];

pub(crate) fn pause(context: &HostContext<'_>) -> Steps {
    each(context, NicGroup::Pause, &PAUSE, "the driver has no flow control")
}

pub(crate) const EEE: [(&str, &str); 1] = [("eee", "off")];

pub(crate) fn energy_efficient(context: &HostContext<'_>) -> Steps {
    each(context, NicGroup::Eee, &EEE, "the driver has no energy efficient Ethernet")
}

pub(crate) fn runtime_power(context: &HostContext<'_>) -> Steps {
    if context.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let of = |nic: &String| {
        context.file(format!("/sys/class/net/{nic}/device/power/control"), Form::Text, "on")
    };
    some(
        context.request.nics.iter().filter_map(of).collect(),
        "the interfaces are not backed by devices",
    )
}

pub(crate) fn receive_steering(context: &HostContext<'_>) -> Steps {
    if context.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let housekeeping = context.housekeeping()?;
    let of = |path| context.within(path, Form::Mask, housekeeping);
    let steps = queues_of(context, "rx-", "rps_cpus").into_iter().filter_map(of).collect();
    some(steps, "this kernel has no RPS")
}

pub(crate) fn transmit_steering(context: &HostContext<'_>) -> Steps {
    let cpus: Vec<u32> = context.division.application.iter().collect();
    if context.request.nics.is_empty() || context.request.workload != Workload::Interrupt {
        return Ok(Vec::new());
    }
    if cpus.is_empty() {
        return Err("no CPU is isolated".to_owned());
    }
    let mut steps = Vec::new();
    for (queue, path) in queues_of(context, "tx-", "xps_cpus").into_iter().enumerate() {
        let cpu: tailtrim_host::Cpus = [cpus[queue % cpus.len()]].into_iter().collect();
        let step = context.file(path, Form::Mask, &cpu.to_mask());
        // An interface with one queue has the file, and reading it fails.
        steps.extend(
            step.filter(|step| !matches!(step.state, StepState::Unknown(_))).map(Step::optional),
        );
    }
    some(steps, "the interfaces have one queue each, or the driver has no XPS")
}

fn queues_of(context: &HostContext<'_>, start: &str, file: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for nic in &context.request.nics {
        let folder = format!("/sys/class/net/{nic}/queues");
        let names = context.names(&folder).into_iter().filter(|name| name.starts_with(start));
        paths.extend(names.map(|name| format!("{folder}/{name}/{file}")));
    }
    paths
}
