//! Two looks at the counters.

use std::thread;
use std::time::Duration;
use tailtrim_host::paths::{self, AFTER, BEFORE, KTHREADS, OBSERVED_MS};
use tailtrim_host::{Memory, ProcessStat, Tree, Unread};
use tailtrim_sys::clock;

/// A tree with the counters of an observation laid over it.
pub struct Observed<'a> {
    host: &'a dyn Tree,
    counters: Memory,
}

impl std::fmt::Debug for Observed<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Observed").finish_non_exhaustive()
    }
}

/// Watch the counters of a host for a time.
#[must_use]
pub fn observe(host: &dyn Tree, time: Duration) -> Observed<'_> {
    let mut counters = Memory::new(true);
    look(host, BEFORE, &mut counters);
    let start = clock::monotonic_ns();
    thread::sleep(time);
    let ns = clock::monotonic_ns() - start;
    look(host, AFTER, &mut counters);
    counters.insert(OBSERVED_MS, (ns / 1_000_000).max(1).to_string());
    Observed { host, counters }
}

fn look(host: &dyn Tree, place: &str, counters: &mut Memory) {
    for pattern in paths::COUNTERS {
        for path in paths::expand(host, pattern).0 {
            let under = format!("{place}{path}");
            match host.read(&path) {
                Ok(content) => counters.insert(&under, content),
                Err(Unread::Missing { .. }) => {}
                Err(why) => counters.insert_unread(&under, why),
            }
        }
    }
    let under = format!("{place}{KTHREADS}");
    match switches(host) {
        Ok(text) => counters.insert(&under, text),
        Err(why) => counters.insert_unread(&under, why),
    }
}

/// Number of times that each kernel thread gave its CPU away: as often as it had been woken.
fn switches(host: &dyn Tree) -> Result<String, Unread> {
    let mut text = String::new();
    for pid in
        host.list("/proc")?.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    {
        // A thread that has ended is of no interest.
        let Ok(line) = host.text(&format!("/proc/{pid}/stat")) else { continue };
        let stat = ProcessStat::parse(&line).filter(ProcessStat::is_kernel_thread);
        let Some(stat) = stat else { continue };
        let Ok(status) = host.text(&format!("/proc/{pid}/status")) else { continue };
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        if let Some(count) = count {
            text += &format!("{pid} {} {}\n", count.trim(), stat.name());
        }
    }
    if text.is_empty() {
        return Err(Unread::Denied { path: "/proc/2/status".to_owned() });
    }
    Ok(text)
}

impl Observed<'_> {
    fn of(&self, path: &str) -> &dyn Tree {
        if path.starts_with("/tailtrim/observation") { &self.counters } else { self.host }
    }
}

impl Tree for Observed<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        self.of(path).read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.of(path).list(path)
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        self.of(path).link(path)
    }
}
