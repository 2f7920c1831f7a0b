//! Reflectors: requests of round trips come in, replies go out.
//!
//! `tailtrim_roundtrip::reflect` makes the replies and decides about requests; this module has the ways by which
//! requests come: [`SocketReflector`], and in front of it [`XdpReflector`], which answers most of them within the
//! kernel; [`FrameReflector`] on an AF_XDP port; and [`NatReflector`], where rules of the kernel answer.

mod departures;
mod frames;
mod listening;
mod nat;
mod privilege;
mod regular;
mod socket;
mod xdp;

pub use frames::FrameReflector;
pub use listening::Listening;
pub use nat::NatReflector;
pub use privilege::{Capabilities, GivenUp, Left, Mask, Nobody, PrivilegeError, Way, give_up};
pub use socket::SocketReflector;
pub use xdp::{XdpReflector, XdpWork};

use crate::socket::SocketError;
use serde::Serialize;
use std::hash::{BuildHasher, Hasher, RandomState};
use tailtrim_ports::keeper::Failure;
use tailtrim_ports::port::PortError;
use tailtrim_roundtrip::reflect::{Clock, Counters};
use tailtrim_sys::clock;
use tailtrim_wire::tlv::StampedBy;

/// Result of a reflector's work.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Reflected {
    /// All requests, those that a program in the kernel answered or refused among them.
    #[serde(flatten)]
    pub counters: Counters,
    /// Requests that the kernel dropped because the process did not fetch them in time; `None` if it does not tell.
    pub dropped: Option<u64>,
    /// Requests without a stamp of the kernel, for which T2 is when they were fetched.
    pub unstamped: u64,
    /// Requests whose stamp by the NIC was more than a millisecond from the kernel's: its clock is not kept on
    /// UTC, so T2 is the kernel's.
    pub foreign_clock: u64,
    /// The XDP program's part of it, and the requests that it left to the sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpWork>,
}

/// Why a reflector cannot begin, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectError {
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// An AF_XDP port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Not one of the addresses could be used.
    #[error("no address to listen on: {0}")]
    Nowhere(String),
    /// Programs and rules are an interface's.
    #[error("this mode needs the interface that receives the requests")]
    NoInterface,
    /// Address translation changes nothing in a packet but its addresses.
    #[error("mode nat reflects UDP echo only")]
    OnlyEcho,
    /// The rules.
    #[error("{what}: {why}")]
    Nat {
        /// The operation.
        what: String,
        /// The error text of nft or of the kernel.
        why: String,
    },
    /// The XDP program.
    #[error("{interface}: {what}: {source}{}", xdp::hint(what, source))]
    Xdp {
        /// Where.
        interface: String,
        /// The operation.
        what: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl From<Failure> for ReflectError {
    fn from(Failure { what, why }: Failure) -> Self {
        Self::Nat { what, why }
    }
}

/// The present state of the stamps' clock, and the source of T3.
fn clock_now() -> Clock {
    Clock { bound_ns: clock::synchronized_within_ns(), sent_by: StampedBy::Software }
}

/// A number that cannot be guessed from outside.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
