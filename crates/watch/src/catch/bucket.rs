//! So many an hour, and no more than that at once.

const HOUR_NS: i64 = 3_600_000_000_000;

/// A token bucket: full at first, an hour's number of tokens flow in each hour.
#[derive(Debug)]
pub(crate) struct Bucket {
    an_hour: u32,
    /// Time until all tokens are back.
    empty_ns: i64,
    looked_ns: i64,
}

impl Bucket {
    pub(crate) fn full(an_hour: u32, now_ns: i64) -> Self {
        Self { an_hour: an_hour.max(1), empty_ns: 0, looked_ns: now_ns }
    }

    /// Takes a token if there is one.
    pub(crate) fn take(&mut self, now_ns: i64) -> bool {
        // A clock that was set back lets nothing flow in.
        let passed_ns = (now_ns - self.looked_ns).max(0);
        self.looked_ns = now_ns;
        self.empty_ns = (self.empty_ns - passed_ns).max(0);
        let each_ns = HOUR_NS / i64::from(self.an_hour);
        let has = self.empty_ns + each_ns <= HOUR_NS;
        if has {
            self.empty_ns += each_ns;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_gives_an_hours_tokens_at_once_and_then_one_each_part_of_an_hour() {
        let mut bucket = Bucket::full(4, 0);
        let taken = (0..10).filter(|_| bucket.take(1)).count();
        assert_eq!(taken, 4);
        assert!(!bucket.take(HOUR_NS / 4 - 1));
        assert!(bucket.take(HOUR_NS / 4 + 1) && !bucket.take(HOUR_NS / 4 + 1));
        // However long nothing was taken, no more than an hour's are there.
        assert_eq!((0..10).filter(|_| bucket.take(9 * HOUR_NS)).count(), 4);
    }
}
