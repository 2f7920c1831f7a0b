//! Quotas of CPU time: the control group of a process, and for how long it had none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the hierarchies with the CPU controller are: version 1, then version 2.
pub const ROOTS: [(&str, Version); 2] =
    [("/sys/fs/cgroup/cpu", Version::One), ("/sys/fs/cgroup", Version::Two)];

/// Version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// The group of a process.
pub fn home(root: &Path, version: Version, pid: u32) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let place = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, place) = (parts.next()?, parts.next()?);
        let fits = match version {
            Version::One => controllers.split(',').any(|name| name == "cpu"),
            Version::Two => controllers.is_empty(),
        };
        fits.then_some(place)
    });
    let place = place.ok_or_else(|| io::Error::other("the process is in no control group"))?;
    Ok(root.join(place.trim_start_matches('/')))
}

/// A group, and for how long it and those around it have been throttled since they exist.
#[derive(Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Its folder.
    pub group: PathBuf,
    /// Throttled time.
    pub ns: i64,
}

impl Throttling {
    /// Of the group of a process; none where there are no quotas, or the process is gone.
    pub fn of(pid: u32) -> Option<Self> {
        ROOTS.into_iter().find_map(|(root, version)| {
            let root = Path::new(root);
            let group = home(root, version, pid).ok()?;
            let around = group.ancestors().take_while(|place| place.starts_with(root));
            let mut told = around.filter_map(|place| {
                throttled_ns(&fs::read_to_string(place.join("cpu.stat")).ok()?)
            });
            let ns = told.next()? + told.sum::<i64>();
            Some(Self { group, ns })
        })
    }
}

/// `throttled_time` in ns of version 1, `throttled_usec` of version 2.
fn throttled_ns(stat: &str) -> Option<i64> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", ns) => ns.parse().ok(),
        ("throttled_usec", us) => us.parse::<i64>().ok()?.checked_mul(1_000),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_it_in_their_own_unit() {
        assert_eq!(throttled_ns("nr_periods 3\nthrottled_time 4100000\n"), Some(4_100_000));
        assert_eq!(throttled_ns("usage_usec 9\nthrottled_usec 4100\n"), Some(4_100_000));
        assert_eq!(throttled_ns("usage_usec 9\n"), None);
    }
}
