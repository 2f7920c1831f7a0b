//! Errors name the words that the user typed, and nothing else.

use std::process::Command;

#[test]
fn noise_on_a_cpu_that_is_not_there_blames_no_other_option() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    // Within the set of the system call, beyond the CPUs of any machine that runs this.
    let output = command.args(["noise", "--cpus", "1023", "--no-trace"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.starts_with("error: CPU 1023: "), "{told}");
    assert!(!told.contains("--cpu"), "{told}");
}

#[test]
fn two_taps_of_one_name_would_write_one_file_and_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    command.args(["capture", "--tap", "one=lo", "--tap", "one=lo", "--out"]).arg(folder.path());
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("one name"), "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
