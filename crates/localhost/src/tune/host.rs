//! Interface to a host whose settings a plan changes.

use tailtrim_tune::{Command, Place, Places};
use thiserror::Error;

/// A host whose places can be set.
pub trait Host: Places {
    /// Set a place; `None` removes its value.
    ///
    /// # Errors
    ///
    /// The host's answer. The value may have changed nevertheless.
    fn write(&mut self, place: &Place, value: Option<&[u8]>) -> Result<(), Refused>;

    /// Run a program and wait for it.
    ///
    /// # Errors
    ///
    /// It is not there, or it failed.
    fn run(&mut self, command: Command) -> Result<(), Refused>;

    /// Whether files read as the bytes that were written to them, as in a tree of ordinary files. A kernel's file that
    /// reads `always [madvise] never` takes `madvise`.
    fn keeps_bytes(&self) -> bool {
        false
    }
}

/// A host's answer to something that it did not do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    pub(crate) fn from(error: &std::io::Error) -> Self {
        let hint = match error.raw_os_error() {
            Some(libc::EIO) => " (the kernel manages it itself)",
            Some(libc::EPERM | libc::EACCES) => {
                " (not root, locked down, or not to be changed at all)"
            }
            Some(libc::EINVAL) => " (not a value that this kernel takes)",
            Some(libc::EBUSY) => " (in use)",
            _ => "",
        };
        Self(format!("{error}{hint}"))
    }
}
