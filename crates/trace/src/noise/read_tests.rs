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
    assert_eq!(
        (late.p50_ns, late.p99_ns, late.p999_ns),
        (Some(15_000), Some(43_000), Some(1_987_000))
    );
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
    for name in ["oslat.json", "cyclictest.json", "rtla-osnoise.txt", "rtla-timerlat.txt"] {
        let text = recorded(name);
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
