//! Reflecting by an XDP program, within the kernel: no wake-up, no copy, no system call.

mod load;
mod shared;
#[cfg(test)]
mod tests;

use super::ReflectError;
use super::listening::Listening;
use aya::Ebpf;
use aya::programs::{Xdp, XdpMode};
use serde::Serialize;
use shared::Shared;
use std::io;
use std::net::IpAddr;
use tailtrim_ports::bpf::{self, Requests};
use tailtrim_roundtrip::reflect::{Counters, Policy};
use tailtrim_sys::{addresses, interface};

/// The program at its interface, until this is dropped.
#[derive(Debug)]
pub struct XdpReflector {
    _loaded: Ebpf,
    shared: Shared,
    native: bool,
}

/// Mode and counters of the program, and the requests that it left to the sockets.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct XdpWork {
    /// Whether it runs within the driver.
    pub native: bool,
    /// Requests with TLVs, keys or sessions, or of the wrong length: the sockets answered or refused those.
    pub passed: u64,
    /// The program's own counters.
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
        let requests = requests(name, listening)?;
        let mut loaded = load::load(&requests, policy, native)
            .map_err(|source| failed("loading the XDP program", source))?;
        let shared = Shared::of(&mut loaded)
            .map_err(|source| failed("sharing numbers with the XDP program", source))?;
        shared.set_clock();
        let mode = if native { XdpMode::Driver } else { XdpMode::Skb };
        bpf::program::<Xdp>(&mut loaded, load::PROGRAM)
            .and_then(|program| program.attach_to_if_index(index, mode).map_err(bpf::said))
            .map_err(|source| failed("attaching the XDP program", source))?;
        Ok(Self { _loaded: loaded, shared, native })
    }

    /// Whether the interface's driver can send frames back by itself (`XDP_TX`). A veth pair wakes the other end only
    /// where that has a program, too (`veth_xdp_flush` of the kernel), and otherwise drops without saying so: there the
    /// program runs behind the driver.
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

    /// The program's work so far.
    #[must_use]
    pub fn work(&self) -> XdpWork {
        let Self { native, shared, .. } = self;
        XdpWork { native: *native, passed: shared.passed(), counters: shared.counters() }
    }
}

/// The given addresses, or those that the interface has now.
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

/// The interface's requests: addresses and ports.
pub(super) fn requests(name: &str, listening: &Listening) -> Result<Requests, ReflectError> {
    let ours = ours(name, listening)?;
    interface::mac(name)
        .and_then(|mac| Requests::new(listening.services.clone(), ours, mac))
        .map_err(|source| ReflectError::Xdp {
            interface: name.to_owned(),
            what: "asking for its addresses",
            source,
        })
}

pub(super) fn hint(what: &str, error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => " (XDP programs need root; sockets do not)",
        Some(libc::EBUSY | libc::EEXIST) if what.contains("attaching") => {
            " (another XDP program is there: ip link set dev INTERFACE xdp off)"
        }
        Some(libc::EOPNOTSUPP) if what.contains("attaching") => {
            " (this driver has no XDP of its own: attach it generically)"
        }
        None if what.contains("loading") && error.kind() != io::ErrorKind::Unsupported => {
            " (Linux 6.1 or later is needed, for CLOCK_TAI in programs; sockets work without)"
        }
        _ => "",
    }
}
