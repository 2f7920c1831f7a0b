//! Counters at two instants, and what happened in between.

use super::facts::{Facts, broken};
use std::collections::BTreeMap;
use tailtrim_host::paths::{AFTER, BEFORE, KTHREADS, OBSERVED_MS};
use tailtrim_host::{Cpus, Unread};

/// A table with a row for each kind of event and a column for each CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    rows: BTreeMap<String, Row>,
}

/// One kind of event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// Count of each CPU.
    pub(crate) counts: BTreeMap<u32, u64>,
    /// Description behind the counts.
    pub(crate) label: String,
}

impl Row {
    /// Sum over these CPUs.
    #[must_use]
    pub(crate) fn on(&self, cpus: &Cpus) -> u64 {
        self.counts.iter().filter(|(cpu, _)| cpus.contains(**cpu)).map(|(_, count)| count).sum()
    }
}

impl Counters {
    /// Read `/proc/interrupts` or `/proc/softirqs`.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let cpus: Option<Vec<u32>> = lines
            .next()?
            .split_whitespace()
            .map(|name| name.strip_prefix("CPU")?.parse().ok())
            .collect();
        let cpus = cpus?;
        let mut rows = BTreeMap::new();
        for line in lines {
            let (name, rest) = line.split_once(':')?;
            let mut words = rest.split_whitespace().peekable();
            let mut row = Row::default();
            for cpu in &cpus {
                // Rows such as ERR have one number for all.
                let Some(count) = words.next_if(|word| word.parse::<u64>().is_ok()) else { break };
                row.counts.insert(*cpu, count.parse().ok()?);
            }
            row.label = words.collect::<Vec<_>>().join(" ");
            rows.insert(name.trim().to_owned(), row);
        }
        Some(Self { rows })
    }

    /// Growth since an earlier look; a counter that began anew counts from zero.
    #[must_use]
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (name, row) in &mut self.rows {
            let Some(old) = earlier.rows.get(name) else { continue };
            for (cpu, count) in &mut row.counts {
                let before = old.counts.get(cpu).copied().unwrap_or(0);
                *count = count.checked_sub(before).unwrap_or(*count);
            }
        }
        self
    }

    /// A row by name.
    #[must_use]
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.get(name)
    }

    /// All rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.rows.iter().map(|(name, row)| (name.as_str(), row))
    }
}

impl Facts<'_> {
    /// Duration of the observation of counters, in ms.
    pub(crate) fn observed_ms(&self) -> Result<u64, Unread> {
        let text = self.text(OBSERVED_MS)?;
        let wrong = || broken(OBSERVED_MS, &text, "a number of milliseconds above 0");
        text.parse().ok().filter(|ms| *ms > 0).ok_or_else(wrong)
    }

    /// A file before and after.
    pub(crate) fn before_and_after(&self, path: &str) -> Result<(String, String), Unread> {
        self.observed_ms()?;
        Ok((self.text(&format!("{BEFORE}{path}"))?, self.text(&format!("{AFTER}{path}"))?))
    }

    /// By how much the number in a file grew.
    pub(crate) fn number_growth(&self, path: &str) -> Result<u64, Unread> {
        let (before, after) = self.before_and_after(path)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| broken(path, text, "a number"));
        Ok(number(&after)?.saturating_sub(number(&before)?))
    }

    /// Growth of a table of counters.
    pub(crate) fn counter_growth(&self, path: &str) -> Result<Counters, Unread> {
        let (before, after) = self.before_and_after(path)?;
        let table = |text: &str| {
            Counters::parse(text).ok_or_else(|| broken(path, text, "a column for each CPU"))
        };
        Ok(table(&after)?.since(&table(&before)?))
    }

    /// Number of wake-ups of each kernel thread that woke.
    pub(crate) fn thread_wakeups(&self) -> Result<Vec<(String, u64)>, Unread> {
        let (before, after) = self.before_and_after(KTHREADS)?;
        let old = switches(&before);
        let grown = switches(&after).into_iter().map(|(pid, (count, name))| {
            // A kworker's name tells its last work: only the number stays.
            let before = old.get(&pid).map_or(0, |(count, _)| *count);
            (name.to_owned(), count.saturating_sub(before))
        });
        Ok(grown.filter(|(_, count)| *count > 0).collect())
    }
}

/// Lines `pid count name` by thread.
fn switches(text: &str) -> BTreeMap<u32, (u64, &str)> {
    let line = |line: &'_ str| -> Option<(u32, u64, usize)> {
        let mut words = line.splitn(3, ' ');
        let (pid, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((pid, count, line.len() - words.next()?.len()))
    };
    let parts = text.lines().filter_map(|text| line(text).map(|known| (text, known)));
    parts.map(|(text, (pid, count, at))| (pid, (count, &text[at..]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_between_two_looks() {
        let table = |first: u32| {
            format!(
                "      CPU0  CPU2\n 24:  {first} 7  PCI-MSI 1-edge  eth0-rx-0\nLOC: 5 9 Local timer interrupts\nERR:   0\n"
            )
        };
        let counters =
            Counters::parse(&table(9)).unwrap().since(&Counters::parse(&table(4)).unwrap());
        let row = counters.row("24").unwrap();
        assert_eq!(row.label, "PCI-MSI 1-edge eth0-rx-0");
        assert_eq!((row.on(&"0".parse().unwrap()), row.on(&"2".parse().unwrap())), (5, 0));
        assert!(Counters::parse("nonsense").is_none());
    }
}
