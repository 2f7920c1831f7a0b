use super::*;
use aya::maps::MapType;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Set in a process that restricts itself and then makes the call of this name.
const CASE: &str = "TAILTRIM_TEST_CALL";
const NAME: &str = "reflect::privilege::calls::tests::calls_that_are_not_listed_end_the_process";

fn ended_by(case: &str) -> ExitStatus {
    let me = std::env::current_exe().unwrap();
    let words = ["--exact", NAME, "--test-threads=1"];
    let mut command = Command::new(me);
    command.args(words).env(CASE, case).env("RUST_BACKTRACE", "1").output().unwrap().status
}

/// Makes the call of a case, in the restricted process.
fn make(case: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    restrict(if case == "map" { Way::Frames } else { Way::Sockets }).unwrap();
    match case {
        "nothing" => {}
        "file" => {
            let refused = File::open("/dev/null").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        }
        "memory" => drop(vec![1_u8; 64 << 20]),
        "socket" => drop(UdpSocket::bind("127.0.0.1:0")),
        "program" => drop(Command::new("true").status()),
        "thread" => drop(std::thread::spawn(|| {}).join()),
        "map" => drop(aya::sys::is_map_supported(MapType::Array)),
        "code" => drop(calls::executable_memory()),
        // A panic also asks for its source lines.
        "panic" => panic!("asked for"),
        other => panic!("{other}"),
    }
}

#[test]
fn calls_that_are_not_listed_end_the_process() {
    if let Ok(case) = std::env::var(CASE) {
        return make(&case);
    }
    // The counterpart: calls that are listed, and calls that are refused without an end of the process.
    for case in ["nothing", "file", "memory"] {
        let status = ended_by(case);
        assert!(status.success(), "{case}: {status}");
    }
    // The exit code of a test that panicked.
    assert_eq!(ended_by("panic").code(), Some(101));
    for case in ["socket", "program", "thread", "map", "code"] {
        let status = ended_by(case);
        assert_eq!(status.signal(), Some(libc::SIGSYS), "{case}: {status}");
    }
}

#[test]
fn the_documented_calls_are_those_that_are_allowed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let text = std::fs::read_to_string(path).unwrap();
    let documented = |row: &str| -> BTreeSet<String> {
        let start = format!("| {row} | ");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
        let line = lines.next().unwrap_or_else(|| panic!("no row {row}"));
        line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let names = |calls: &[Call]| -> BTreeSet<String> {
        calls.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    for (row, calls) in [
        ("all modes", ALWAYS),
        ("socket, xdp", own(Way::Sockets)),
        ("socket, xdp", own(Way::Xdp)),
        ("af-xdp", own(Way::Frames)),
        ("nat", own(Way::Nat)),
        ("refused", LOOKS),
    ] {
        assert_eq!(documented(row), names(calls), "{row}");
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(documented("refused on x86"), names(OLDER_LOOKS));
    }
}
