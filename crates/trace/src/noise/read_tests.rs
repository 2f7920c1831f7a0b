//! Reading real output of the tools.

use super::*;
use std::path::Path;

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/noise");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn oslat() {
    let findings = read(&recorded("oslat.json")).unwrap();
    assert_eq!((findings.tool, findings.seconds), (Tool::Oslat, Some(2.997)));
    assert_eq!(findings.version.as_deref(), Some("2.40"));
    assert!(findings.command.as_deref().unwrap().starts_with("oslat --json"));
    let [column] = findings.columns.as_slice() else { panic!("{findings:?}") };
    assert_eq!((column.cpu, column.what, column.max_ns), (Some(1), What::Gap, Some(51_418_000)));
    // "1" has the turns that took less than 1 µs; the last one has all that took longer.
    assert_eq!(column.buckets[0], Bucket { from_ns: 0, to_ns: 1_000, count: 121_198_961 });
    let last = Bucket { from_ns: 31_000, to_ns: 51_418_000, count: 120 };
    assert_eq!(column.buckets.last(), Some(&last));
    let gaps = column.distribution(1_000);
    assert_eq!(gaps.gaps, 1_586);
    assert_eq!((gaps.p50_ns, gaps.p999_ns), (Some(16_000), Some(51_418_000)));
    let steps: Vec<_> = gaps.at_least.iter().map(|step| (step.ns / 1_000, step.gaps)).collect();
    assert_eq!(
        steps[..4],
        [(1, Some(1_586)), (2, Some(1_402)), (5, Some(1_132)), (10, Some(1_100))]
    );
    assert_eq!(steps[4..7], [(20, Some(451)), (50, None), (100, None)]);
    assert_eq!(steps.last(), Some(&(100_000, Some(0))));
}

#[test]
fn cyclictest() {
    let findings = read(&recorded("cyclictest.json")).unwrap();
    assert_eq!((findings.tool, findings.seconds), (Tool::Cyclictest, None));
    let column = &findings.columns[0];
    assert_eq!((column.cpu, column.count, column.counted()), (Some(1), 2_995, 2_995));
    assert_eq!((column.min_ns, column.max_ns), (Some(12_000), Some(1_987_000)));
    // Values beyond --histogram are between its end, which the file does not have, and the longest.
    let beyond = Bucket { from_ns: 117_000, to_ns: 1_987_000, count: 13 };
    assert_eq!(column.buckets.last(), Some(&beyond));
    let late = column.distribution(0);
    assert_eq!(late.beyond, Some(Beyond { from_ns: 117_000, gaps: 13 }));
    assert_eq!(
        (late.p50_ns, late.p99_ns, late.p999_ns),
        (Some(15_000), Some(43_000), Some(1_987_000))
    );
}

/// Output of `cyclictest --histogram`: of threads their values, in a table of so many rows.
struct Printed {
    threads: Vec<Vec<u64>>,
    rows: u64,
    /// `--histofall`: a column more, of all threads.
    all: bool,
    /// As before rt-tests 2: rows of zeros, and a line "# Total:".
    old: bool,
}

impl Printed {
    fn text(&self) -> String {
        let beyond = |values: &[u64]| values.iter().filter(|value| **value >= self.rows).count();
        let mut every: Vec<&[u64]> = self.threads.iter().map(Vec::as_slice).collect();
        let together: Vec<u64> = self.threads.concat();
        if self.all {
            every.push(&together);
        }
        let words = |of: &dyn Fn(&[u64]) -> u64, columns: &[&[u64]]| -> String {
            columns.iter().map(|values| format!(" {:05}", of(values))).collect()
        };
        let mut text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n".to_owned();
        for row in 0..self.rows {
            let counts: Vec<usize> = every
                .iter()
                .map(|values| values.iter().filter(|value| **value == row).count())
                .collect();
            if self.old || counts.iter().any(|count| *count > 0) {
                let counts: Vec<String> =
                    counts.iter().map(|count| format!("{count:06}")).collect();
                text += &format!("{row:06} {}\n", counts.join("\t"));
            }
        }
        if self.old {
            let total = words(&|values| (values.len() - beyond(values)) as u64, &every);
            text += &format!("# Total:{total}\n");
        }
        let (max, over) = (
            words(&|values| *values.iter().max().unwrap(), &every),
            words(&|values| beyond(values) as u64, &every),
        );
        let each = &every[..self.threads.len()];
        let min = words(&|values| *values.iter().min().unwrap(), each);
        text += &format!("# Min Latencies:{min}\n# Avg Latencies:{min}\n# Max Latencies:{max}\n");
        text + &format!(
            "# Histogram Overflows:{over}\n# Histogram Overflow at cycle number:\n# Thread 0: 00007\n\n"
        )
    }
}

