//! Source of facts about a host: a tree of small text files.

use crate::limits;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a file could not be read. No check may take one of these for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unread {
    /// There is no such file: the kernel lacks the feature, or the option is not built in.
    #[error("{path}: not there")]
    Missing {
        /// The file.
        path: String,
    },
    /// The reader may not.
    #[error("{path}: no permission")]
    Denied {
        /// The file.
        path: String,
    },
    /// A captured tree does not have it: nothing is known about the host.
    #[error("{path}: not captured")]
    NotCaptured {
        /// The file.
        path: String,
    },
    /// Reading failed in another way.
    #[error("{path}: {problem}")]
    Broken {
        /// The file.
        path: String,
        /// Error message of the system.
        problem: String,
    },
}

/// The kernel's log as a file: lines without time and level. On a host it is a device that needs rights.
pub const LOG: &str = "/tailtrim/dmesg";

/// Files by absolute path, as on a host: `/proc/cmdline`, `/sys/devices/system/cpu/isolated`.
pub trait Tree {
    /// Return the content of a file.
    ///
    /// # Errors
    ///
    /// [`Unread`] says why there is none.
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread>;

    /// Return the names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// [`Unread`] says why there are none.
    fn list(&self, path: &str) -> Result<Vec<String>, Unread>;

    /// Return where a symbolic link points to, as it is written.
    ///
    /// # Errors
    ///
    /// [`Unread`] says why it is not known.
    fn link(&self, path: &str) -> Result<String, Unread>;

    /// Return the content of a file as text without white space around it.
    ///
    /// # Errors
    ///
    /// As [`Tree::read`].
    fn text(&self, path: &str) -> Result<String, Unread> {
        let content = self.read(path)?;
        Ok(String::from_utf8_lossy(&content).trim().to_owned())
    }
}

/// A tree in memory: of a test, or of what was captured.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    entries: BTreeMap<String, Entry>,
    whole: bool,
}

#[derive(Debug, Clone)]
enum Entry {
    File(Vec<u8>),
    Link(String),
    Unread(Unread),
}

impl Memory {
    /// An empty tree.
    ///
    /// `whole` says that it has everything which the host had: a file that is not in it was missing
    /// there. Otherwise such a file is [`Unread::NotCaptured`].
    #[must_use]
    pub fn new(whole: bool) -> Self {
        Self { entries: BTreeMap::new(), whole }
    }

    /// Add a file.
    #[must_use]
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.insert(path, content);
        self
    }

    /// Add a file.
    pub fn insert(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.entries.insert(path.to_owned(), Entry::File(content.into()));
    }

    /// Add a symbolic link.
    pub fn insert_link(&mut self, path: &str, target: &str) {
        self.entries.insert(path.to_owned(), Entry::Link(target.to_owned()));
    }

    /// Add a file that could not be read where the tree comes from.
    pub fn insert_unread(&mut self, path: &str, why: Unread) {
        self.entries.insert(path.to_owned(), Entry::Unread(why));
    }

    fn missing(&self, path: &str) -> Unread {
        let path = path.to_owned();
        if self.whole { Unread::Missing { path } } else { Unread::NotCaptured { path } }
    }
}

impl Tree for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        match self.entries.get(path) {
            Some(Entry::File(content)) => Ok(content.clone()),
            Some(Entry::Unread(why)) => Err(why.clone()),
            Some(Entry::Link(_)) | None => Err(self.missing(path)),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        if let Some(Entry::Unread(why)) = self.entries.get(path) {
            return Err(why.clone());
        }
        let start = format!("{}/", path.trim_end_matches('/'));
        let mut names: Vec<String> = self
            .entries
            .range(start.clone()..)
            .map_while(|(known, _)| known.strip_prefix(&start))
            .map(|rest| rest.split('/').next().unwrap_or(rest).to_owned())
            .collect();
        // Paths are sorted, names not: `eth0.100/mtu` comes before `eth0/mtu`.
        names.sort_unstable();
        names.dedup();
        if names.len() > limits::NAMES {
            let problem = format!("more than {} names, not a folder of the kernel", limits::NAMES);
            return Err(Unread::Broken { path: path.to_owned(), problem });
        }
        if names.is_empty() { Err(self.missing(path)) } else { Ok(names) }
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        match self.entries.get(path) {
            Some(Entry::Link(target)) => Ok(target.clone()),
            Some(Entry::Unread(why)) => Err(why.clone()),
            Some(Entry::File(_)) | None => Err(self.missing(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_what_is_below_it_once() {
        let tree = Memory::new(true).with("/a/b/c", "1").with("/a/b/d", "2").with("/a/e", "3");
        assert_eq!(tree.list("/a").unwrap(), ["b", "e"]);
        assert_eq!(tree.list("/a/b").unwrap(), ["c", "d"]);
        let tree = tree.with("/a/b.100/c", "4");
        assert_eq!(tree.list("/a").unwrap(), ["b", "b.100", "e"]);
        assert_eq!(tree.text("/a/e").unwrap(), "3");
    }

    #[test]
    fn what_was_not_captured_is_not_missing() {
        let path = "/x".to_owned();
        assert_eq!(Memory::new(false).read("/x"), Err(Unread::NotCaptured { path: path.clone() }));
        assert_eq!(Memory::new(true).read("/x"), Err(Unread::Missing { path }));
    }
}
