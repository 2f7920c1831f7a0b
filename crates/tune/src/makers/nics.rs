//! Interfaces that were named.

use super::{Site, Steps, some};
use crate::change::{State, Step};
use crate::form::Form;
use crate::place::{NicGroup, Place};
use tailtrim_host::Workload;

/// Steps for each interface; without interfaces none is asked for.
fn each(site: &Site<'_>, group: NicGroup, settings: &[(&str, &str)], otherwise: &str) -> Steps {
    if site.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for interface in &site.request.nics {
        for (key, value) in settings {
            let place = Place::Nic { interface: interface.clone(), group, key: (*key).to_owned() };
            steps.extend(site.look(place, Form::Text, *value).map(Step::optional));
        }
    }
    some(steps, otherwise)
}

pub(crate) const COALESCING: [(&str, &str); 4] =
    [("adaptive-rx", "off"), ("adaptive-tx", "off"), ("rx-usecs", "0"), ("tx-usecs", "0")];

pub(crate) fn coalescing(site: &Site<'_>) -> Steps {
    each(site, NicGroup::Coalesce, &COALESCING, "the driver does not coalesce")
}

pub(crate) const OFFLOADS: [(&str, &str); 5] = [
    ("lro", "off"),
    ("rx-gro-hw", "off"),
    ("rx-gro-list", "off"),
    ("rx-udp-gro-forwarding", "off"),
    ("gro", "off"),
];

pub(crate) fn offloads(site: &Site<'_>) -> Steps {
    each(site, NicGroup::Feature, &OFFLOADS, "the driver has none of these offloads")
}

pub(crate) fn rings(site: &Site<'_>) -> Steps {
    let Some(size) = site.request.ring else { return Ok(Vec::new()) };
    let size = size.to_string();
    each(
        site,
        NicGroup::Ring,
        &[("rx", &size), ("tx", &size)],
        "the driver does not tell its rings",
    )
}

pub(crate) fn queues(site: &Site<'_>) -> Steps {
    let Some(queues) = site.request.queues else { return Ok(Vec::new()) };
    let queues = queues.to_string();
    each(site, NicGroup::Channels, &[("combined", &queues)], "the driver has no combined queues")
}

/// Negotiated flow control comes back with the link: the negotiation goes first.
pub(crate) const PAUSE: [(&str, &str); 3] = [("autoneg", "off"), ("rx", "off"), ("tx", "off")];

pub(crate) fn pause(site: &Site<'_>) -> Steps {
    each(site, NicGroup::Pause, &PAUSE, "the driver has no flow control")
}

pub(crate) const EEE: [(&str, &str); 1] = [("eee", "off")];

pub(crate) fn energy_efficient(site: &Site<'_>) -> Steps {
    each(site, NicGroup::Eee, &EEE, "the driver has no energy efficient Ethernet")
}

pub(crate) fn runtime_power(site: &Site<'_>) -> Steps {
    if site.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let of = |nic: &String| {
        site.file(format!("/sys/class/net/{nic}/device/power/control"), Form::Text, "on")
    };
    some(
        site.request.nics.iter().filter_map(of).collect(),
        "the interfaces are not backed by devices",
    )
}

pub(crate) fn receive_steering(site: &Site<'_>) -> Steps {
    if site.request.nics.is_empty() {
        return Ok(Vec::new());
    }
    let housekeeping = site.housekeeping()?;
    let of = |path| site.within(path, Form::Mask, housekeeping);
    let steps = queues_of(site, "rx-", "rps_cpus").into_iter().filter_map(of).collect();
    some(steps, "this kernel has no RPS")
}

pub(crate) fn transmit_steering(site: &Site<'_>) -> Steps {
    let cpus: Vec<u32> = site.division.application.iter().collect();
    if site.request.nics.is_empty() || site.request.workload != Workload::Interrupt {
        return Ok(Vec::new());
    }
    if cpus.is_empty() {
        return Err("no CPU is isolated".to_owned());
    }
    let mut steps = Vec::new();
    for (queue, path) in queues_of(site, "tx-", "xps_cpus").into_iter().enumerate() {
        let cpu: tailtrim_host::Cpus = [cpus[queue % cpus.len()]].into_iter().collect();
        let step = site.file(path, Form::Mask, &cpu.to_mask());
        // An interface with one queue has the file, and reading it fails.
        steps.extend(
            step.filter(|step| !matches!(step.state, State::Unknown(_))).map(Step::optional),
        );
    }
    some(steps, "the interfaces have one queue each, or the driver has no XPS")
}

fn queues_of(site: &Site<'_>, start: &str, file: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for nic in &site.request.nics {
        let folder = format!("/sys/class/net/{nic}/queues");
        let names = site.names(&folder).into_iter().filter(|name| name.starts_with(start));
        paths.extend(names.map(|name| format!("{folder}/{name}/{file}")));
    }
    paths
}