#[test]
fn cyclictest_as_text() {
    let first: Vec<u64> =
        (0..1_000).map(|turn| if turn < 5 { 150 + turn } else { 2 + turn % 3 }).collect();
    for (all, old) in [(false, false), (true, false), (false, true), (true, true)] {
        let printed = Printed { threads: vec![first.clone(), vec![9; 4]], rows: 100, all, old };
        let findings = read(&printed.text()).unwrap();
        assert_eq!((findings.tool, findings.columns.len()), (Tool::Cyclictest, 2));
        assert!(findings.assumed.unwrap().contains("µs"));
        let [column, other] = findings.columns.as_slice() else { panic!() };
        assert_eq!((column.name().as_str(), column.count), ("thread 0", 1_000));
        assert_eq!((column.min_ns, column.max_ns), (Some(3_000), Some(155_000)));
        assert_eq!(column.buckets[0], Bucket { from_ns: 2_000, to_ns: 3_000, count: 332 });
        let late = column.distribution(0);
        assert_eq!((late.p50_ns, late.p99_ns), (Some(4_000), Some(5_000)));
        // Of the five beyond the table only the longest is known; newer versions do not tell where it ends.
        let end_ns = if old { 100_000 } else { 10_000 };
        assert_eq!(late.beyond, Some(Beyond { from_ns: end_ns, gaps: 5 }));
        assert_eq!((late.p999_ns, late.longest_ns), (Some(155_000), Some(155_000)));
        let steps: Vec<_> = late.at_least.iter().map(|step| (step.ns / 1_000, step.gaps)).collect();
        let at_50 = if old { Some(5) } else { None };
        assert_eq!(steps[3..7], [(10, Some(5)), (20, at_50), (50, at_50), (100, at_50)]);
        assert_eq!(steps[7], (1_000, Some(0)));
        let exact = other.distribution(0);
        assert_eq!((exact.beyond, exact.p999_ns), (None, Some(10_000)));
    }
}

#[test]
fn only_the_lines_of_threads_tell_the_unit_of_a_text() {
    let text = Printed { threads: vec![vec![5, 6, 7]], rows: 10, all: true, old: false }.text();
    let us = "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      12\n";
    let ns =
        "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:   2000 Act:    3000 Avg:    3000 Max:   12000\n";
    let told = |before: &str| {
        let findings = read(&format!("{before}{text}")).unwrap();
        (findings.columns[0].max_ns, findings.assumed.is_some())
    };
    assert_eq!(told(""), (Some(8_000), true));
    assert_eq!(told(us), (Some(8_000), false));
    assert_eq!(told(ns), (Some(8), false));
    let without = read(us).unwrap_err().to_string();
    assert!(
        without.contains("cyclictest without a histogram") && without.contains("--histogram=400"),
        "{without}"
    );
}

#[test]
fn a_text_of_cyclictest_that_was_changed_is_told() {
    let text =
        Printed { threads: vec![vec![5, 6], vec![7, 200]], rows: 10, all: true, old: true }.text();
    let told = |from: &str, to: &str| {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        read(&changed).unwrap_err().to_string()
    };
    assert!(told("000007 000000\t000001\t000001\n", "").contains("by \"# Total:\""));
    assert!(told("000001\t000001\n", "000001\t000003\n").contains("damaged"));
    assert!(told("000004 000000\t", "000004 ").contains("line 7: "));
    assert!(told("000004 ", "....").contains("line 7: "));
    assert!(told("# Max Latencies", "# Most Latencies").contains("# Max Latencies"));
    assert!(told("# Thread 0", "# Histogram\n# Thread 0").contains("several histograms"));
}

