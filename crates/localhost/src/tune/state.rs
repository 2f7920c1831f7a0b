//! The folder of the journal. Root carries out the steps of a journal, so no other user may be able to write one: owner
//! and mode of the folder and of each file are checked on the opened ones, before anything is read, and no symbolic
//! link is followed.

use rustix::fs::{self, AtFlags, Mode, OFlags, RawMode, ResolveFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

const FOLDER: RawMode = 0o700;
const FILE: RawMode = 0o600;

/// A folder, or a file in it, that cannot be used.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct StateError {
    /// The folder or file.
    pub path: PathBuf,
    /// Why.
    pub problem: Problem,
}

/// Why a folder or file cannot be used.
#[derive(Debug, Error)]
pub enum Problem {
    /// Others may have written it.
    #[error("{0}; the folder was not read and nothing was changed")]
    Untrusted(String),
    /// The system's answer.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for Problem {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// A folder that only root, or the caller, can write to.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
    folder: File,
}

impl StateFolder {
    /// Open a folder; `None` where there is none.
    ///
    /// # Errors
    ///
    /// It belongs to another user, others can write to it, it is a symbolic link, or it cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let told = |problem| StateError { path: path.to_owned(), problem };
        match fs::open(path, flags, Mode::empty()) {
            Ok(folder) => {
                let folder = Self { path: path.to_owned(), folder: folder.into() };
                trusted(&folder.folder, fs::FileType::Directory).map_err(told)?;
                Ok(Some(folder))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(told(not(path, "a folder"))),
            Err(errno) => Err(told(errno.into())),
        }
    }

    /// Open a folder, which is made where it is not there: for its owner alone, whatever the umask is.
    ///
    /// # Errors
    ///
    /// As for [`StateFolder::open`], or it cannot be made.
    pub(super) fn make(path: &Path) -> Result<Self, StateError> {
        let told = |problem| StateError { path: path.to_owned(), problem };
        make_all(path).map_err(|error| told(error.into()))?;
        Self::open(path)?.ok_or_else(|| told(Errno::NOENT.into()))
    }

    /// Open a file that is there; `None` where none is.
    ///
    /// # Errors
    ///
    /// Users other than root and the caller can write to it, it is not a regular file, or it cannot be opened.
    pub(super) fn file(&self, name: &str, flags: OFlags) -> Result<Option<File>, StateError> {
        match self.opened(name, flags) {
            Ok(file) => self.checked(name, file).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.refused(name, errno)),
        }
    }

    /// Open a file, which is made where it is not there.
    ///
    /// # Errors
    ///
    /// As for [`StateFolder::file`].
    pub(super) fn file_or_new(&self, name: &str) -> Result<File, StateError> {
        loop {
            if let Some(file) = self.file(name, OFlags::RDWR)? {
                return Ok(file);
            }
            match self.opened(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                Ok(file) => return self.owned(name, file),
                // Made by another process meanwhile.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.refused(name, errno)),
            }
        }
    }

    /// Make a file anew. One that a killed process left is removed.
    ///
    /// # Errors
    ///
    /// As for [`StateFolder::file`], also of the one that is removed.
    pub(super) fn new_file(&self, name: &str) -> Result<File, StateError> {
        if self.file(name, OFlags::RDWR)?.is_some() {
            self.remove(name)?;
        }
        match self.opened(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => self.owned(name, file),
            Err(errno) => Err(self.refused(name, errno)),
        }
    }

    /// Give a file another name. A file that has that name already is replaced.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), StateError> {
        fs::renameat(&self.folder, from, &self.folder, to)
            .map_err(|errno| self.refused(from, errno))?;
        self.sync()
    }

    /// Remove a file.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub(super) fn remove(&self, name: &str) -> Result<(), StateError> {
        fs::unlinkat(&self.folder, name, AtFlags::empty())
            .map_err(|errno| self.refused(name, errno))
    }

    /// Tell of an operation on a file.
    pub(super) fn told<T>(&self, name: &str, result: io::Result<T>) -> Result<T, StateError> {
        result.map_err(|error| StateError { path: self.path.join(name), problem: error.into() })
    }

    /// A name is on the disk only once its folder is.
    fn sync(&self) -> Result<(), StateError> {
        self.told("", self.folder.sync_all())
    }

    fn opened(&self, name: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from(FILE) } else { Mode::empty() };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let opened = match fs::openat2(&self.folder, name, flags, mode, resolve) {
            // Kernels before 5.6, and filters that do not know it: all names are names of this folder, for which
            // O_NOFOLLOW says the same.
            Err(Errno::NOSYS | Errno::PERM) => fs::openat(&self.folder, name, flags, mode),
            opened => opened,
        };
        opened.map(File::from)
    }

    /// A file that was made: the umask may have taken bits from its mode.
    fn owned(&self, name: &str, file: File) -> Result<File, StateError> {
        self.told(name, file.set_permissions(Permissions::from_mode(FILE)))?;
        Ok(file)
    }

    fn checked(&self, name: &str, file: File) -> Result<File, StateError> {
        let told = |problem| StateError { path: self.path.join(name), problem };
        trusted(&file, fs::FileType::RegularFile).map_err(told)?;
        Ok(file)
    }

    fn refused(&self, name: &str, errno: Errno) -> StateError {
        let path = self.path.join(name);
        // NXIO: a pipe without a reader, or a socket.
        let problem = match errno {
            Errno::LOOP | Errno::NXIO | Errno::ISDIR => not(&path, "a file"),
            errno => errno.into(),
        };
        StateError { path, problem }
    }
}

/// Make a folder and those above it that are not there.
fn make_all(path: &Path) -> io::Result<()> {
    let made = match DirBuilder::new().mode(FOLDER).create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            make_all(above.ok_or(error)?)?;
            DirBuilder::new().mode(FOLDER).create(path)
        }
        made => made,
    };
    match made {
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(FOLDER)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn trusted(file: &File, wanted: fs::FileType) -> Result<(), Problem> {
    let is = fs::fstat(file)?;
    let refused = |why: String| Err(Problem::Untrusted(why));
    if fs::FileType::from_raw_mode(is.st_mode) != wanted {
        return refused("expected a file, not a folder, pipe or device".to_owned());
    }
    let caller = rustix::process::geteuid().as_raw();
    if is.st_uid != 0 && is.st_uid != caller {
        return refused(format!(
            "belongs to user {}, expected root or the caller (user {caller})",
            is.st_uid
        ));
    }
    let mode = Mode::from_raw_mode(is.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return refused(format!(
            "other users may write to it (mode {:04o}), expected its owner alone",
            mode.bits()
        ));
    }
    Ok(())
}

fn not(path: &Path, expected: &str) -> Problem {
    let link = path.is_symlink();
    let found = if link { "is a symbolic link" } else { "is something else" };
    Problem::Untrusted(format!("{found}, expected {expected}"))
}
