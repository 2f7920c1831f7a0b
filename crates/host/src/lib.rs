//! The host as text: CPU lists, boot lines, and the files that tell how a kernel is set.
//!
//! Nothing here reads a file. Whoever does hands over a [`Tree`]: the running host, a captured one, or
//! a few lines in a test, all looked at by the same code.
#![forbid(unsafe_code)]

pub mod boot;
pub mod cpus;
pub mod kernel;
pub mod limits;
pub mod paths;
pub mod process;
pub mod texts;
pub mod topology;
pub mod tree;
pub mod workload;

pub use boot::{BootLine, Word};
pub use cpus::Cpus;
pub use kernel::{KernelVersion, KernelVersionError};
pub use process::ProcessStat;
pub use topology::{Cpu, Topology};
pub use tree::{LOG, Memory, Tree, Unread};
pub use workload::Workload;
