//! Packets as bytes: the layers of a frame, what it says of itself, and what goes into it.
//!
//! 1. [`frame`] finds the layers of a frame, [`flow`] its addresses and ports, [`filter`] chooses by them, [`label`] its flow and sequence number, [`exchange`] the request that it
//!    answers, [`checksum`] what guards it,
//! 2. [`traffic`] is what a generator sends: schedules, probes, frames,
//! 3. [`time`], [`EchoProbe`], [`icmp`], [`stamp`] with [`tlv`], [`twamp`] and [`Key`] are the packets of round trips.
//!
//! Everything that comes from the network is untrusted bytes: nothing in here panics on them.
#![forbid(unsafe_code)]

pub mod bytes;
pub mod checksum;
pub mod dscp;
pub mod duration;
mod echo;
pub mod exchange;
pub mod filter;
pub mod flow;
pub mod frame;
pub mod icmp;
mod key;
pub mod label;
pub mod stamp;
pub mod time;
pub mod tlv;
pub mod traffic;
pub mod twamp;

pub use echo::{ECHO_PROBE_LEN, ECHO_PROBE_MAGIC, EchoProbe, parse_cookie};
pub use key::{HMAC_LEN, Key, KeyError};
pub use time::{ErrorEstimate, TimeFormat};