/// Lines as `kubectl logs --timestamps`, `ts` or the journal print them, and what commands that rtla starts have printed.
#[test]
fn what_a_log_has_put_before_each_line() {
    let logged = |text: &str| -> String {
        let line =
            |(at, line): (usize, &str)| format!("Nov 28 13:27:{at:02} host rtla[99]: {line}\n");
        text.lines().enumerate().map(|(at, text)| line((at % 60, text))).collect()
    };
    for text in [
        recorded("rtla-osnoise.txt"),
        recorded("rtla-timerlat.txt"),
        Printed { threads: vec![vec![5, 6], vec![7, 200]], rows: 10, all: false, old: false }
            .text(),
    ] {
        let plain = read(&text).unwrap();
        assert_eq!(read(&logged(&text)).unwrap(), plain);
        assert_eq!(read(&text.replace('\n', "\r\n")).unwrap(), plain);
        let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
        assert_eq!(read(&format!("  Saving trace to x.txt\n{indented}")).unwrap(), plain);
        assert_eq!(read(&format!("TestOutput\n1{text}")).unwrap(), plain);
        let mixed = format!("{}Nov 28 13:27:59 host sshd[7]: x\n", logged(&text));
        let error = read(&mixed).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("what the log has put there"), "{error}");
    }
}

#[test]
fn cyclictest_in_nanoseconds_and_without_a_histogram() {
    let findings = read(&recorded("cyclictest-nanoseconds.json")).unwrap();
    let column = &findings.columns[0];
    assert_eq!((column.max_ns, column.counted()), (Some(2_064_006), 1_993));
    assert_eq!(column.buckets[0], Bucket { from_ns: 14_687, to_ns: 14_688, count: 1 });

    let findings = read(&recorded("cyclictest-without-histogram.json")).unwrap();
    let late: Vec<_> = findings.columns.iter().map(|column| column.distribution(0)).collect();
    assert_eq!((late[0].gaps, late[0].p50_ns, late[0].longest_ns), (1_993, None, Some(2_075_000)));
    assert_eq!((late[1].gaps, late[1].longest_ns), (1_000, Some(201_000)));
}

#[test]
fn osnoise() {
    let findings = read(&recorded("rtla-osnoise.txt")).unwrap();
    assert_eq!((findings.tool, findings.seconds), (Tool::Osnoise, Some(5.0)));
    let cpus: Vec<_> = findings.columns.iter().map(|column| (column.cpu, column.count)).collect();
    assert_eq!(cpus, [(Some(0), 960), (Some(1), 1_078)]);
    let column = &findings.columns[0];
    assert_eq!(column.buckets[1], Bucket { from_ns: 10_000, to_ns: 20_000, count: 202 });
    assert_eq!(column.counted(), 960);
    assert_eq!(column.max_ns, Some(20_271_000));
    // The first bucket may have values below 1 µs, in an unknown number.
    let (_, from_ns) = column.bounds(1_000);
    assert_eq!(from_ns, 10_000);
    assert_eq!(column.distribution(1_000).at_least[0].gaps, None);

    let none = read(&recorded("rtla-osnoise-none.txt")).unwrap();
    assert_eq!((none.columns.len(), none.seconds), (0, Some(2.0)));
}

