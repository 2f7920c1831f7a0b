//! Frames that an interface loses before any tap can see them.

use crate::port::PortName;
use std::collections::BTreeMap;
use tailtrim_sys::{interface, netlink};

/// The driver's counters of lost frames, from some time on.
#[derive(Debug)]
pub struct InterfaceLosses {
    interface: String,
    before: BTreeMap<&'static str, u64>,
}

impl InterfaceLosses {
    /// Of the interface of a port. A kernel that tells nothing has no counters.
    #[must_use]
    pub fn since_now(port: &PortName) -> Self {
        Self { interface: port.interface.clone(), before: counts(&port.interface) }
    }

    /// Counters that have risen, by how much.
    #[must_use]
    pub fn so_far(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = counts(&self.interface);
        for (name, before) in &self.before {
            counts.entry(name).and_modify(|count| *count = count.saturating_sub(*before));
        }
        counts.retain(|_, count| *count > 0);
        counts
    }
}

fn counts(name: &str) -> BTreeMap<&'static str, u64> {
    let told = interface::index(name).and_then(netlink::lost);
    told.map(BTreeMap::from).unwrap_or_default()
}
