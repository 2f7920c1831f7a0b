//! Offsets of the layers of a frame. Everything that looks for a header in a frame asks here.

mod encapsulation;
mod gre;
mod layers;
mod link;
mod plain;
mod tunnel;
mod walk;

pub use encapsulation::Encapsulation;
pub use layers::{Layers, Transport, layers};
pub use link::{Link, is_vlan};
pub use plain::{is_bare, plain_datagram};
pub use tunnel::is_bare_datagram;
pub use walk::{Place, Walk};

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
