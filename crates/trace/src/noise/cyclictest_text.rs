//! `cyclictest --histogram` and `--histofall`: text, a column for each thread.
//!
//! A row has the values of one µs, or ns with `--nsecs`, rounded down. Newer versions leave out rows of zeros, so that
//! the end of the table is not in the file. What is longer is counted below the rows, as overflows. Only the lines
//! that begin with `T:` tell the unit, by their widths; `--histfile` does without them.

use super::{Bucket, Column, Findings, ReadError, Tool, What, total};

/// Width of the field "Act:" with `--nsecs`; 5 without.
const NANOSECONDS_WIDTH: usize = 8;

/// Whether the text has such a histogram.
pub(super) fn is_here(text: &str) -> bool {
    text.lines().any(|line| line.trim() == TITLE)
}

/// Whether the text is of cyclictest, with or without a histogram.
pub(super) fn has_threads(text: &str) -> bool {
    text.lines().any(|line| actual(line).is_some())
}

const TITLE: &str = "# Histogram";

/// The field "Act:" with its blanks: `T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      12`
fn actual(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(" Act:")?;
    Some(rest.split_once(" Avg:")?.0)
}

/// Lines below the rows, by thread. With `--histofall` all but `min` have one more, of all threads.
#[derive(Default)]
struct Sums {
    total: Option<Vec<u64>>,
    min: Option<Vec<u64>>,
    max: Option<Vec<u64>>,
    overflows: Option<Vec<u64>>,
}

impl Sums {
    fn of(&mut self, name: &str) -> Option<&mut Option<Vec<u64>>> {
        match name {
            "# Total" => Some(&mut self.total),
            "# Min Latencies" => Some(&mut self.min),
            "# Max Latencies" => Some(&mut self.max),
            "# Histogram Overflows" => Some(&mut self.overflows),
            _ => None,
        }
    }
}

pub(super) fn read(text: &str) -> Result<Findings, ReadError> {
    let unit = text.lines().find_map(actual).map(str::len);
    let unit_ns = if unit >= Some(NANOSECONDS_WIDTH) { 1 } else { 1_000 };
    if text.lines().filter(|line| line.trim() == TITLE).count() > 1 {
        return Err(ReadError::Disagree(
            "the file has several histograms of cyclictest; expected one: cut it into a file for each".into(),
        ));
    }
    let lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != TITLE).skip(1);
    let (mut rows, mut sums): (Vec<(i64, Vec<u64>)>, _) = (Vec::new(), Sums::default());
    for (before, line) in lines {
        let line = line.trim();
        let wrong = |expected: &str| ReadError::Line {
            number: before + 1,
            problem: format!(
                "{:?}; expected {expected}: the file is cut or changed, measure again",
                line.chars().take(60).collect::<String>()
            ),
        };
        if let Some((name, numbers)) = line.split_once(':').filter(|_| line.starts_with('#')) {
            if let Some(sums) = sums.of(name) {
                *sums = Some(counts(numbers).ok_or_else(|| wrong("a number for each thread"))?);
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            if sums.overflows.is_some() {
                break;
            }
            let (index, row) =
                row(line).ok_or_else(|| wrong("a row with a count for each thread"))?;
            if rows.last().is_some_and(|(last, above)| *last >= index || above.len() != row.len()) {
                return Err(wrong("larger values row by row, in as many columns"));
            }
            rows.push((index, row));
        }
    }
    Ok(Findings {
        tool: Tool::Cyclictest,
        version: None,
        command: None,
        seconds: None,
        assumed: unit.is_none().then_some(
            "values are taken for µs: the file does not tell whether cyclictest ran with --nsecs",
        ),
        columns: columns(&rows, &sums, unit_ns)?,
    })
}

fn row(line: &str) -> Option<(i64, Vec<u64>)> {
    let (index, rest) = line.split_once(char::is_whitespace)?;
    Some((i64::try_from(index.parse::<u64>().ok()?).ok()?, counts(rest)?))
}

fn counts(text: &str) -> Option<Vec<u64>> {
    text.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

fn columns(rows: &[(i64, Vec<u64>)], sums: &Sums, unit_ns: i64) -> Result<Vec<Column>, ReadError> {
    let (Some(min), Some(max), Some(overflows)) = (&sums.min, &sums.max, &sums.overflows) else {
        return Err(ReadError::Unknown(
            "the histogram of cyclictest lacks one of the lines \"# Min Latencies:\", \"# Max Latencies:\" and \
             \"# Histogram Overflows:\" below its rows, so that its longest values are unknown"
                .into(),
        ));
    };
    let threads = min.len();
    let width = rows.first().map_or(threads, |(_, row)| row.len());
    let all = width.checked_sub(threads).filter(|more| *more <= 1);
    let wide = |numbers: &Vec<u64>| numbers.len() == threads || numbers.len() == threads + 1;
    let sound = |(_, row): &(i64, Vec<u64>)| {
        all != Some(1) || row.last() == Some(&total(row[..threads].iter().copied()))
    };
    if all.is_none() || !wide(max) || !wide(overflows) || !rows.iter().all(sound) {
        return Err(ReadError::Disagree(format!(
            "the histogram of cyclictest has {threads} threads by \"# Min Latencies:\" and rows or sums that do not \
             fit; the file is damaged, measure again"
        )));
    }
    let end = rows.last().map_or(0, |(last, _)| last.saturating_add(1));
    let ns = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).saturating_mul(unit_ns);
    let column = |at: usize| {
        let bucket = |(from, row): &(i64, Vec<u64>)| Bucket {
            from_ns: from.saturating_mul(unit_ns),
            to_ns: from.saturating_add(1).saturating_mul(unit_ns),
            count: row[at],
        };
        let mut buckets: Vec<Bucket> =
            rows.iter().filter(|(_, row)| row[at] > 0).map(bucket).collect();
        let counted = total(buckets.iter().map(|bucket| bucket.count));
        if let Some(told) = sums.total.as_ref().and_then(|total| total.get(at))
            && *told != counted
        {
            return Err(ReadError::Disagree(format!(
                "thread {at} has {counted} values in its rows and {told} by \"# Total:\"; expected the same: rows are \
                 missing, measure again"
            )));
        }
        let count = counted.saturating_add(overflows[at]);
        // The largest is rounded down, too.
        let max_ns = ns(max[at].saturating_add(1));
        if overflows[at] > 0 {
            let from_ns = end.saturating_mul(unit_ns);
            buckets.push(Bucket { from_ns, to_ns: max_ns.max(from_ns), count: overflows[at] });
        }
        let thread = u32::try_from(at).ok();
        Ok(Column {
            cpu: None,
            thread,
            what: What::Thread,
            count,
            min_ns: (count > 0).then(|| ns(min[at].saturating_add(1))),
            max_ns: (count > 0).then_some(max_ns),
            buckets,
            open_end: overflows[at] > 0,
        })
    };
    (0..threads).map(column).collect()
}
