//! Round trips: what probes and replies look like on the wire, and how a request becomes its reply.
//!
//! 1. [`time`] and [`ErrorEstimate`]: stamps as packets carry them,
//! 2. [`EchoProbe`], [`icmp`], [`stamp`] with [`tlv`], [`twamp`]: the packets,
//! 3. [`reflect::Reflector`]: a request in, its reply in the same bytes, or the reason why there is none; [`frame`] for
//!    who sees whole frames,
//! 4. [`Prober`]: a probe out, and what a reply says,
//! 5. [`Session`]: replies matched to probes, everything counted; [`Split`]: the parts of a round trip.
//!
//! Everything that comes from the network is bytes of anybody: nothing in here panics on them, and a reply has
//! as many bytes as its request, by construction.

mod echo;
pub mod frame;
pub mod icmp;
mod key;
mod outcome;
mod prober;
pub mod reflect;
mod session;
mod split;
pub mod stamp;
pub mod time;
pub mod tlv;
pub mod twamp;

pub use echo::{ECHO_PROBE_LEN, ECHO_PROBE_MAGIC, EchoProbe};
pub use key::{HMAC_LEN, Key, KeyError};
pub use outcome::{Counts, Ending, FollowUps, LostWays, Obstacle, Probes, Replies};
pub use prober::{Answer, NoAnswer, Prober, Protocol};
pub use session::{Kind, Passed, Patience, Reply, RoundTrip, Session};
pub use split::{Level, OneWay, Part, Parts, Split, Stamps};
pub use time::{ErrorEstimate, TimeFormat};

/// The bytes from `at` on, where a caller has checked that they are there; zeros where not.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// Writes where there is room; a caller has checked that.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
