//! Mounts of tracefs on a host that has none.

use super::*;
use std::io::Write;

/// Set for the process that sees no tracefs.
const WITHOUT: &str = "TAILTRIM_TEST_TRACE_WITHOUT";
/// In a mount namespace of its own, with what is below /sys/kernel/debug.
const UNMOUNT: &str =
    "for place in /sys/kernel/tracing /sys/kernel/debug/tracing /sys/kernel/debug; do
    while umount --lazy $place 2>/dev/null; do :; done
done
exec \"$@\"";

#[test]
fn root_without_a_mounted_tracefs_traces_all_the_same() {
    let test = "trace::mounts::root_without_a_mounted_tracefs_traces_all_the_same";
    if let Some(cpu) = std::env::var_os(WITHOUT) {
        trace_without_a_mount(cpu.to_str().unwrap().parse().unwrap());
    }
    let Some((_one, cpu, _)) = prepared() else { return };
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", UNMOUNT, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(WITHOUT, cpu.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let ended = child.wait_with_output().unwrap();
    let told = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(told[0].contains("traced"), "{told:?}");
    // Its mount is gone. Its instances are the host's, and the next trace removes them.
    assert_eq!(left(pid).len(), 2);
    drop(Recorder::prepare(&request(cpu)).unwrap());
    assert!(left(pid).is_empty());
}

/// Traces, and crashes while it traces again.
fn trace_without_a_mount(cpu: u32) -> ! {
    assert!(!Path::new(INSTANCES).exists());
    let mut recorder = Recorder::prepare(&request(cpu)).unwrap();
    recorder.arm().unwrap();
    let before = timer_interrupts(cpu);
    yield_to_each_other(cpu, |_| timer_interrupts(cpu) < before + 20);
    let trace = recorder.finish().unwrap();
    assert_eq!(trace.header.source, Source::Tracefs);
    assert!(!named(&trace.events, Kind::Irq, "local_timer").is_empty(), "{:?}", trace.counts);
    let mut again = Recorder::prepare(&request(cpu)).unwrap();
    again.arm().unwrap();
    std::io::stdout().write_all(b"traced\n").unwrap();
    std::process::abort()
}
