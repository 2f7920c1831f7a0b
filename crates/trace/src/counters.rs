//! Counters of interrupts and softirqs, CPU by CPU, and the table of them over time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// `/proc/interrupts` or `/proc/softirqs` at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Name and CPU to count. The name of an interrupt is its number or abbreviation and the text behind the counts,
    /// joined by `_`: `LOC_Local_timer_interrupts`.
    pub counts: BTreeMap<(String, u32), u64>,
}

impl Counters {
    /// Reads either file; lines of another shape are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut counts = BTreeMap::new();
        each(text, &mut String::new(), |name, cpu, count| {
            counts.insert((name.to_owned(), cpu), count);
        });
        Self { counts }
    }

    /// Differences of a CPU's counters since `before`, without those that stood still. A counter that is new, or that
    /// began anew as a driver was loaded again, counts from 0. Empty where the CPU had none, since it was offline: they
    /// count since the host was started.
    #[must_use]
    pub fn since(&self, before: &Self, cpu: u32) -> BTreeMap<String, u64> {
        if !before.has(cpu) {
            return BTreeMap::new();
        }
        let grown =
            self.counts.iter().filter(|((_, of), _)| *of == cpu).filter_map(|(key, now)| {
                let grown = grown(before.counts.get(key).copied().unwrap_or(0), *now);
                (grown > 0).then(|| (key.0.clone(), grown))
            });
        grown.collect()
    }

    /// Whether a CPU has counters: those of CPUs that are offline are not shown.
    #[must_use]
    pub fn has(&self, cpu: u32) -> bool {
        self.counts.keys().any(|(_, of)| *of == cpu)
    }
}

/// The kernel's counters have 32 bits: one of 1,000 timer interrupts a second begins at 0 again after 50 days. More than half
/// of that between two readings is a counter that began anew.
fn grown(before: u64, now: u64) -> u64 {
    const WRAP: u64 = 1 << 32;
    if now >= before || before >= WRAP {
        return now.saturating_sub(before);
    }
    let grown = now + WRAP - before;
    if grown <= WRAP / 2 { grown } else { now }
}

/// Calls `take` with the name, the CPU and the number of each counter of `/proc/interrupts` or `/proc/softirqs`. `name`
/// is room for names: with one that is kept, nothing is allocated.
fn each(text: &str, name: &mut String, mut take: impl FnMut(&str, u32, u64)) {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or("");
    let cpu = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    let cpus = || head.split_ascii_whitespace().filter_map(cpu);
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else { continue };
        let words = || rest.split_ascii_whitespace();
        // ERR and MIS have one count for the whole machine.
        let counts = || cpus().zip(words().map_while(|word| word.parse().ok()));
        name.clear();
        name.push_str(label.trim());
        for word in words().skip(counts().count()) {
            name.push('_');
            name.push_str(word);
        }
        for (cpu, count) in counts() {
            take(name, cpu, count);
        }
    }
}

/// Writes counters over time as CSV: semicolons, a column `NAME_CPUn` for each counter, `timestamp_us` since the first
/// row and `realtime_ns`. The columns are those of the first row; [`Table::unlisted`] names interrupts that appear
/// later.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<(String, u32)>,
    /// Count of each column in the row being written; `None` for an interrupt that is gone.
    counts: Vec<Option<u64>>,
    name: String,
    start_ns: i64,
    unlisted: BTreeSet<(String, u32)>,
}

