//! All checks, by family.

mod audit;
mod boot;
mod cache;
mod clock;
mod dpdk;
mod firmware;
mod idle;
mod interrupts;
mod isolation;
mod kthreads;
mod memory;
mod network;
mod path;
mod power;
mod queues;
mod rcu;
mod scheduler;
mod security;
mod services;
mod tlb;
mod vectors;
mod virtualisation;
mod watchdog;

use super::check::Check;

/// All checks, in the order of their families.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let families: [&'static [Check]; 23] = [
        boot::CHECKS,
        isolation::CHECKS,
        rcu::CHECKS,
        kthreads::CHECKS,
        scheduler::CHECKS,
        watchdog::CHECKS,
        audit::CHECKS,
        interrupts::CHECKS,
        vectors::CHECKS,
        memory::CHECKS,
        tlb::CHECKS,
        idle::CHECKS,
        power::CHECKS,
        clock::CHECKS,
        firmware::CHECKS,
        security::CHECKS,
        network::CHECKS,
        queues::CHECKS,
        path::CHECKS,
        cache::CHECKS,
        virtualisation::CHECKS,
        dpdk::CHECKS,
        services::CHECKS,
    ];
    families.into_iter().flatten()
}

/// A check by its id, in capital letters or small ones.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id.eq_ignore_ascii_case(id))
}
