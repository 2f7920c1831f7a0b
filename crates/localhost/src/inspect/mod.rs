//! The host as a tree of files: the running one, one below a folder, one captured earlier.
//!
//! Nothing here disturbs the CPUs that work: no model-specific registers, no `/dev/cpu`, no frequencies of other CPUs.
//! Facts that are not files on a host are put below `/tailtrim/` (see [`tailtrim_host::paths`]).

mod archive;
mod ethtool;
mod live;
mod log;
mod observe;
mod programs;

pub use archive::{ArchiveError, capture, open, read_capture};
pub use live::Host;
pub use observe::{Observed, observe};
