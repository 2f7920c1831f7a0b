//! Plans carried out on a host, and taken back.
//!
//! [`apply`] records the old value of everything in a journal before it changes anything; [`revert`] restores it from
//! wherever a process died; [`inspect`] compares wanted values with the present ones. All three go through [`Host`] and
//! [`Store`], so that tests can refuse and kill at any operation.

mod apply;
mod host;
mod inspect;
mod latency;
mod live;
mod nic;
mod revert;
mod state;
mod store;
mod threads;

pub use apply::{Applied, ApplyError, PlaceNote, apply};
pub use host::{Host, Refused};
pub use inspect::{Finding, Standing, inspect};
pub use latency::hold as hold_latency;
pub use live::Live;
pub use revert::{RevertError, Reverted, revert};
pub use state::{Problem, StateError};
pub use store::{Folder, Locked, Store};

use tailtrim_tune::{Begin, FORMAT};

/// The first record of a journal that begins now.
#[must_use]
pub fn begin(boot_id: String, profile: &str, arguments: Vec<String>) -> Begin {
    let now_ns = tailtrim_sys::clock::realtime_ns().max(0);
    Begin {
        format: FORMAT,
        id: format!("{:x}", now_ns / 1_000_000),
        at_unix_s: (now_ns / 1_000_000_000) as u64,
        boot_id,
        profile: profile.to_owned(),
        arguments,
    }
}

/// Seconds since 1970.
#[must_use]
pub fn now_unix_s() -> u64 {
    (tailtrim_sys::clock::realtime_ns().max(0) / 1_000_000_000) as u64
}
