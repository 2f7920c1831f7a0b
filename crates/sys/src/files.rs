//! Files that take each other's place.

use rustix::fs::{self, CWD, RenameFlags};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Lets two files or folders of one file system have each other's name, at once.
///
/// # Errors
/// One of them is missing, or the file system cannot do that.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Waits until all that was written to the file system of a file is on disk, by whomever.
pub fn sync_all_of(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}
