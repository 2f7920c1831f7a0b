//! Files of a host, below a root.

use super::{ethtool, log, programs};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tailtrim_host::paths;
use tailtrim_host::{Tree, Unread, limits};

type Answer = Result<Vec<u8>, Unread>;

/// The running host, or a folder with files of another one.
#[derive(Debug)]
pub struct Host {
    root: Option<PathBuf>,
    /// Whether the folder has all files of the host, so that a missing file was missing on the host, too.
    whole: bool,
    asked: RefCell<BTreeMap<String, Answer>>,
}

impl Host {
    /// The running host.
    #[must_use]
    pub fn live() -> Self {
        Self { root: None, whole: true, asked: RefCell::default() }
    }

    /// The host with this root: `/` is the running one. Files that are not there are missing on the host.
    #[must_use]
    pub fn rooted(root: &Path) -> Self {
        let folder = (root != Path::new("/")).then(|| root.to_owned());
        Self { root: folder, whole: true, asked: RefCell::default() }
    }

    /// A folder below which files lie as on a host. Files that are not there were not captured, and are unknown.
    #[must_use]
    pub fn below(folder: &Path) -> Self {
        Self { root: Some(folder.to_owned()), whole: false, asked: RefCell::default() }
    }

    /// Whether this is the host that this process runs on.
    pub(crate) fn is_running(&self) -> bool {
        self.root.is_none()
    }

    /// Path of a host's file for this process.
    ///
    /// # Errors
    ///
    /// A link leads out of the folder.
    pub(crate) fn place(&self, path: &str) -> Result<PathBuf, Unread> {
        let Some(root) = &self.root else { return Ok(PathBuf::from(path)) };
        let place = root.join(path.trim_start_matches('/'));
        // A link of the captured host must not lead to this one: neither a link that is the file itself nor, for a new
        // file, one that is a folder above it.
        let there = place.ancestors().find(|path| path.symlink_metadata().is_ok());
        let inside = match (fs::canonicalize(root), there.map(fs::canonicalize)) {
            (Ok(root), Some(Ok(there))) => there.starts_with(root),
            (Ok(_), Some(Err(_))) => false,
            _ => true,
        };
        if inside {
            return Ok(place);
        }
        Err(Unread::NotCaptured { path: path.to_owned() })
    }

    pub(crate) fn unread(&self, path: &str, error: &io::Error) -> Unread {
        let path = path.to_owned();
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Unread::Denied { path },
            Some(
                libc::ENOENT
                | libc::ENOTDIR
                | libc::ENODEV
                | libc::ENXIO
                | libc::EOPNOTSUPP
                | libc::ESRCH,
            ) => {
                if self.whole {
                    Unread::Missing { path }
                } else {
                    Unread::NotCaptured { path }
                }
            }
            _ => Unread::Broken { path, problem: error.to_string() },
        }
    }

    /// An answer that is not in a file, asked for once.
    fn ask(&self, path: &str) -> Answer {
        if let Some(known) = self.asked.borrow().get(path) {
            return known.clone();
        }
        let answer = obtain(path);
        self.asked.borrow_mut().insert(path.to_owned(), answer.clone());
        answer
    }
}

fn obtain(path: &str) -> Answer {
    let result = match path {
        paths::LOG => log::lines(),
        paths::CONFIG => programs::kernel_config(),
        paths::TIMERS => programs::timers(),
        paths::RULES => programs::rules(),
        paths::QDISCS => programs::qdiscs(),
        paths::DMA_LATENCY => programs::dma_latency(),
        _ => match path.strip_prefix(paths::ETHTOOL).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) => rest
                .split_once('/')
                .map_or(Err(io::Error::from_raw_os_error(libc::ENOENT)), |(nic, what)| {
                    ethtool::ask(nic, what)
                }),
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        },
    };
    result.map(String::into_bytes).map_err(|error| Host::live().unread(path, &error))
}

impl Tree for Host {
    fn read(&self, path: &str) -> Answer {
        if self.root.is_none() && path.starts_with("/tailtrim/") {
            return self.ask(path);
        }
        let mut content = Vec::new();
        let longest = limits::longest(path);
        File::open(self.place(path)?)
            .and_then(|file| file.take(longest + 1).read_to_end(&mut content))
            .map_err(|error| self.unread(path, &error))?;
        if content.len() as u64 > longest {
            let problem = limits::too_long(path);
            return Err(Unread::Broken { path: path.to_owned(), problem });
        }
        Ok(content)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        if self.root.is_none() && path.starts_with(paths::ETHTOOL) {
            let names = if path == paths::ETHTOOL {
                self.list("/sys/class/net")
            } else {
                Ok(ethtool::names())
            };
            return names;
        }
        let entries = fs::read_dir(self.place(path)?).map_err(|error| self.unread(path, &error))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.unread(path, &error))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
            // A running host may have more processes.
            if self.root.is_some() && names.len() > limits::NAMES {
                let problem =
                    format!("more than {} names, not a folder of the kernel", limits::NAMES);
                return Err(Unread::Broken { path: path.to_owned(), problem });
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        // The target of the link need not be below the root: it is not followed.
        let place = match &self.root {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        };
        let target = fs::read_link(place).map_err(|error| self.unread(path, &error))?;
        Ok(target.to_string_lossy().into_owned())
    }
}
