//! Reflecting by an XDP program, within the kernel: no wake-up, no copy, no system call.

mod answer;
mod assembly;
mod judge;
mod program;
mod shared;

use super::ReflectError;
use super::listening::Listening;
use crate::sys::bpf::{Instruction, Link, Map, Program};
use crate::sys::{addresses, interface};
use program::Task;
use serde::Serialize;
use shared::Shared;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use tailtrim_roundtrip::reflect::{Counters, Policy};

/// Clients whose limit is kept.
const CLIENTS: u32 = 1 << 16;

/// The program at its interface, until this is dropped.
#[derive(Debug)]
pub struct XdpReflector {
    _link: Link,
    _clients: Map,
    shared: Shared,
    native: bool,
}

/// How the program runs, and what it left to the sockets.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct XdpWork {
    /// Whether it runs within the driver.
    pub native: bool,
    /// Requests with TLVs, keys or sessions, or of the wrong length: the sockets answered or refused those.
    pub passed: u64,
    /// What the program itself did.
    pub counters: Counters,
}

impl XdpReflector {
    /// Attaches the program to the interface of `listening`: `native` within its driver, otherwise behind.
    ///
    /// Requests to the interface's addresses of now are answered, if none are given.
    ///
    /// # Errors
    /// [`ReflectError::Xdp`].
    pub fn attach(
        listening: &Listening,
        policy: &Policy,
        native: bool,
    ) -> Result<Self, ReflectError> {
        let Some(name) = &listening.device else {
            return Err(ReflectError::NoInterface);
        };
        let failed = |what, source| ReflectError::Xdp { interface: name.clone(), what, source };
        let index = interface::index(name).map_err(|source| failed("no such interface", source))?;
        let ours = ours(name, listening)?;
        let shared = Shared::new().map_err(|source| failed("creating a map of numbers", source))?;
        shared.set_clock();
        let clients = Map::recent(16, CLIENTS)
            .map_err(|source| failed("creating a map of clients", source))?;
        let link = load(listening, policy, &ours, &shared, &clients, native)
            .map_err(|source| failed("loading the XDP program", source))
            .and_then(|program| {
                Link::xdp(&program, index, native)
                    .map_err(|source| failed("attaching the XDP program", source))
            })?;
        Ok(Self { _link: link, _clients: clients, shared, native })
    }

    /// Whether an interface is one whose driver sends back by itself. A veth pair wakes
    /// the other end only where that has a program, too (`veth_xdp_flush` of the kernel), and otherwise drops
    /// without saying so: there the program runs behind the driver.
    #[must_use]
    pub fn prefers_native(interface: &str) -> bool {
        interface::has_hardware(interface).unwrap_or(false)
    }

    /// To be called about once a second: the clock may have been set.
    pub fn refresh_clock(&self) {
        self.shared.set_clock();
    }

    /// Requests that ended in the program, so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.shared.seen()
    }

    /// What it did so far.
    #[must_use]
    pub fn work(&self) -> XdpWork {
        let Self { native, shared, .. } = self;
        XdpWork { native: *native, passed: shared.passed(), counters: shared.counters() }
    }
}

/// The addresses that are asked for, or those that the interface has now.
fn ours(name: &str, listening: &Listening) -> Result<Vec<IpAddr>, ReflectError> {
    let interface = name.to_owned();
    let failed = |source| ReflectError::Xdp { interface, what: "asking for its addresses", source };
    if !listening.addresses.is_empty() {
        return Ok(listening.addresses.clone());
    }
    match addresses::of_interface(name) {
        Ok(found) if found.is_empty() => Err(failed(io::Error::other("it has none"))),
        other => other.map_err(failed),
    }
}

/// What passes everything but requests, and the addresses to which these are.
pub(super) fn requests(
    name: &str,
    listening: &Listening,
) -> Result<(Vec<Instruction>, Vec<IpAddr>), ReflectError> {
    let ours = ours(name, listening)?;
    let filter = program::filter(&listening.services, &ours).ok_or_else(|| ReflectError::Xdp {
        interface: name.to_owned(),
        what: "making the XDP program",
        source: io::Error::other("too many ports or addresses for one program"),
    })?;
    Ok((filter, ours))
}

fn load(
    listening: &Listening,
    policy: &Policy,
    addresses: &[IpAddr],
    shared: &Shared,
    clients: &Map,
    native: bool,
) -> io::Result<Program> {
    let task = Task {
        services: &listening.services,
        addresses,
        allowed: &policy.allowed,
        limit: policy.limit,
        class: policy.class,
        stamp: policy.key.is_none() && !policy.stateful,
        twamp: !policy.stateful,
        generic: !native,
        shared: shared.0.as_fd().as_raw_fd(),
        clients: clients.as_fd().as_raw_fd(),
    };
    let too_large = || io::Error::other("too many ports, addresses or prefixes for one program");
    let text = program::text(&task).ok_or_else(too_large)?;
    Program::xdp(&text, false).map_err(|error| match error.raw_os_error() {
        // The verifier, not a lack of permission.
        Some(libc::EINVAL | libc::EACCES) => {
            let said = Program::why_not(&text, false);
            io::Error::new(error.kind(), format!("{error}: {said}"))
        }
        _ => error,
    })
}

pub(super) fn hint(what: &str, error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => " (XDP programs need root; sockets do not)",
        Some(libc::EBUSY | libc::EEXIST) if what.contains("attaching") => {
            " (another XDP program is there: ip link set dev IFACE xdp off)"
        }
        Some(libc::EOPNOTSUPP) if what.contains("attaching") => {
            " (this driver has no XDP of its own: attach it generically)"
        }
        None if what.contains("loading") => {
            " (Linux 6.1 or later is needed, for CLOCK_TAI in programs; sockets work without)"
        }
        _ => "",
    }
}
