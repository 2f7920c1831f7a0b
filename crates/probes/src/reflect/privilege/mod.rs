//! Giving up privileges: root and capabilities until everything is open, and then only as much as answering needs.
//!
//! In this order, since capabilities belong to threads and only root may empty the bounding set: everything is
//! opened, [`give_up`] is called, other threads are started, [`GivenUp::confine`] is called.

mod calls;
mod left;

pub use calls::Way;
pub use left::{Capabilities, Left, Mask};

use left::Threads;
use rustix::thread::CapabilitySet;
use std::io;
use tailtrim_sys::capabilities;
use tailtrim_sys::process;

/// User and group that a reflector takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nobody {
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

impl Default for Nobody {
    /// The user nobody, 65534 on every Linux: the number that the kernel itself shows for users that it cannot map.
    fn default() -> Self {
        Self { user: 65_534, group: 65_534 }
    }
}

/// Privileges that cannot be given up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// Root.
    #[error(
        "giving up root for user {}:{}: {source} (a user namespace may lack that user)",
        nobody.user, nobody.group
    )]
    Root {
        /// The new user and group.
        nobody: Nobody,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another step.
    #[error("{what}: {source}")]
    Step {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Every step succeeded, and yet the kernel shows remaining privileges.
    #[error("a thread still has {what} after everything was given up, expected none: {left:?}")]
    Left {
        /// The kind of privilege.
        what: &'static str,
        /// All remaining privileges.
        left: Box<Left>,
    },
}

/// Privileges that were given up, for good.
#[derive(Debug)]
pub struct GivenUp {
    root: bool,
    stays_root: bool,
    /// Reason why the bounding set is unchanged.
    bounding: Option<String>,
}

/// Gives up root (for user 0 it stays), all groups of root, and every capability, for good. To be called by the only
/// thread that there is: threads that are started afterwards have no privileges either. An ordinary user stays the
/// same.
///
/// # Errors
/// [`PrivilegeError`]: the caller should end, since privileges that were to be given up remain.
pub fn give_up(nobody: Nobody) -> Result<GivenUp, PrivilegeError> {
    let failed = |what| move |source| PrivilegeError::Step { what, source };
    // Holds for all programs that it executes, too: no way back.
    capabilities::never_gain().map_err(failed("having programs gain no privileges"))?;
    let bounding = match capabilities::empty_bounding_set(CapabilitySet::empty()) {
        Ok(()) => None,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(
            "the bounding set: only CAP_SETPCAP may empty it; it has no effect, since no program that is executed \
             gains privileges"
                .to_owned(),
        ),
        Err(source) => return Err(failed("emptying the bounding set")(source)),
    };
    let root = process::is_root() && nobody.user != 0;
    if root {
        process::become_user(nobody.user, nobody.group)
            .map_err(|source| PrivilegeError::Root { nobody, source })?;
    }
    capabilities::keep(CapabilitySet::empty()).map_err(failed("giving up capabilities"))?;
    Ok(GivenUp { root, stays_root: nobody.user == 0, bounding })
}

impl GivenUp {
    /// Whether this process was root and no longer is.
    #[must_use]
    pub fn root(&self) -> bool {
        self.root
    }

    /// Keeps all threads to the system calls that they need for answering in this mode, and reads back their remaining
    /// privileges. No thread can be started afterwards.
    ///
    /// # Errors
    /// [`PrivilegeError::Left`] where privileges remain that should not. A kernel without seccomp is not an error:
    /// [`Left::kept`] names it.
    pub fn confine(self, way: Way) -> Result<Left, PrivilegeError> {
        let failed = |what| move |source| PrivilegeError::Step { what, source };
        let reading = "reading back what is left of privileges";
        let threads = Threads::open().map_err(failed(reading))?;
        let unfiltered = match calls::restrict(way) {
            Ok(()) => None,
            Err(error) if is_missing(&error) => {
                Some(format!("all system calls: this kernel does not filter them ({error})"))
            }
            Err(source) => return Err(failed("filtering system calls")(source)),
        };
        let mut left = threads.read().map_err(failed(reading))?;
        if let Some(what) = self.wrongly(&left, unfiltered.is_none()) {
            return Err(PrivilegeError::Left { what, left: Box::new(left) });
        }
        // An empty set needs no permission to empty it.
        let bounding = self.bounding.filter(|_| left.capabilities.bounding.0 != 0);
        left.kept = bounding.into_iter().chain(unfiltered).collect();
        Ok(left)
    }

    /// Kind of a privilege that remains and should not.
    fn wrongly(&self, left: &Left, is_filtered: bool) -> Option<&'static str> {
        let sets = &left.capabilities;
        let usable = sets.effective.0 | sets.permitted.0 | sets.inheritable.0 | sets.ambient.0;
        let each = [
            (usable != 0, "capabilities"),
            (sets.bounding.0 != 0 && self.bounding.is_none(), "a bounding set of capabilities"),
            (left.users.contains(&0) && !self.stays_root, "user 0"),
            (!left.no_new_privileges, "the right to gain privileges"),
            (!left.system_calls_filtered && is_filtered, "all system calls"),
        ];
        each.into_iter().find_map(|(is_left, what)| is_left.then_some(what))
    }
}

/// Whether the kernel has no filters of system calls (before Linux 4.17 not such as are asked for), or tailtrim none
/// for this architecture.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_has_left_by_mistake_is_named() {
        let given_up = GivenUp { root: true, stays_root: false, bounding: None };
        let clean = Left {
            users: [65_534].into(),
            no_new_privileges: true,
            system_calls_filtered: true,
            ..Left::default()
        };
        assert_eq!(given_up.wrongly(&clean, true), None);
        let wrong = |change: &dyn Fn(&mut Left)| {
            let mut left = clean.clone();
            change(&mut left);
            given_up.wrongly(&left, true)
        };
        let capabilities = Some("capabilities");
        assert_eq!(wrong(&|left| left.capabilities.effective.0 = 1), capabilities);
        assert_eq!(wrong(&|left| left.capabilities.permitted.0 = 1), capabilities);
        assert_eq!(wrong(&|left| left.capabilities.inheritable.0 = 1 << 40), capabilities);
        assert_eq!(wrong(&|left| left.capabilities.ambient.0 = 1), capabilities);
        let bounding = wrong(&|left| left.capabilities.bounding.0 = 1);
        assert_eq!(bounding, Some("a bounding set of capabilities"));
        assert_eq!(wrong(&|left| left.users.extend([0])), Some("user 0"));
        let gains = wrong(&|left| left.no_new_privileges = false);
        assert_eq!(gains, Some("the right to gain privileges"));
        let unfiltered = wrong(&|left| left.system_calls_filtered = false);
        assert_eq!(unfiltered, Some("all system calls"));
    }

    #[test]
    fn what_cannot_be_given_up_is_no_mistake() {
        let bounding = Some("no permission".to_owned());
        let given_up = GivenUp { root: false, stays_root: true, bounding };
        let mut left = Left { users: [0].into(), no_new_privileges: true, ..Left::default() };
        left.capabilities.bounding.0 = 1;
        assert_eq!(given_up.wrongly(&left, false), None);
    }
}
