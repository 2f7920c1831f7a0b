//! Results of other noise tools as `noise --read` shows them.

use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// 990 values in the table of a thread and 10 beyond it; the longest took 500 µs and a fraction.
const HISTOGRAM: &str = "# Histogram\n000002 000500\n000003 000490\n# Min Latencies: 00002\n\
    # Avg Latencies: 00007\n# Max Latencies: 00500\n# Histogram Overflows: 00010\n\
    # Histogram Overflow at cycle number:\n# Thread 0: 00001 00002 # 00008 others\n";

fn read(text: &str, options: &[&str]) -> (String, String) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("noise.txt"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    let command = command.args(["noise", "--read", "noise.txt"]).args(options);
    let output = command.current_dir(folder.path()).output().unwrap();
    let [told, wrong] = [output.stdout, output.stderr].map(|all| String::from_utf8(all).unwrap());
    (told, wrong)
}

#[test]
fn percentiles_beyond_a_table_are_unknown_and_bounded() {
    let (told, _) = read(HISTOGRAM, &[]);
    let expected = "thread 0: cyclictest: timers, late by: 1,000; p50 ≤ 3.00 µs, p99 ≤ 4.00 µs, p99.9 \
        unknown (≤ 501 µs), longest ≤ 501 µs\n";
    assert!(told.starts_with(expected), "{told}");
    let beyond =
        "10 of them beyond the table of cyclictest: unknown, from 4.00 µs to at most 501 µs";
    assert!(told.contains(beyond) && told.contains("values are taken for µs"), "{told}");

    let (told, _) = read(HISTOGRAM, &["--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let [cpu] = told["cpus"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&cpu["cpu"], &cpu["thread"]), (&serde_json::Value::Null, &0.into()));
    assert_eq!(cpu["beyond"], serde_json::json!({"from_ns": 4_000, "gaps": 10}));
    assert!(told["read"]["assumed"].as_str().unwrap().contains("--nsecs"));
}

#[test]
fn a_text_without_a_histogram_is_one_error_with_advice() {
    let thread =
        "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      12\n";
    let (told, wrong) = read(thread, &[]);
    assert!(told.is_empty() && wrong.lines().count() == 1, "{told}{wrong}");
    assert!(wrong.contains("noise.txt: ") && wrong.contains("--histogram=400"), "{wrong}");
}