#[test]
fn timerlat() {
    let findings = read(&recorded("rtla-timerlat.txt")).unwrap();
    let columns: Vec<_> = findings.columns.iter().map(|c| (c.cpu, c.what, c.count)).collect();
    let (irq, thread) = (What::Interrupt, What::Thread);
    assert_eq!(
        columns,
        [
            (Some(0), irq, 4_636),
            (Some(0), thread, 4_636),
            (Some(1), irq, 4_626),
            (Some(1), thread, 4_626)
        ]
    );
    for column in &findings.columns {
        assert_eq!(column.counted(), column.count);
        assert!(column.is_sound(), "{column:?}");
    }
    let felt: Vec<_> = findings.felt().map(|column| (column.cpu, column.what)).collect();
    assert_eq!(felt, [(Some(0), thread), (Some(1), thread)]);

    let nano = read(&recorded("rtla-timerlat-nano.txt")).unwrap();
    assert_eq!(nano.columns[1].max_ns, Some(9_667_731));
    assert!(nano.columns[1].buckets[0].to_ns - nano.columns[1].buckets[0].from_ns == 1_000);
}

/// The format of newer versions: a third column, dashes, and sums of all CPUs at the end.
#[test]
fn what_newer_versions_of_rtla_add() {
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   1 00:01:01\n\
        Index   IRQ-002   Thr-002   Usr-002\n0   7   0   0\n4   0   6   1\nover:   0   0   0\n\
        count:  7   6   1\nmin:   0   4   4\navg:  0.1  4.2  4.0\nmax:   0   4   -\n\
        ALL:   IRQ   Thr   Usr\ncount:   7   6   1\n\nsomething else\n";
    let findings = read(text).unwrap();
    assert_eq!(findings.seconds, Some(86_461.0));
    let program = findings.felt().next().unwrap();
    assert_eq!((program.what, program.count, program.max_ns), (What::Program, 1, Some(8_000)));
}

#[test]
fn one_error_that_says_what_was_expected() {
    let told = |text: &str| read(text).unwrap_err().to_string();
    assert!(told("").starts_with("the file is empty; expected"));
    assert!(told("nonsense\n").contains("line 1 is \"nonsense\""));
    assert!(told("{}").contains("no \"thread\""));
    assert!(told("{\"thread\": {\"0\": {\"cpu\": 1").starts_with("line 1, column"));
    let thread =
        |rest: &str| format!("{{\"thread\": {{\"0\": {{\"cpu\":1,\"min\":1,\"max\":2{rest}}}}}}}");
    assert!(told(&thread("")).contains("neither \"cycles\" nor \"freq\""));
    let more = thread(",\"cycles\":1,\"histogram\":{\"1\":2}");
    assert!(told(&more).contains("1 cycles and 2"));
    assert!(told(&recorded("rtla-timerlat-top.txt")).contains("has no distribution"));
    let osnoise = recorded("rtla-osnoise.txt");
    let damaged = told(&osnoise.replace("10          202       268", "10          202"));
    assert!(
        damaged.starts_with("line 6: ") && damaged.contains("each of the 2 columns"),
        "{damaged}"
    );
    let headless = osnoise.replace("Index   CPU-000   CPU-001", "");
    assert!(told(&headless).contains("--no-header"));
    let endless: String = osnoise.lines().take(40).collect::<Vec<_>>().join("\n");
    assert!(read(&endless).is_ok());
    let sumless = osnoise.replace("max:", "most:");
    assert!(told(&sumless).contains("--no-summary"), "{}", told(&sumless));
    let biased = recorded("oslat.json").replace("-C 0", "-B");
    assert!(told(&biased).contains("--bias"));
}

#[test]
fn damaged_files_are_refused_or_read_but_never_more_than_that() {
    let mut texts: Vec<String> =
        ["oslat.json", "cyclictest.json", "rtla-osnoise.txt", "rtla-timerlat.txt"]
            .map(recorded)
            .into();
    texts.push(
        Printed { threads: vec![vec![5, 6], vec![7, 200]], rows: 10, all: true, old: true }.text(),
    );
    for text in texts {
        for end in (0..text.len()).step_by(31) {
            let _ = read(&text[..end]);
            for more in ["-9", "9223372036854775807", "0", " "] {
                let odd = format!("{}{more}{}", &text[..end], &text[end..]);
                if let Ok(findings) = read(&odd) {
                    findings.columns.iter().for_each(|column| drop(column.distribution(1_000)));
                }
            }
        }
    }
}