impl Table {
    /// Appends a row of `/proc/interrupts`, and before the first one the header. Only the first row, and an interrupt
    /// that appears later, need memory beyond that of `row`.
    pub fn append(&mut self, row: &mut String, realtime_ns: i64, interrupts: &str, cpus: &[u32]) {
        if self.columns.is_empty() {
            self.start_ns = realtime_ns;
            let counters = Counters::parse(interrupts).counts.into_keys();
            self.columns = counters.filter(|(_, cpu)| cpus.contains(cpu)).collect();
            row.push_str("timestamp_us;realtime_ns");
            for (name, cpu) in &self.columns {
                // The driver chooses the interrupt's name, which may contain separators.
                let _ = write!(row, ";{}_CPU{cpu}", name.replace([';', '"'], "_"));
            }
            row.push('\n');
        }
        let Self { columns, counts, name, unlisted, start_ns } = self;
        counts.clear();
        counts.resize(columns.len(), None);
        each(interrupts, name, |name, cpu, count| {
            if !cpus.contains(&cpu) {
                return;
            }
            let place = columns.binary_search_by(|(of, on)| (of.as_str(), *on).cmp(&(name, cpu)));
            match place {
                Ok(place) => counts[place] = Some(count),
                Err(_) if unlisted.iter().any(|(of, on)| (of.as_str(), *on) == (name, cpu)) => {}
                Err(_) => {
                    unlisted.insert((name.to_owned(), cpu));
                }
            }
        });
        let _ = write!(row, "{};{realtime_ns}", (realtime_ns - *start_ns) / 1_000);
        for count in counts.iter() {
            row.push(';');
            if let Some(count) = count {
                let _ = write!(row, "{count}");
            }
        }
        row.push('\n');
    }

    /// Counters that appeared after the first row and have no column.
    #[must_use]
    pub fn unlisted(&self) -> Vec<String> {
        self.unlisted.iter().map(|(name, cpu)| format!("{name}_CPU{cpu}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       \n \
        24:          1          5  IO-APIC   5-edge      eth0-rx\n\
        LOC:    5639706    4148964   Local timer interrupts\nERR:          7\n";

    #[test]
    fn names_as_in_the_published_tables() {
        let counters = Counters::parse(INTERRUPTS);
        let of = |name: &str, cpu| counters.counts.get(&(name.to_owned(), cpu)).copied();
        assert_eq!(of("24_IO-APIC_5-edge_eth0-rx", 2), Some(5));
        assert_eq!(of("LOC_Local_timer_interrupts", 0), Some(5_639_706));
        assert_eq!((of("ERR", 0), of("ERR", 2)), (Some(7), None));
        assert_eq!(Counters::parse("nothing"), Counters::default());
    }

    #[test]
    fn what_grew() {
        let before = Counters::parse(INTERRUPTS);
        let after = INTERRUPTS.replace("4148964", "4148970") + " 25: 0 3 new\n";
        let grown = Counters::parse(&after).since(&before, 2);
        let expected = [("25_new", 3), ("LOC_Local_timer_interrupts", 6)];
        assert_eq!(grown, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    /// Regression: a CPU that came back had all its interrupts since the host was started.
    #[test]
    fn a_cpu_that_was_offline_has_none() {
        let before = Counters::parse("           CPU0\nLOC:    5639706   Local timer interrupts\n");
        let now = Counters::parse(INTERRUPTS);
        assert!(now.since(&before, 2).is_empty() && !before.has(2) && now.has(2));
    }

    #[test]
    fn counters_of_32_bits_begin_at_0_again() {
        assert_eq!(grown(5, 5), 0);
        assert_eq!(grown(u64::from(u32::MAX), 2), 3);
        // A counter of a driver that was loaded again.
        assert_eq!(grown(2_000_000_000, 7), 7);
        assert_eq!(grown(1 << 40, 7), 0);
    }

    #[test]
    fn a_table_of_one_cpu() {
        let mut table = Table::default();
        let mut text = String::new();
        table.append(&mut text, 5_000_000_000, INTERRUPTS, &[2]);
        let later = INTERRUPTS.replace("4148964", "4148970") + " 25: 0 3 new\n";
        table.append(&mut text, 5_100_000_000, &later, &[2]);
        assert_eq!(
            text,
            "timestamp_us;realtime_ns;24_IO-APIC_5-edge_eth0-rx_CPU2;LOC_Local_timer_interrupts_CPU2\n\
             0;5000000000;5;4148964\n100000;5100000000;5;4148970\n"
        );
        assert_eq!(table.unlisted(), ["25_new_CPU2"]);
    }
}
