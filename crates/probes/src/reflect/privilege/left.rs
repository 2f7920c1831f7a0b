//! Remaining privileges of this process' threads, read from the kernel.

use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Remaining privileges of all threads together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Number of threads.
    pub threads: usize,
    /// The users they are: real, effective, saved, and of files.
    pub users: BTreeSet<u32>,
    /// Their capabilities.
    pub capabilities: Capabilities,
    /// Whether no program that they execute gains privileges.
    pub no_new_privileges: bool,
    /// Whether the kernel lets them make the listed system calls only.
    pub system_calls_filtered: bool,
    /// Privileges that could not be taken away, with the reason.
    pub kept: Vec<String>,
}

/// Sets of capabilities, each as `/proc/PID/status` has it: hexadecimal, and read by `capsh --decode`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Capabilities that the kernel checks.
    pub effective: Mask,
    /// Capabilities that a thread may make effective.
    pub permitted: Mask,
    /// Capabilities that executed programs get if their files have them as inheritable, too.
    pub inheritable: Mask,
    /// Capabilities that executed programs keep.
    pub ambient: Mask,
    /// Upper bound of the capabilities of executed programs.
    pub bounding: Mask,
}

/// A set of capabilities, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mask(pub u64);

impl std::fmt::Display for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Mask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The status file of each thread, opened while files may be opened.
#[derive(Debug)]
pub(super) struct Threads(Vec<(PathBuf, File)>);

impl Threads {
    /// Opens those of the present threads.
    pub(super) fn open() -> io::Result<Self> {
        let each = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry?.path().join("status");
            let file = File::open(&path)?;
            Ok((path, file))
        };
        std::fs::read_dir("/proc/self/task")?.map(each).collect::<io::Result<_>>().map(Self)
    }

    /// Reads the remaining privileges.
    pub(super) fn read(self) -> io::Result<Left> {
        let mut left = Left {
            threads: self.0.len(),
            no_new_privileges: true,
            system_calls_filtered: true,
            ..Left::default()
        };
        for (path, file) in self.0 {
            let mut text = String::new();
            // `fs::read` would first ask for the size, for which there is no permission any more.
            file.take(1 << 16).read_to_string(&mut text)?;
            left.add(&text).ok_or_else(|| {
                io::Error::other(format!("{} does not tell capabilities", path.display()))
            })?;
        }
        Ok(left)
    }
}

impl Left {
    /// Adds a thread by its status. `None` where a field is missing.
    fn add(&mut self, status: &str) -> Option<()> {
        let value = |name: &str| {
            let mut lines = status.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
        };
        let mask = |name| u64::from_str_radix(value(name)?, 16).ok();
        let Self { users, capabilities: sets, .. } = self;
        for user in value("Uid")?.split_whitespace() {
            users.insert(user.parse().ok()?);
        }
        sets.effective.0 |= mask("CapEff")?;
        sets.permitted.0 |= mask("CapPrm")?;
        sets.inheritable.0 |= mask("CapInh")?;
        sets.bounding.0 |= mask("CapBnd")?;
        // Missing before Linux 4.3, which had none, and before 4.10, where the result of the call that set it must do.
        sets.ambient.0 |= mask("CapAmb").unwrap_or(0);
        self.no_new_privileges &= value("NoNewPrivs").is_none_or(|set| set == "1");
        self.system_calls_filtered &= value("Seccomp") == Some("2");
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\ttt-reflect\nUid:\t1\t1\t2\t1\nCapInh:\t0000000000000000\n\
        CapPrm:\t0000000000002400\nCapEff:\t0000000000000400\nCapBnd:\t000001ffffffffff\n\
        CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

    #[test]
    fn one_thread_that_has_something_left_is_enough() {
        let mut left =
            Left { no_new_privileges: true, system_calls_filtered: true, ..Left::default() };
        let clean = STATUS.replace("2400", "0000").replace("0400", "0000");
        for status in [&clean, STATUS, &clean] {
            left.add(status).unwrap();
        }
        assert_eq!(left.users, BTreeSet::from([1, 2]));
        assert_eq!(left.capabilities.permitted.to_string(), "0000000000002400");
        assert_eq!(left.capabilities.effective, Mask(0x400));
        assert!(left.no_new_privileges && left.system_calls_filtered);
        left.add(&clean.replace("Seccomp:\t2", "Seccomp:\t0")).unwrap();
        left.add(&clean.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0")).unwrap();
        assert!(!left.no_new_privileges && !left.system_calls_filtered);
        assert_eq!(left.add("Uid:\t1\n"), None);
    }

    #[test]
    fn every_thread_of_this_process_is_read() {
        let left = Threads::open().unwrap().read().unwrap();
        assert!(left.threads >= 1);
        assert!(!left.users.is_empty());
    }
}
