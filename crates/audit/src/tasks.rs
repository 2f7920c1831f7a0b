//! Threads: their names, the CPUs that they may use, and how they are scheduled.

use super::facts::{absent_is_none, broken};
use tailtrim_host::{Cpus, ProcessStat, Tree, Unread};

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its process.
    pub(crate) pid: u32,
    /// Its own number.
    pub(crate) tid: u32,
    /// Its name, at most 15 characters.
    pub(crate) name: String,
    /// Where it may run.
    pub(crate) allowed: Cpus,
    /// Whether it is the kernel's.
    pub(crate) kernel: bool,
    /// Whether the kernel forbids to move it.
    pub(crate) fixed: bool,
    /// Whether it ran, or waited for its CPU, when it was looked at.
    pub(crate) running: bool,
    /// The CPU that it last ran on.
    pub(crate) last: u32,
    /// Scheduling class: 0 other, 1 FIFO, 2 round robin, 6 deadline.
    pub(crate) policy: u32,
    /// Real-time priority, 0 for none.
    pub(crate) priority: u32,
}

impl Task {
    /// Whether it runs before every ordinary thread.
    #[must_use]
    pub(crate) fn real_time(&self) -> bool {
        matches!(self.policy, 1 | 2 | 6)
    }
}

/// Read all threads. Those that end meanwhile are left out.
pub(crate) fn read(tree: &dyn Tree) -> Result<Vec<Task>, Unread> {
    let pids = numbers(&tree.list("/proc")?);
    // Mounted with hidepid, /proc shows a user nothing but his own.
    if !pids.contains(&1) {
        return Err(Unread::Denied { path: "/proc/1/stat".to_owned() });
    }
    let mut tasks = Vec::new();
    for pid in pids {
        let threads = absent_is_none(tree.list(&format!("/proc/{pid}/task")))?.unwrap_or_default();
        for tid in numbers(&threads) {
            let place = format!("/proc/{pid}/task/{tid}");
            let stat = absent_is_none(tree.text(&format!("{place}/stat")))?;
            let status = absent_is_none(tree.text(&format!("{place}/status")))?;
            if let (Some(stat), Some(status)) = (stat, status) {
                tasks.push(
                    task(pid, tid, &stat, &status).ok_or_else(|| {
                        broken(&format!("{place}/stat"), &stat, "what proc(5) says")
                    })?,
                );
            }
        }
    }
    if tasks.is_empty() {
        return Err(Unread::Missing { path: "/proc/1/task".to_owned() });
    }
    Ok(tasks)
}

fn numbers(names: &[String]) -> Vec<u32> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

fn task(pid: u32, tid: u32, stat: &str, status: &str) -> Option<Task> {
    let stat = ProcessStat::parse(stat)?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    // Every kernel tells the flags.
    stat.field(9)?;
    Some(Task {
        pid,
        tid,
        name: stat.name().to_owned(),
        allowed: allowed.parse().ok()?,
        kernel: stat.is_kernel_thread(),
        fixed: stat.has_fixed_cpus(),
        running: stat.is_running(),
        last: stat.field(39)? as u32,
        priority: stat.field(40)? as u32,
        policy: stat.field(41)? as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat() {
        let stat = "2 (a (b) c) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 99 1 0";
        let found = task(2, 2, stat, "Name:\tx\nCpus_allowed_list:\t0-1\n").unwrap();
        assert_eq!(found.name, "a (b) c");
        assert!(found.kernel && !found.fixed && found.real_time());
        assert_eq!((found.last, found.priority, found.policy), (1, 99, 1));
    }
}
