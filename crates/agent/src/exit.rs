//! Exit codes, the same for every verb and for the Python command line.

use std::process::ExitCode;

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Success = 0,
    /// Done, and the answer is no: nothing matched.
    Negative = 1,
    /// The request or its input is wrong (clap uses the same for its own errors).
    Usage = 2,
    /// This host cannot do it: no permission, no such interface, a kernel that lacks something.
    Impossible = 3,
    /// It worked, and then something broke: an interface that went, a disk that is full.
    Disturbed = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
