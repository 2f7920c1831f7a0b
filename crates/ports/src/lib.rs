//! Ports, and the traffic that goes through them.
#![forbid(unsafe_code)]

// Test files in tests/it name this crate as its users do.
#[cfg(test)]
extern crate self as tailtrim_ports;

pub mod bpf;
pub mod capture;
pub mod claims;
pub mod disturb;
pub mod dpdk;
pub mod forward;
pub mod generate;
pub mod grace;
pub mod keeper;
#[cfg(test)]
#[path = "../tests/it/memory.rs"]
mod memory;
pub mod port;
mod work;
