//! Offsets of the layers of a frame. Everything that looks for a header in a frame asks here.

mod link;
mod plain;
mod walk;

pub use link::Link;
pub use plain::plain_datagram;
pub use walk::{Layers, Transport, VXLAN_PORT, inner, layers, within};
