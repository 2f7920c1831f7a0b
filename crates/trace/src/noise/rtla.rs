//! `rtla osnoise hist` and `rtla timerlat hist`: text, a column for each CPU.
//!
//! A row begins with the start of its bucket. The width of buckets is not given, and rows of zeros are left out: the
//! width is at most the greatest common divisor of the starts.

use super::{Bucket, Column, Findings, ReadError, Tool, What, cyclictest_text, total};

/// Rows below the buckets, by column.
#[derive(Default)]
struct Sums {
    over: Vec<Option<i64>>,
    count: Vec<Option<i64>>,
    min: Vec<Option<i64>>,
    max: Vec<Option<i64>>,
}

/// State of reading.
struct Table {
    columns: Vec<(u32, What)>,
    unit_ns: i64,
    rows: Vec<(i64, Vec<u64>)>,
    sums: Sums,
}

pub(super) fn read(text: &str) -> Result<Findings, ReadError> {
    let mut lines = text.lines().enumerate();
    let tool = loop {
        let Some((_, line)) = lines.next() else { return Err(unknown(text)) };
        match line.trim() {
            "# RTLA osnoise histogram" => break Tool::Osnoise,
            "# RTLA timerlat histogram" => break Tool::Timerlat,
            _ => {}
        }
    };
    let (mut unit_ns, mut seconds, mut table) = (1_000, None, None);
    for (before, line) in lines {
        let line_error = |problem: String| ReadError::Line { number: before + 1, problem };
        let line = line.trim();
        if let Some(unit) = line.strip_prefix("# Time unit is ") {
            unit_ns = if unit.starts_with("nano") { 1 } else { 1_000 };
        } else if let Some(text) = line.strip_prefix("# Duration:") {
            seconds = Some(duration_s(text).ok_or_else(|| {
                line_error(format!("{line:?}; expected \"# Duration:\" with days and HH:MM:SS"))
            })?);
        } else if let Some(names) = line.strip_prefix("Index") {
            let columns = names.split_ascii_whitespace().map(|name| column(tool, name));
            let columns = columns.collect::<Option<Vec<_>>>().ok_or_else(|| {
                line_error(format!(
                    "{line:?}; expected columns such as CPU-000, IRQ-000 or Thr-000"
                ))
            })?;
            table = Some(Table { columns, unit_ns, rows: Vec::new(), sums: Sums::default() });
        } else if let Some(table) = &mut table {
            if !table.take(line).map_err(line_error)? {
                break;
            }
        } else if !line.starts_with('#') && !line.is_empty() {
            return Err(line_error(format!(
                "{line:?}; expected the line \"Index\" with the columns: run rtla without --no-header and --no-index"
            )));
        }
    }
    let table = table.ok_or_else(|| {
        ReadError::Unknown("the file ends before the line \"Index\" of its histogram".into())
    })?;
    Ok(Findings {
        tool,
        version: None,
        command: None,
        seconds,
        assumed: None,
        columns: table.columns()?,
    })
}

