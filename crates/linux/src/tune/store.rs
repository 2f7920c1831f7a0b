//! Where the journal lies: a folder, locked by who works on it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The place of one journal. What an operation wrote is on the disk when it returns.
pub trait Store {
    /// Return the journal; `None` where there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn load(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Begin a journal: all of these bytes are there, or none.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn publish(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Write at its end. A process that dies meanwhile may leave a part.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Keep only so many bytes from the front.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn cut(&mut self, length: usize) -> Result<(), StoreError>;

    /// Put the journal away under another name: it is done with.
    ///
    /// # Errors
    ///
    /// It cannot be renamed.
    fn retire(&mut self, id: &str) -> Result<(), StoreError>;
}

/// A journal that cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub problem: io::Error,
}

/// A journal in a folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held as long as this lives.
    _lock: Option<File>,
}

/// A folder that somebody else works on, or that cannot be had.
#[derive(Debug, Error)]
pub enum Locked {
    /// Another process holds the lock.
    #[error("{}: another tailtrim-agent tune is at work here: wait until it has ended", path.display())]
    Held {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be made or opened.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        problem: io::Error,
    },
}

impl Folder {
    /// Take a folder for changing the host.
    ///
    /// # Errors
    ///
    /// Somebody else has it, or it cannot be made.
    pub fn locked(path: &Path) -> Result<Self, Locked> {
        let unusable = |problem| Locked::Unusable { path: path.to_owned(), problem };
        fs::create_dir_all(path).map_err(unusable)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: Some(lock) }),
            Err(fs::TryLockError::WouldBlock) => Err(Locked::Held { path: path.to_owned() }),
            Err(fs::TryLockError::Error(problem)) => Err(unusable(problem)),
        }
    }

    /// A folder that is only read.
    #[must_use]
    pub fn reading(path: &Path) -> Self {
        Self { path: path.to_owned(), _lock: None }
    }

    fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    fn told<T>(path: &Path, result: io::Result<T>) -> Result<T, StoreError> {
        result.map_err(|problem| StoreError { path: path.to_owned(), problem })
    }

    /// A name is on the disk only once its folder is.
    fn sync_folder(&self) -> Result<(), StoreError> {
        Self::told(&self.path, File::open(&self.path).and_then(|folder| folder.sync_all()))
    }
}

impl Store for Folder {
    fn load(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.journal();
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(StoreError { path, problem }),
        }
    }

    fn publish(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let new = self.path.join("journal.new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, self.journal())
        };
        Self::told(&new, write())?;
        self.sync_folder()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.journal();
        let write = || {
            let mut file = OpenOptions::new().append(true).open(&path)?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        Self::told(&path, write())
    }

    fn cut(&mut self, length: usize) -> Result<(), StoreError> {
        let path = self.journal();
        let write = || {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(length as u64)?;
            file.sync_all()
        };
        Self::told(&path, write())
    }

    fn retire(&mut self, id: &str) -> Result<(), StoreError> {
        let path = self.journal();
        Self::told(&path, fs::rename(&path, self.path.join(format!("reverted-{id}"))))?;
        self.sync_folder()
    }
}
