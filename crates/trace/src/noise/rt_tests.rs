//! `--json` of rt-tests 2: cyclictest and oslat.
//!
//! cyclictest keeps whole µs, or ns with `-N`, rounded down, and leaves out what is beyond `--histogram`; only its
//! number of cycles tells of those. oslat keeps whole µs rounded up from the end: what it counts as 2 took at least
//! 1 µs and less than 2. Its last bucket has all that is longer.

use super::{Bucket, Column, Findings, ReadError, Tool, What, total};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The file. The colons within two of the names are the tools' own.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: Option<String>,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: Option<String>,
    /// Of cyclictest: 1 where numbers are ns.
    resolution_in_ns: Option<u8>,
    #[serde(default)]
    thread: BTreeMap<u32, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    /// Negative where the thread may run anywhere.
    cpu: i64,
    #[serde(default)]
    histogram: BTreeMap<i64, u64>,
    /// Of cyclictest.
    cycles: Option<u64>,
    /// Of oslat, in MHz.
    freq: Option<u64>,
    /// Of oslat, in seconds.
    duration: Option<f64>,
    min: i64,
    max: i64,
}

pub(super) fn read(text: &str) -> Result<Findings, ReadError> {
    let file: File = serde_json::from_str(text)?;
    let tool = match file.thread.values().next() {
        Some(thread) if thread.cycles.is_some() => Tool::Cyclictest,
        Some(thread) if thread.freq.is_some() => Tool::Oslat,
        Some(_) => {
            let what = "the JSON has threads with neither \"cycles\" nor \"freq\"";
            return Err(ReadError::Unknown(what.into()));
        }
        None => return Err(ReadError::Unknown("the JSON has no \"thread\"".into())),
    };
    let words = file.command.as_deref().unwrap_or("").split_ascii_whitespace();
    if tool == Tool::Oslat && words.clone().any(|word| matches!(word, "-B" | "--bias")) {
        let what = "oslat was called with --bias, which takes its shortest turn from all others; expected \
                    times as they were: measure again without it";
        return Err(ReadError::Disagree(what.into()));
    }
    let unit_ns = if file.resolution_in_ns == Some(1) { 1 } else { 1_000 };
    let column = |(number, thread): (&u32, &Thread)| match tool {
        Tool::Oslat => Ok(oslat(*number, thread)),
        _ => cyclictest(*number, thread, unit_ns),
    };
    Ok(Findings {
        tool,
        columns: file.thread.iter().map(column).collect::<Result<_, _>>()?,
        seconds: file.thread.values().filter_map(|thread| thread.duration).reduce(f64::max),
        assumed: None,
        version: file.version,
        command: file.command,
    })
}

fn cyclictest(number: u32, thread: &Thread, unit_ns: i64) -> Result<Column, ReadError> {
    let bucket = |(value, count): (&i64, &u64)| Bucket {
        from_ns: value.saturating_mul(unit_ns),
        to_ns: value.saturating_add(1).saturating_mul(unit_ns),
        count: *count,
    };
    let mut buckets: Vec<Bucket> = thread.histogram.iter().map(bucket).collect();
    let kept = total(thread.histogram.values().copied());
    let count = thread.cycles.unwrap_or(kept);
    let max_ns = thread.max.saturating_add(1).saturating_mul(unit_ns);
    let Some(beyond) = count.checked_sub(kept) else {
        let what = format!(
            "the thread on CPU {} has {count} cycles and {kept} in its histogram; expected no more in it than there \
             were: the file is damaged, measure again",
            thread.cpu
        );
        return Err(ReadError::Disagree(what));
    };
    let open_end = beyond > 0 && !buckets.is_empty();
    if let Some(last) = buckets.last().filter(|_| open_end) {
        let from_ns = last.to_ns;
        buckets.push(Bucket { from_ns, to_ns: max_ns.max(from_ns), count: beyond });
    }
    Ok(Column {
        cpu: u32::try_from(thread.cpu).ok(),
        thread: Some(number),
        what: What::Thread,
        count,
        min_ns: Some(thread.min.saturating_add(1).saturating_mul(unit_ns)),
        max_ns: Some(max_ns),
        buckets,
        open_end,
    })
}

fn oslat(number: u32, thread: &Thread) -> Column {
    let ns = |us: i64| us.saturating_mul(1_000);
    let last = thread.histogram.keys().next_back().copied();
    let bucket = |(value, count): (&i64, &u64)| Bucket {
        from_ns: ns(value.saturating_sub(1)),
        to_ns: ns(if Some(*value) == last { thread.max.max(*value) } else { *value }),
        count: *count,
    };
    Column {
        cpu: u32::try_from(thread.cpu).ok(),
        thread: Some(number),
        what: What::Gap,
        count: total(thread.histogram.values().copied()),
        min_ns: Some(ns(thread.min)),
        max_ns: Some(ns(thread.max)),
        buckets: thread.histogram.iter().map(bucket).collect(),
        open_end: last.is_some_and(|last| thread.histogram[&last] > 0),
    }
}
