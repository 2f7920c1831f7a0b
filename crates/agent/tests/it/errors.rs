//! Errors name the words that the user typed, and nothing else.

use std::path::Path;
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

/// Ends with its code and what it told.
fn agent(place: &Path, line: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    let output = command.args(line.split(' ')).current_dir(place).output().unwrap();
    let told = output.stdout.into_iter().chain(output.stderr).collect();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[test]
fn no_command_replaces_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00";
    let packed = zstd::encode_all(&pcap[..], 1).unwrap();
    let place = folder.path();
    for (name, content) in [("pre.pcap", &pcap[..]), ("pre.pcap.zst", &packed)] {
        for line in [
            "trace --cpus 0 --duration 10ms --out PRE",
            "counters --cpus 0 --duration 10ms --out PRE",
            "noise --cpus 0 --no-trace --duration 10ms --hgrm PRE",
            "audit --capture PRE",
            "generate --interface lo --rate 1kpps --count 1 --log PRE",
            "generate --interface lo --rate 1kpps --count 1 --stall-log PRE",
            "forward --ingress lo --egress lo --work 1us --stall-log PRE",
            "disturb thread:1ms,20ms --cpu 0 --pid 1 --log PRE",
        ] {
            std::fs::write(place.join(name), content).unwrap();
            let (code, told) = agent(place, &line.replace("PRE", name));
            // Some need rights of root first.
            let refused = told.contains("is a capture, or compressed, so it is not replaced");
            assert!(code == Some(3) || code == Some(2) && refused, "{line}: {code:?} {told}");
            assert_eq!(std::fs::read(place.join(name)).unwrap(), content, "{line}");
        }
    }
}

#[test]
fn a_capture_typed_twice_is_refused_before_its_ports_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("caps/ingress.pcap");
    std::fs::create_dir(folder.path().join("caps")).unwrap();
    std::fs::write(&capture, "packets").unwrap();
    let (code, told) = agent(folder.path(), "capture --tap ingress=none --out caps --duration 1s");
    assert_eq!(code, Some(2), "{told}");
    assert_eq!(told, "error: caps/ingress.pcap: exists: choose another --out, or remove it\n");
    assert_eq!(std::fs::read(&capture).unwrap(), b"packets");
    // A port that is not there leaves no file that would be refused the next time.
    let (code, told) = agent(folder.path(), "capture --tap one=none --out other");
    assert_eq!(code, Some(3), "{told}");
    assert!(!folder.path().join("other/one.pcap").exists());
}

#[test]
fn what_is_not_there_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (line, code, expected) in [
        ("counters --cpus 1023 --out c.jsonl", 3, "CPU 1023: not online here"),
        ("counters --cpus 0,1022-1023 --out c.jsonl", 3, "CPUs 1022-1023: not online here"),
        // Beyond the largest number that Linux gives (PID_MAX_LIMIT).
        ("trace --cpus 0 --pid 4194305", 3, "--pid 4194305: no such process here"),
        ("ping -p icmp --dst-port 7 127.0.0.1", 2, "--dst-port: ICMP has no ports"),
        ("ping -p icmp 127.0.0.1:7", 2, "127.0.0.1:7: ICMP has no ports"),
    ] {
        let (found, told) = agent(folder.path(), line);
        assert_eq!(found, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_packet_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let head = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let record = [1_u32, 0, 60, 60];
    let mut bytes: Vec<u8> =
        head.iter().chain(&record).flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend([0; 60 + 5]);
    std::fs::write(folder.path().join("cut.pcap"), bytes).unwrap();
    let (code, told) = agent(folder.path(), "analyze cut.pcap cut.pcap");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("use --salvage to analyse the 1 packet before the damage"), "{told}");
}

#[test]
fn a_wrong_option_is_told_in_the_words_of_the_package() {
    let (code, told) = agent(Path::new("."), "trace --cpu 1");
    assert_eq!(code, Some(2));
    assert!(told.ends_with("Try 'tailtrim-agent trace -h' for help.\n"), "{told}");
}
