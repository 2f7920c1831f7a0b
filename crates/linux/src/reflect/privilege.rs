//! Root until the sockets are bound, nobody from then on.

use crate::sys::process;
use std::io;

/// Whom a reflector becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nobody {
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

impl Default for Nobody {
    /// The user nobody, 65534 on every Linux: what the kernel itself shows for users that it cannot map.
    fn default() -> Self {
        Self { user: 65_534, group: 65_534 }
    }
}

/// Root that cannot be given up.
#[derive(Debug, thiserror::Error)]
#[error(
    "giving up root for user {}:{}: {source} (a user namespace may lack that user)",
    nobody.user, nobody.group
)]
pub struct PrivilegeError {
    nobody: Nobody,
    source: io::Error,
}

/// Gives up root, all groups and every capability for good, in all threads. Returns whether there was anything
/// to give up: an ordinary user stays who it is.
///
/// # Errors
/// [`PrivilegeError`]: whoever asked for that does not want to go on as root.
pub fn drop_root(nobody: Nobody) -> Result<bool, PrivilegeError> {
    let failed = |source| PrivilegeError { nobody, source };
    // Whatever it executes, or would: no way back.
    process::no_new_privileges().map_err(failed)?;
    if !process::is_root() || nobody.user == 0 {
        return Ok(false);
    }
    process::become_user(nobody.user, nobody.group).map_err(failed)?;
    if process::is_root() {
        return Err(failed(io::ErrorKind::PermissionDenied.into()));
    }
    Ok(true)
}
