//! Frames: where the layers of a frame begin.

mod link;
mod walk;

pub use link::Link;
pub(crate) use walk::{Layers, Transport, VXLAN_PORT, inner, layers, within};
