//! Reflecting by the kernel's own address translation: no program of ours sees a packet.
//!
//! Only echo can be done so. The rules are in a table of their own. It takes privileges to set up and to remove, so a
//! privileged helper process removes it after this one has ended. The table's name has its owner's process ID: if the
//! helper was killed, too, the next start of tailtrim removes the table.

mod command;
mod owner;
mod ruleset;
mod table;

use super::listening::Listening;
use super::{ReflectError, Reflected};
use ruleset::Rules;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use table::Table;
use tailtrim_ports::keeper::{Failure, Keeper};
use tailtrim_roundtrip::reflect::{Counters, Policy, Refusal, Service};
use tailtrim_sys::{addresses, process};

/// Interval at which `stopped` is looked at.
const WAIT: Duration = Duration::from_millis(50);
/// Interval at which the counters are read.
const LOOK: Duration = Duration::from_secs(1);

/// The rules, until this is dropped.
#[derive(Debug)]
pub struct NatReflector {
    keeper: Keeper,
    left_out: Vec<String>,
    removed: Vec<String>,
    bound: Vec<(IpAddr, u16)>,
}

impl NatReflector {
    /// Removes the tables of killed processes, and sets up the rules. Needs root, but not after that. To be called
    /// before other threads are started.
    ///
    /// # Errors
    /// [`ReflectError::Nat`], [`ReflectError::NoInterface`], and [`ReflectError::OnlyEcho`].
    pub fn set_up(listening: &Listening, policy: &Policy) -> Result<Self, ReflectError> {
        let interface = listening.device.as_deref().ok_or(ReflectError::NoInterface)?;
        if policy.key.is_some() || listening.services.iter().any(|(s, _)| *s != Service::Echo) {
            return Err(ReflectError::OnlyEcho);
        }
        let failed = Failure::of;
        if !process::is_root() {
            let why = io::ErrorKind::PermissionDenied.into();
            return Err(failed("setting up rules")(why).into());
        }
        let mut ours = listening.addresses.clone();
        if ours.is_empty() {
            ours = addresses::of_interface(interface)
                .map_err(failed("asking for the interface's addresses"))?;
        }
        let mut left_out = Vec::new();
        if !owner::forwards_v6() {
            let why = "this host does not forward IPv6 (sysctl net.ipv6.conf.all.forwarding)";
            left_out = ours.iter().filter(|a| a.is_ipv6()).map(|a| format!("{a}: {why}")).collect();
            ours.retain(IpAddr::is_ipv4);
        }
        if ours.is_empty() {
            let why = io::Error::other(format!("none that can be used {}", left_out.join("; ")));
            return Err(failed("looking for the interface's addresses")(why).into());
        }
        let ports: Vec<u16> = listening.services.iter().map(|(_, port)| *port).collect();
        let rules = Rules {
            // The helper process writes the owner's name, and finds out whether forwarding is on.
            table: "",
            interface,
            turns_forwarding_on: false,
            addresses: &ours,
            ports: &ports,
            policy,
            // Zone 0 is the default, which all other connections have.
            zone: (std::process::id() % 65_535 + 1) as u16,
        };
        let (removed, keeper) = Keeper::start(|| Table::set_up(&rules))?;
        let bound = ours.iter().flat_map(|a| ports.iter().map(|port| (*a, *port))).collect();
        Ok(Self { keeper, left_out, removed, bound })
    }

    /// Addresses that were left out, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Tables of killed processes that were removed first.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Addresses and ports.
    #[must_use]
    pub fn bound(&self) -> &[(IpAddr, u16)] {
        &self.bound
    }

    /// Lets the kernel reflect until `stopped`; `seen` has the number of requests so far.
    ///
    /// # Errors
    /// [`ReflectError::Nat`] when the rules were removed by another program.
    #[expect(clippy::disallowed_methods, reason = "this crate reads clocks")]
    pub fn run(
        mut self,
        stopped: &AtomicBool,
        seen: &AtomicU64,
    ) -> Result<Reflected, ReflectError> {
        let mut looked = Instant::now();
        while !stopped.load(Ordering::Acquire) {
            std::thread::sleep(WAIT);
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                seen.store(self.counters()?.received, Ordering::Relaxed);
            }
        }
        // The kernel answers at once: nothing waits for a process.
        Ok(Reflected { counters: self.counters()?, dropped: Some(0), ..Reflected::default() })
    }

    /// Reads the packet counters of the rules. Requests that were neither refused nor sent were dropped by other rules,
    /// or for want of a connection entry.
    fn counters(&mut self) -> Result<Counters, ReflectError> {
        let listed = self.keeper.look()?;
        let count = |name: &str| listed.get(name).copied();
        let received = count(ruleset::RECEIVED).ok_or_else(|| ReflectError::Nat {
            what: "reading the counters".to_owned(),
            why: "the rules are gone, probably flushed by another program".to_owned(),
        })?;
        let mut counters = Counters::default();
        for (refusal, name) in [
            (Refusal::SourcePort, ruleset::SOURCE_PORT),
            (Refusal::Address, ruleset::ADDRESS),
            (Refusal::NotAllowed, ruleset::NOT_ALLOWED),
            (Refusal::Rate, ruleset::RATE),
            (Refusal::Cookie, ruleset::COOKIE),
            (Refusal::Loop, ruleset::LOOP),
        ] {
            counters.refused.add(refusal, count(name).unwrap_or(0));
        }
        counters.received = received;
        let reflected = count(ruleset::REFLECTED).unwrap_or(0);
        // The rules are read one after the other while packets come.
        let answered = received.saturating_sub(counters.refused.total());
        counters.reflected = reflected.min(answered);
        counters.unsent = answered - counters.reflected;
        Ok(counters)
    }
}
