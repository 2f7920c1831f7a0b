//! CPU time that the hypervisor gave to others: a fault of the meter, not of a target.

use crate::minute::begin_of;
use std::collections::BTreeMap;
use std::fs;

/// Ticks of `/proc/stat` a second, the same on every Linux (`USER_HZ`).
const TICKS: u64 = 100;

/// Minutes that are remembered: those of the longest timeout, and one more.
const REMEMBERED: usize = 4;

/// Time from one look to the next: less than a scrape interval, so that metrics have it when they have its consequences.
const LOOK_NS: i64 = 10_000_000_000;

/// Stolen time by minute.
#[derive(Debug)]
pub(crate) struct Stolen {
    begin_ns: i64,
    looked_ns: i64,
    before_ns: Option<u64>,
    minutes: BTreeMap<i64, u64>,
}

impl Stolen {
    pub(crate) fn begin() -> Self {
        Self { begin_ns: i64::MIN, looked_ns: 0, before_ns: read(), minutes: BTreeMap::new() }
    }

    /// Looks, if it is time to or the minute is over. Returns the time stolen since the last look.
    pub(crate) fn look(&mut self, now_ns: i64) -> Option<u64> {
        let same = begin_of(now_ns) == self.begin_ns;
        if same && (0..LOOK_NS).contains(&(now_ns - self.looked_ns)) {
            return None;
        }
        self.looked_ns = now_ns;
        let ended_ns = std::mem::replace(&mut self.begin_ns, begin_of(now_ns));
        let now = read();
        let stolen_ns = now.zip(self.before_ns).map(|(now, before)| now.saturating_sub(before));
        self.before_ns = now;
        *self.minutes.entry(ended_ns).or_default() += stolen_ns?;
        // After a step back, those that were to come would stay, and the new ones be removed.
        self.minutes.retain(|begin_ns, _| *begin_ns <= self.begin_ns);
        if self.minutes.len() > REMEMBERED {
            self.minutes.pop_first();
        }
        stolen_ns
    }

    /// Time stolen in the minute that began then; `None` if it is unknown.
    pub(crate) fn of(&self, begin_ns: i64) -> Option<u64> {
        self.minutes.get(&begin_ns).copied()
    }
}

/// Time stolen from all CPUs since the host was booted.
fn read() -> Option<u64> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: u64 = all.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks * (1_000_000_000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minute::MINUTE_NS;

    #[test]
    fn minutes_after_a_step_back_are_remembered() {
        let mut stolen = Stolen::begin();
        for minute in [10, 11, 12, 13, 14, 3, 4] {
            stolen.look(minute * MINUTE_NS);
        }
        assert!(stolen.of(3 * MINUTE_NS).is_some() && stolen.of(13 * MINUTE_NS).is_none());
    }

    #[test]
    fn the_eighth_number_is_stolen_time() {
        let stat = "cpu  10 20 30 40 50 60 70 81 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(parse(stat), Some(810_000_000));
        assert_eq!(parse("cpu 1 2 3\n"), None);
        assert!(read().is_some());
    }
}
