//! A control group of our own around a process, with a quota of CPU time.

use super::Span;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tailtrim_sys::clock;
use tailtrim_sys::quota::{ROOTS, Version, home};

const PREFIX: &str = "tailtrim-";

/// Removed, and the process where it was, when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    version: Version,
    pid: u32,
    /// Where the process was.
    home: PathBuf,
}

impl Group {
    /// Makes a group and moves the process there. Groups of processes that are gone are removed.
    pub(super) fn around(pid: u32) -> io::Result<Self> {
        let root = ROOTS.into_iter().map(|(root, version)| (Path::new(root), version));
        let mut usable = root.filter(|(root, version)| match version {
            Version::One => root.join("cpu.cfs_quota_us").exists(),
            Version::Two => fs::read_to_string(root.join("cgroup.controllers"))
                .is_ok_and(|list| list.split_whitespace().any(|name| name == "cpu")),
        });
        let none = "no control group with the CPU controller below /sys/fs/cgroup";
        let (root, version) = usable.next().ok_or_else(|| io::Error::other(none))?;
        sweep(root);
        let home = home(root, version, pid)?;
        // Next to the process's own group: version 2 has processes in leaves only.
        let beside = home.parent().filter(|parent| parent.starts_with(root)).unwrap_or(root);
        let path = beside.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| at(&path, &error))?;
        let group = Self { path, version, pid, home };
        // Outside of its session's group the process is not preferred any more; here, the group is instead.
        let (file, most) = match version {
            Version::One => ("cpu.shares", "262144"),
            Version::Two => ("cpu.weight", "10000"),
        };
        write(&group.path.join(file), most)?;
        group.put(&group.path)?;
        Ok(group)
    }

    fn put(&self, place: &Path) -> io::Result<()> {
        write(&place.join("cgroup.procs"), &self.pid.to_string())
    }

    fn quota(&self, starved: bool) -> io::Result<()> {
        // The least that kernels take: 1 ms of a second.
        let (file, quota) = match (self.version, starved) {
            (Version::One, true) => ("cpu.cfs_quota_us", "1000"),
            (Version::One, false) => ("cpu.cfs_quota_us", "-1"),
            (Version::Two, true) => ("cpu.max", "1000 1000000"),
            (Version::Two, false) => ("cpu.max", "max 1000000"),
        };
        if self.version == Version::One {
            write(&self.path.join("cpu.cfs_period_us"), "1000000")?;
        }
        write(&self.path.join(file), quota)
    }

    /// Gives it next to nothing for so long.
    pub(super) fn starve(&self, for_ns: u64) -> io::Result<Span> {
        let start_ns = clock::realtime_ns();
        self.quota(true)?;
        thread::sleep(Duration::from_nanos(for_ns));
        self.quota(false)?;
        Ok((start_ns, clock::realtime_ns()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.quota(false);
        let _ = self.put(&self.home);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes groups of killed processes; a group with processes in it stays.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}
