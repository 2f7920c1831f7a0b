//! Programs that are run once a file is written.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A program that a change runs. A journal has its name, never its arguments: who can change a journal cannot choose
/// what is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Debian's: writes the menu of GRUB.
    UpdateGrub,
    /// Writes the menu of GRUB where its files are named `grub2`.
    Grub2Mkconfig,
    /// Writes the menu of GRUB elsewhere.
    GrubMkconfig,
}

impl Command {
    /// The program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::UpdateGrub => "update-grub",
            Self::Grub2Mkconfig => "grub2-mkconfig",
            Self::GrubMkconfig => "grub-mkconfig",
        }
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::UpdateGrub => &[],
            Self::Grub2Mkconfig => &["-o", "/boot/grub2/grub.cfg"],
            Self::GrubMkconfig => &["-o", "/boot/grub/grub.cfg"],
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.program())
    }
}
