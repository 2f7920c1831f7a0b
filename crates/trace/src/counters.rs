//! Counters of interrupts and softirqs, CPU by CPU, and the table of them over time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// `/proc/interrupts` or `/proc/softirqs` at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Name and CPU to count. The name of an interrupt is its number or abbreviation and what follows the
    /// counts, joined by `_`: `LOC_Local_timer_interrupts`.
    pub counts: BTreeMap<(String, u32), u64>,
}

impl Counters {
    /// Reads either file; lines of another shape are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let cpu = |word: &str| word.strip_prefix("CPU")?.parse().ok();
        let cpus: Vec<u32> =
            lines.next().unwrap_or("").split_ascii_whitespace().filter_map(cpu).collect();
        let mut counts = BTreeMap::new();
        for line in lines {
            let Some((label, rest)) = line.split_once(':') else { continue };
            let words: Vec<&str> = rest.split_ascii_whitespace().collect();
            // ERR and MIS have one count for the whole machine.
            let numbers: Vec<u64> =
                words.iter().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
            let mut name = label.trim().to_owned();
            for word in &words[numbers.len()..] {
                name.push('_');
                name.push_str(word);
            }
            for (cpu, number) in cpus.iter().zip(numbers) {
                counts.insert((name.clone(), *cpu), number);
            }
        }
        Self { counts }
    }

    /// What a CPU counted since `before`, nothing that stood still; a counter that is new counts from 0.
    #[must_use]
    pub fn since(&self, before: &Self, cpu: u32) -> BTreeMap<String, u64> {
        let grown =
            self.counts.iter().filter(|((_, of), _)| *of == cpu).filter_map(|(key, now)| {
                let grown = now.saturating_sub(before.counts.get(key).copied().unwrap_or(0));
                (grown > 0).then(|| (key.0.clone(), grown))
            });
        grown.collect()
    }
}

/// Writes counters over time as CSV: semicolons, a column `NAME_CPUn` for each counter, `timestamp_us` since the
/// first row and `realtime_ns`. The columns are those of the first row; an interrupt that appears later is
/// told of once by [`Table::unlisted`].
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<(String, u32)>,
    start_ns: i64,
    unlisted: BTreeSet<(String, u32)>,
}

impl Table {
    /// Appends a row, and before the first one the header.
    pub fn append(
        &mut self,
        text: &mut String,
        realtime_ns: i64,
        counters: &Counters,
        cpus: &[u32],
    ) {
        let listed = |key: &&(String, u32)| cpus.contains(&key.1);
        if self.columns.is_empty() {
            self.start_ns = realtime_ns;
            self.columns = counters.counts.keys().filter(listed).cloned().collect();
            text.push_str("timestamp_us;realtime_ns");
            for (name, cpu) in &self.columns {
                // What a driver calls its interrupt is its own affair.
                let _ = write!(text, ";{}_CPU{cpu}", name.replace([';', '"'], "_"));
            }
            text.push('\n');
        }
        for key in counters.counts.keys().filter(listed) {
            if self.columns.binary_search(key).is_err() {
                self.unlisted.insert(key.clone());
            }
        }
        let _ = write!(text, "{};{realtime_ns}", (realtime_ns - self.start_ns) / 1_000);
        for key in &self.columns {
            text.push(';');
            // Gone meanwhile: empty, as nothing was counted.
            if let Some(count) = counters.counts.get(key) {
                let _ = write!(text, "{count}");
            }
        }
        text.push('\n');
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

    #[test]
    fn a_table_of_one_cpu() {
        let mut table = Table::default();
        let mut text = String::new();
        table.append(&mut text, 5_000_000_000, &Counters::parse(INTERRUPTS), &[2]);
        let later = INTERRUPTS.replace("4148964", "4148970") + " 25: 0 3 new\n";
        table.append(&mut text, 5_100_000_000, &Counters::parse(&later), &[2]);
        assert_eq!(
            text,
            "timestamp_us;realtime_ns;24_IO-APIC_5-edge_eth0-rx_CPU2;LOC_Local_timer_interrupts_CPU2\n\
             0;5000000000;5;4148964\n100000;5100000000;5;4148970\n"
        );
        assert_eq!(table.unlisted(), ["25_new_CPU2"]);
    }
}
