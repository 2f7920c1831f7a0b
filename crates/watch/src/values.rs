//! Latencies of one minute, counted.

use tailtrim_stats::Histogram;

/// So many values are kept one by one, in half a megabyte; a histogram takes 1 MB from its first value on.
const FEW: usize = 1 << 16;

/// Values in ns: exact, unless more different ones come than a [`Histogram`] keeps.
#[derive(Debug, Default)]
pub struct Values {
    few: Vec<i64>,
    many: Option<Histogram>,
}

impl Values {
    /// Counts one.
    pub fn record(&mut self, ns: i64) {
        match &mut self.many {
            Some(many) => many.record(ns),
            None => {
                self.few.push(ns);
                if self.few.len() >= FEW {
                    let mut many = Histogram::new();
                    many.record_all(std::mem::take(&mut self.few).into_iter());
                    self.many = Some(many);
                }
            }
        }
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.many.as_ref().map_or(self.few.len() as u64, Histogram::count)
    }

    /// Whether values were too many to be exact, see [`Histogram::is_rounded`].
    #[must_use]
    pub fn is_rounded(&self) -> bool {
        self.many.as_ref().is_some_and(Histogram::is_rounded)
    }

    /// All different values in ns, ascending, each with its count.
    #[must_use]
    pub fn sorted(&self) -> Vec<(i64, u64)> {
        if let Some(many) = &self.many {
            return many.sorted();
        }
        let mut few = self.few.clone();
        few.sort_unstable();
        let mut pairs: Vec<(i64, u64)> = Vec::new();
        for ns in few {
            match pairs.last_mut() {
                Some((last_ns, count)) if *last_ns == ns => *count += 1,
                _ => pairs.push((ns, 1)),
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_one_by_one_and_in_a_histogram() {
        let mut values = Values::default();
        let mut expected = Histogram::new();
        for number in 0..3 * FEW as i64 {
            let ns = (number * 7_919) % 100_003;
            values.record(ns);
            expected.record(ns);
            if [1, FEW as i64 - 1, FEW as i64, 2 * FEW as i64].contains(&(number + 1)) {
                assert_eq!(
                    (values.sorted(), values.count()),
                    (expected.sorted(), expected.count())
                );
            }
        }
        assert!(!values.is_rounded());
    }
}
