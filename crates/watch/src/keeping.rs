//! Limits of the minutes on disk.

use tailtrim_wire::duration::time_ns;

/// Limits of what is kept on disk; the oldest days go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Days that ended longer ago than this are removed.
    pub time_ns: Option<i64>,
    /// Bytes of all days at most.
    pub bytes: Option<u64>,
}

impl Keep {
    /// Reads both limits; what is not given has none.
    pub(crate) fn of(time: Option<&str>, size: Option<&str>) -> Result<Self, String> {
        let time_ns = time.map(|text| {
            let days = text.strip_suffix('d').and_then(|days| days.trim_end().parse::<u32>().ok());
            let ns =
                days.map(|days| u64::from(days) * 86_400_000_000_000).or_else(|| time_ns(text));
            let ns = ns.and_then(|ns| i64::try_from(ns).ok()).filter(|ns| *ns > 0);
            ns.ok_or_else(|| format!("time {text:?}: expected a time such as 30d or 48h"))
        });
        let bytes = size.map(|text| {
            bytes(text)
                .ok_or_else(|| format!("size {text:?}: expected a size such as 10GB or 500MB"))
        });
        Ok(Self { time_ns: time_ns.transpose()?, bytes: bytes.transpose()? })
    }
}

fn bytes(text: &str) -> Option<u64> {
    let (number, scale) = [("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)]
        .into_iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    number.trim_end().parse::<u64>().ok()?.checked_mul(scale).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units() {
        let keep = Keep::of(Some("30d"), Some("10GB")).unwrap();
        assert_eq!((keep.time_ns, keep.bytes), (Some(2_592_000_000_000_000), Some(10_000_000_000)));
        assert_eq!(Keep::of(Some("48h"), None).unwrap().time_ns, Some(172_800_000_000_000));
        for (time, size) in
            [(Some("30"), None), (Some("0d"), None), (None, Some("10")), (None, Some("0GB"))]
        {
            assert!(Keep::of(time, size).is_err());
        }
    }
}
