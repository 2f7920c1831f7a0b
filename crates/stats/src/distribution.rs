//! The percentile distribution that HdrHistogram's tools read.

use super::Ranked;
use std::fmt::Write;

/// Lines for each halving of the distance to 100 %, as the tools' default.
const TICKS: f64 = 5.0;

/// The text of `.hgrm` in µs, from exact values instead of buckets.
#[must_use]
pub fn distribution(ranked: &Ranked) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let count = ranked.count();
    let us = |ns: f64| ns / 1_000.0;
    let mut percent = 0.0_f64;
    loop {
        let rank = ((percent / 100.0 * count as f64).ceil() as u64).max(1);
        let Some(value) = ranked.at_rank(rank).filter(|_| rank < count) else { break };
        let up_to = count - ranked.count_above(value);
        if up_to == count {
            break;
        }
        let share = percent / 100.0;
        let _ = writeln!(
            text,
            "{:>12.3} {share:>2.12} {up_to:>10} {:>14.2}",
            us(value as f64),
            1.0 / (1.0 - share)
        );
        let halvings = (100.0 / (100.0 - percent)).log2().floor();
        let next = percent + 100.0 / (TICKS * 2.0_f64.powf(halvings + 1.0));
        // Of 10^15 values, the last steps are smaller than what a number near 100 can differ by.
        if next <= percent {
            break;
        }
        percent = next;
    }
    let entries = ranked.entries();
    let longest = entries.last().map_or(0.0, |(value, _)| *value as f64);
    if count > 0 {
        let _ = writeln!(text, "{:>12.3} {:>2.12} {count:>10}", us(longest), 1.0);
    }
    let all = count.max(1) as f64;
    let sum = |of: &dyn Fn(f64) -> f64| {
        entries.iter().map(|(value, n)| of(*value as f64) * *n as f64).sum::<f64>() / all
    };
    let mean = sum(&|value| value);
    let deviation = sum(&|value| (value - mean).powi(2)).sqrt();
    let _ =
        writeln!(text, "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]", us(mean), us(deviation));
    let _ = writeln!(text, "#[Max     = {:>12.3}, Total count    = {count:>12}]", us(longest));
    let _ = writeln!(text, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", 0, 0);
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Histogram, Ranked};
    use super::distribution;

    #[test]
    fn ascending_to_the_longest() {
        let mut histogram = Histogram::new();
        histogram.record_all(1_000..2_000);
        let text = distribution(&Ranked::new(&histogram));
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] < pair[1][1]));
        assert_eq!(rows[0], [1.0, 0.0, 1.0, 1.0]);
        assert_eq!(rows[5], [1.499, 0.5, 500.0, 2.0]);
        assert_eq!(rows.last().unwrap(), &[1.999, 1.0, 1_000.0]);
        assert!(text.contains("#[Max     =        1.999, Total count    =         1000]"));
    }

    #[test]
    fn nothing_measured() {
        let text = distribution(&Ranked::new(&Histogram::new()));
        assert!(text.contains("Total count    =            0]"));
    }
}