fn unknown(text: &str) -> ReadError {
    let snapshot = ["Timer Latency", "Operating System Noise"];
    if snapshot.iter().any(|title| text.contains(title)) {
        return ReadError::Unknown(
            "this is output of `rtla … top`, which has no distribution".into(),
        );
    }
    if cyclictest_text::has_threads(text) {
        return ReadError::Unknown(
            "this is output of cyclictest without a histogram: measure again with --histogram=400, for example".into(),
        );
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let first: String = first.chars().take(60).collect();
    ReadError::Unknown(format!(
        "line 1 is {first:?} and none says \"# RTLA … histogram\" or \"# Histogram\""
    ))
}

/// `  0 00:01:30`
fn duration_s(text: &str) -> Option<f64> {
    let (days, time) = text.trim().split_once(' ')?;
    let mut seconds: f64 = 0.0;
    let parts: Vec<&str> = time.trim().split(':').collect();
    if parts.len() != 3 {
        return None;
    }
    for part in parts {
        seconds = seconds * 60.0 + f64::from(part.parse::<u32>().ok()?);
    }
    Some(f64::from(days.parse::<u32>().ok()?) * 86_400.0 + seconds)
}

fn column(tool: Tool, name: &str) -> Option<(u32, What)> {
    let (what, cpu) = name.split_once('-')?;
    let what = match (tool, what) {
        (Tool::Osnoise, "CPU") => What::Gap,
        (Tool::Timerlat, "IRQ") => What::Interrupt,
        (Tool::Timerlat, "Thr") => What::Thread,
        (Tool::Timerlat, "Usr") => What::Program,
        _ => return None,
    };
    Some((cpu.parse().ok()?, what))
}

impl Table {
    /// Takes a line; `false` where something else follows.
    fn take(&mut self, line: &str) -> Result<bool, String> {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { return Ok(true) };
        let sums = match first {
            "over:" => &mut self.sums.over,
            "count:" => &mut self.sums.count,
            "min:" => &mut self.sums.min,
            "max:" => &mut self.sums.max,
            "avg:" => return Ok(true),
            _ => {
                let Ok(index) = first.parse::<i64>() else { return Ok(false) };
                let counts = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
                let counts = counts.filter(|counts| counts.len() == self.columns.len());
                let Some(counts) = counts else { return Err(self.expected(line)) };
                if index < 0 || self.rows.last().is_some_and(|(last, _)| *last >= index) {
                    return Err(format!(
                        "{line:?} comes after a larger index; the file is damaged"
                    ));
                }
                self.rows.push((index, counts));
                return Ok(true);
            }
        };
        // A column in which nothing was measured has a dash.
        *sums = words.map(|word| word.parse().ok()).collect();
        // Where no CPU measured anything, newer versions write a single 0.
        if sums.len() == self.columns.len() || self.columns.is_empty() {
            Ok(true)
        } else {
            Err(self.expected(line))
        }
    }

    fn expected(&self, line: &str) -> String {
        format!(
            "{line:?}; expected a number for each of the {} columns: the file is damaged, measure again",
            self.columns.len()
        )
    }

    /// Greatest common divisor of the buckets' starts.
    fn width(&self) -> i64 {
        let common = |a: i64, b: i64| {
            let (mut a, mut b) = (a, b);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        self.rows.iter().map(|(index, _)| *index).fold(0, common)
    }

    fn columns(&self) -> Result<Vec<Column>, ReadError> {
        let width = self.width();
        let of_column = |at: usize, (cpu, what): (u32, What)| {
            let of = |sums: &[Option<i64>]| sums.get(at).copied().flatten();
            let max_ns =
                of(&self.sums.max).map(|max| max.saturating_add(1).saturating_mul(self.unit_ns));
            let mut buckets = Vec::new();
            for (index, counts) in &self.rows {
                let from_ns = index.saturating_mul(self.unit_ns);
                let to_ns = match (width, max_ns) {
                    // The only bucket.
                    (0, Some(max_ns)) => max_ns,
                    _ => index.saturating_add(width.max(1)).saturating_mul(self.unit_ns),
                };
                if counts[at] > 0 {
                    buckets.push(Bucket { from_ns, to_ns, count: counts[at] });
                }
            }
            let over = of(&self.sums.over).unwrap_or(0).cast_unsigned();
            if over > 0 {
                // Behind the last row of the file, or further.
                let last = self.rows.last().map_or(0, |(index, _)| index.saturating_add(1));
                let from_ns = last.saturating_mul(self.unit_ns);
                let Some(max_ns) = max_ns else {
                    return Err(ReadError::Disagree(format!(
                        "CPU {cpu} has {over} values beyond the histogram and no line \"max:\" says how long; \
                         expected one: run rtla without --no-summary"
                    )));
                };
                buckets.push(Bucket { from_ns, to_ns: max_ns.max(from_ns), count: over });
            }
            let counted = total(buckets.iter().map(|bucket| bucket.count));
            let end = buckets.last().map(|bucket| bucket.to_ns);
            Ok(Column {
                cpu: Some(cpu),
                thread: None,
                what,
                count: of(&self.sums.count).map_or(counted, i64::cast_unsigned),
                min_ns: of(&self.sums.min)
                    .map(|min| min.saturating_add(1).saturating_mul(self.unit_ns)),
                max_ns: max_ns.or(end),
                buckets,
                open_end: over > 0,
            })
        };
        let columns = self.columns.iter().copied().enumerate();
        columns.map(|(at, column)| of_column(at, column)).collect()
    }
}
