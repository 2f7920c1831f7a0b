//! Folder of the journal, locked by the process that works on it.

use super::state::{StateError, StateFolder};
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

const JOURNAL: &str = "journal";
const NEW: &str = "journal.new";
const LOCK: &str = "lock";
/// A journal of a host with thousands of CPUs and interrupts is smaller by far.
const LONGEST: u64 = 64 << 20;

/// The place of one journal. The bytes of an operation are on the disk when it returns.
pub trait Store {
    /// Return the journal; `None` where there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or others may have written it.
    fn load(&self) -> Result<Option<Vec<u8>>, StateError>;

    /// Put a journal in place of the present one: after a crash, either all of these bytes are there, or the old
    /// journal.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn publish(&mut self, bytes: &[u8]) -> Result<(), StateError>;

    /// Write at its end. A process that dies meanwhile may leave a part.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn append(&mut self, bytes: &[u8]) -> Result<(), StateError>;

    /// Keep only so many bytes from the front.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn cut(&mut self, length: usize) -> Result<(), StateError>;

    /// Put the journal away under another name: it is done with.
    ///
    /// # Errors
    ///
    /// It cannot be renamed.
    fn retire(&mut self, id: &str) -> Result<(), StateError>;
}

/// A journal in a folder.
#[derive(Debug)]
pub struct Folder {
    state: Option<StateFolder>,
    /// Held as long as this lives.
    _lock: Option<File>,
}

/// A folder that another process works on, or that cannot be used.
#[derive(Debug, Error)]
pub enum Locked {
    /// Another process holds the lock.
    #[error("{}: another tailtrim-agent tune is running: wait until it ends", path.display())]
    Held {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be made or opened, or others may have written to it.
    #[error(transparent)]
    Unusable(#[from] StateError),
}

impl Folder {
    /// Take a folder for changing the host.
    ///
    /// # Errors
    ///
    /// Another process has it, it cannot be made, or others can write to it.
    pub fn locked(path: &Path) -> Result<Self, Locked> {
        let state = StateFolder::make(path)?;
        let lock = state.file_or_new(LOCK)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { state: Some(state), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(Locked::Held { path: path.to_owned() }),
            Err(TryLockError::Error(problem)) => Ok(state.told(LOCK, Err(problem))?),
        }
    }

    /// A folder that is only read.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or others can write to it.
    pub fn reading(path: &Path) -> Result<Self, StateError> {
        Ok(Self { state: StateFolder::open(path)?, _lock: None })
    }

    /// Only a folder that is read may be missing.
    fn state(&self) -> Result<&StateFolder, StateError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound).into();
        self.state.as_ref().ok_or_else(|| StateError { path: JOURNAL.into(), problem: missing() })
    }

    fn journal(&self, flags: OFlags) -> Result<(&StateFolder, File), StateError> {
        let state = self.state()?;
        let file = state.file(JOURNAL, flags)?;
        let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        Ok((state, state.told(JOURNAL, file)?))
    }
}

impl Store for Folder {
    fn load(&self) -> Result<Option<Vec<u8>>, StateError> {
        let Some(state) = &self.state else { return Ok(None) };
        let Some(file) = state.file(JOURNAL, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        state.told(JOURNAL, file.take(LONGEST + 1).read_to_end(&mut bytes))?;
        if bytes.len() as u64 > LONGEST {
            let why = format!("longer than {} MB: not a journal of this program", LONGEST >> 20);
            return state.told(JOURNAL, Err(io::Error::other(why)));
        }
        Ok(Some(bytes))
    }

    fn publish(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let state = self.state()?;
        let mut file = state.new_file(NEW)?;
        state.told(NEW, file.write_all(bytes).and_then(|()| file.sync_all()))?;
        state.rename(NEW, JOURNAL)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let (state, mut file) = self.journal(OFlags::WRONLY | OFlags::APPEND)?;
        state.told(JOURNAL, file.write_all(bytes).and_then(|()| file.sync_data()))
    }

    fn cut(&mut self, length: usize) -> Result<(), StateError> {
        let (state, file) = self.journal(OFlags::WRONLY)?;
        state.told(JOURNAL, file.set_len(length as u64).and_then(|()| file.sync_all()))
    }

    fn retire(&mut self, id: &str) -> Result<(), StateError> {
        self.state()?.rename(JOURNAL, &format!("reverted-{id}"))
    }
}
