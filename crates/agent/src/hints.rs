//! Hints for users: the libraries report the error; here is the option or verb of this program that helps.

use crate::called::name;
use std::fmt::Display;
use tailtrim_audit::{IntentError, SelectionError};
use tailtrim_localhost::inspect::ArchiveError;
use tailtrim_localhost::tune::{ApplyError, Locked, Problem, RevertError, StateError};
use tailtrim_probes::reflect::{PrivilegeError, ReflectError};
use tailtrim_tail::analysis::OrderError;
use tailtrim_tail::capture::{CaptureError, Remedy};
use tailtrim_tail::summary::counted;
use tailtrim_tune::{Cut, DivisionError, JournalError, Manager, PlanError};

/// An error that may have a hint.
pub(crate) trait Hint: Display {
    /// The hint; `None` where nothing helps, or where the error says enough.
    fn hint(&self) -> Option<String>;
}

impl Hint for IntentError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoSuchCpus(..) => "name others with --isolate or --housekeeping".to_owned(),
            Self::Both(cpus) => {
                format!("take {} out: not both --isolate and --housekeeping", cpus.named())
            }
            Self::NothingLeft(_) => "give fewer CPUs to --isolate".to_owned(),
            Self::NoSuchInterface(..) => "name another with --interface".to_owned(),
        })
    }
}

impl Hint for OrderError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Same { .. } | Self::Negative { median_ns: 1.., .. } => {
                "use --allow-negative to analyse them as they are".to_owned()
            }
            Self::TwoDirections { .. } => {
                "use --direction forward or --direction reverse".to_owned()
            }
            Self::Negative { .. } => {
                "give the ingress capture first, correct the clocks with --clock-fit, or use \
                 --allow-negative to analyse them as they are"
                    .to_owned()
            }
        })
    }
}

impl Hint for SelectionError {
    fn hint(&self) -> Option<String> {
        Some("--list shows all".to_owned())
    }
}

impl Hint for ArchiveError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { .. } | Self::NoHost { .. } => {
                Some(format!("{} audit --capture FILE makes a capture", name()))
            }
            Self::Write { .. } => None,
        }
    }
}

impl Hint for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoCpus(_) => None,
            Self::Division(error) => error.hint(),
            Self::NoInterface { .. } => Some("name another with --interface".to_owned()),
            Self::NoChange(_) => {
                Some("--only and --without take names of the plan's first column".to_owned())
            }
            Self::NoGrub(_) => Some("use --boot print and set the words by hand".to_owned()),
            Self::TakeOver { .. } => Some("leave it out of --take-over".to_owned()),
        }
    }
}

impl Hint for DivisionError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotOnline { part: "housekeeping", .. } => {
                "name others with --housekeeping".to_owned()
            }
            Self::NotOnline { .. } => "name others with --isolate".to_owned(),
            Self::BootCpu | Self::NoHousekeeping => "give fewer CPUs to --isolate".to_owned(),
            Self::Both(_) => "a CPU is in --isolate or in --housekeeping".to_owned(),
            Self::NoneIsolated(..) | Self::OneCore(_) => "name CPUs with --isolate".to_owned(),
            Self::Torn { both, .. } => format!("--isolate {both}, or --smt off"),
        })
    }
}

impl Hint for Cut {
    fn hint(&self) -> Option<String> {
        Some(format!(
            "taskset -c {} starts it there; --without {} takes the change out",
            self.kept, self.change
        ))
    }
}

/// Advice about a manager that would undo a plan.
pub(crate) fn manager(manager: &Manager) -> String {
    format!(
        "--take-over {} stops it first and starts it again on revert; or take the change out with --without",
        manager.service
    )
}

impl Hint for ApplyError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Pending { .. } => {
                let tune = format!("{} tune", name());
                Some(format!("`{tune} status` shows it, `{tune} revert` reverts it"))
            }
            Self::Failed { .. } => Some(format!("`{} tune revert` restores what was set", name())),
            Self::Journal(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for Locked {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Held { .. } => None,
            Self::Unusable(error) => error.hint(),
        }
    }
}

impl Hint for StateError {
    fn hint(&self) -> Option<String> {
        Some(match self.problem {
            Problem::Untrusted(_) => {
                "revert writes what the journal says: if this journal is yours, give it to root (chown) and remove \
                 the write permission of others (chmod go-w); --state names another folder"
                    .to_owned()
            }
            Problem::System(_) => {
                "tune changes the whole host: run it as root, or name another folder by --state"
                    .to_owned()
            }
        })
    }
}

impl Hint for JournalError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Format { .. } => None,
            _ => Some(
                "restore the file from a copy; or set the values by hand (its lines hold the old ones, \
                 `tailtrim-agent tune plan` shows the current ones), and remove it"
                    .to_owned(),
            ),
        }
    }
}

impl Hint for RevertError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Record(_) => None,
        }
    }
}

impl Hint for ReflectError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoInterface => Some("name the interface: --interface eth1".to_owned()),
            Self::OnlyEcho => {
                Some("use --echo PORT without --stamp, --twamp and --key-file".to_owned())
            }
            // Sockets work where programs cannot be loaded, and a driver without XDP can use the kernel's generic mode.
            Self::Xdp { .. } => Some(
                "--attach generic works with every driver, --mode socket without programs"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl Hint for PrivilegeError {
    fn hint(&self) -> Option<String> {
        let is_root = matches!(self, Self::Root { .. });
        is_root.then(|| "--user 0 stays root of a user namespace".to_owned())
    }
}

impl Hint for CaptureError {
    fn hint(&self) -> Option<String> {
        self.remedy().map(|remedy| match remedy {
            Remedy::Salvage { packets: Some(packets) } => {
                format!("use --salvage to analyse the {} before the damage", counted(packets, "packet"))
            }
            Remedy::Salvage { packets: None } => {
                "use --salvage to analyse what could be read".to_owned()
            }
            Remedy::Nanoseconds { packets } => format!(
                "--stamps nanoseconds if these are nanoseconds under the magic number of microseconds; if the capture is \
                 damaged, --salvage to analyse the {} before",
                counted(packets, "packet")
            ),
            Remedy::Sort => {
                "the capture's clock was set back: use --clock-fit to correct it; or sort the file (reordercap) if \
                 only that is disordered"
                    .to_owned()
            }
        })
    }
}
