//! Exit codes, the same for every verb and for the Python command line, and the errors that end a verb.

use crate::hints::Hint;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use tailtrim_ports::port::PortError;
use tailtrim_tracer::trace::TraceError;

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

/// End of a verb: its exit code, or an error that is still to be printed.
pub(crate) type Outcome = Result<Exit, Failure>;

/// An error that ends a verb, a hint for the user, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn new(error: impl Display, exit: Exit) -> Self {
        Self { error: error.to_string(), hint: None, exit }
    }

    /// The request or its input is wrong.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self::new(error, Exit::Usage)
    }

    /// This host cannot do it.
    pub(crate) fn impossible(error: impl Display) -> Self {
        Self::new(error, Exit::Impossible)
    }

    /// It worked, and then something broke.
    pub(crate) fn disturbed(error: impl Display) -> Self {
        Self::new(error, Exit::Disturbed)
    }

    /// An error with the hint that helps.
    pub(crate) fn hinted(error: &impl Hint, exit: Exit) -> Self {
        Self::new(error, exit).hint(error.hint())
    }

    pub(crate) fn hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        let opens = matches!(error, PortError::Open { .. });
        Self::new(error, if opens { Exit::Impossible } else { Exit::Disturbed })
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let exit = if error.is_impossible() { Exit::Impossible } else { Exit::Disturbed };
        Self::new(error, exit)
    }
}

/// A result whose error ends a verb.
pub(crate) trait OrFail<T, E: Display>: Sized {
    /// The error with this exit code.
    fn or_fail(self, exit: Exit) -> Result<T, Failure>;

    /// The error of writing a file.
    fn or_unwritable(self, path: &Path, exit: Exit) -> Result<T, Failure>;

    /// The error and its hint.
    fn or_hint(self, exit: Exit) -> Result<T, Failure>
    where
        E: Hint;
}

impl<T, E: Display> OrFail<T, E> for Result<T, E> {
    fn or_fail(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(error, exit))
    }

    fn or_unwritable(self, path: &Path, exit: Exit) -> Result<T, Failure> {
        let told = |error| format!("{}: cannot be written: {error}", path.display());
        self.map_err(|error| Failure::new(told(error), exit))
    }

    fn or_hint(self, exit: Exit) -> Result<T, Failure>
    where
        E: Hint,
    {
        self.map_err(|error| Failure::hinted(&error, exit))
    }
}
