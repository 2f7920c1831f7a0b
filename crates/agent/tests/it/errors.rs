//! Errors name what the user typed, and nothing else.

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
