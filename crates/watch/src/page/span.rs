//! Times that the page shows, in blocks of equal length.

/// Length of a minute in seconds.
const MINUTE_S: i64 = 60;

/// A time that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Span {
    /// 60 minutes.
    Hour,
    /// 144 times ten minutes.
    Day,
    /// 168 hours.
    Week,
}

impl Span {
    /// The span of a query such as `span=day`; an hour without one.
    pub(crate) fn of_query(query: Option<&str>) -> Option<Self> {
        match query.unwrap_or("span=hour") {
            "span=hour" => Some(Self::Hour),
            "span=day" => Some(Self::Day),
            "span=week" => Some(Self::Week),
            _ => None,
        }
    }

    /// Length of a block: an hour at most, so that its minutes are the bits of a `u64`.
    pub(crate) fn block_s(self) -> i64 {
        match self {
            Self::Hour => MINUTE_S,
            Self::Day => 10 * MINUTE_S,
            Self::Week => 60 * MINUTE_S,
        }
    }

    fn blocks(self) -> i64 {
        match self {
            Self::Hour => 60,
            Self::Day => 144,
            Self::Week => 168,
        }
    }

    /// Begin of the block of a time.
    pub(crate) fn block_of(self, second: i64) -> i64 {
        second.div_euclid(self.block_s()) * self.block_s()
    }

    /// Begin and end of the span whose last block has the minute before this time.
    pub(crate) fn window(self, until_s: i64) -> (i64, i64) {
        let end_s = self.block_of(until_s - 1) + self.block_s();
        (end_s - self.blocks() * self.block_s(), end_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_with_the_block_that_is_not_over() {
        assert_eq!(Span::Hour.window(7_200), (3_600, 7_200));
        assert_eq!(Span::Hour.window(7_260), (3_660, 7_260));
        assert_eq!(Span::Day.window(86_400 + 60), (600, 87_000));
        let (begin_s, end_s) = Span::Week.window(30 * 86_400 + 3_540);
        assert_eq!((end_s - begin_s, end_s), (7 * 86_400, 30 * 86_400 + 3_600));
        assert_eq!(Span::of_query(Some("span=day")), Some(Span::Day));
        assert_eq!(
            (Span::of_query(None), Span::of_query(Some("span=x"))),
            (Some(Span::Hour), None)
        );
    }
}
