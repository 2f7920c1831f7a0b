//! Everything that is printed has its control characters escaped: names and values come from files and hosts that
//! others made.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Clears a terminal, ends a line, reverses the direction of writing, and is one control character to terminals of 8 bits.
const HOSTILE: &str = "\x1b[2J\r\x07\u{202e}\u{9b}31m\u{2028}";

fn agent(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    command.args(arguments).current_dir(folder).env("COLUMNS", "80").output().unwrap()
}

fn is_acted_on(sign: char) -> bool {
    let reversing = |sign| matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (sign.is_control() && sign != '\n' && sign != '\t') || reversing(sign)
}

/// Runs the agent, and returns its output, which must have nothing on which a terminal acts. Its errors are one line,
/// and one for the hint.
fn shown(arguments: &[&str], folder: &Path) -> (String, String) {
    let output = agent(arguments, folder);
    let [told, wrong] = [output.stdout, output.stderr].map(|all| String::from_utf8(all).unwrap());
    for text in [&told, &wrong] {
        let found = text.chars().find(|sign| is_acted_on(*sign));
        assert_eq!(found, None, "{arguments:?}: {text:?}");
    }
    if !wrong.starts_with("error: invalid value") {
        let known = |line: &str| line.starts_with("error: ") || line.starts_with("hint: ");
        assert!(wrong.lines().all(known) && wrong.lines().count() <= 2, "{arguments:?}: {wrong:?}");
    }
    (told, wrong)
}

/// A host whose boot line, kernel, CPU, interfaces, processes and files have such names.
fn host() -> TempDir {
    let folder = TempDir::new().unwrap();
    let files = [
        ("proc/cmdline", format!("quiet isolcpus=1{HOSTILE} rcu_nocbs_poll{HOSTILE} x{HOSTILE}=1")),
        ("proc/sys/kernel/osrelease", format!("6.1.0{HOSTILE}")),
        ("proc/sys/kernel/numa_balancing", format!("1{HOSTILE}")),
        ("proc/sys/vm/stat_interval", format!("5{HOSTILE}")),
        ("sys/kernel/mm/transparent_hugepage/enabled", format!("[always{HOSTILE}] never")),
        (
            "proc/cpuinfo",
            format!("vendor_id : GenuineIntel\nmodel name : Test{HOSTILE}\nflags : tsc{HOSTILE}"),
        ),
        ("proc/812/comm", "irqbalance".to_owned()),
        ("sys/devices/system/cpu/online", "0-1".to_owned()),
        ("sys/devices/system/cpu/possible", "0-1".to_owned()),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            format!("hpet{HOSTILE}"),
        ),
        (
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            format!("hpet{HOSTILE}"),
        ),
        ("proc/irq/7/smp_affinity_list", format!("0-1{HOSTILE}")),
        ("etc/sysctl.d/x.conf", format!("vm.stat_interval = 1{HOSTILE}")),
        (&format!("sys/class/net/e\nth{HOSTILE}/operstate"), "up".to_owned()),
        (&format!("sys/class/net/e\nth{HOSTILE}/device/numa_node"), "0".to_owned()),
    ];
    for (path, content) in files {
        let path = folder.path().join("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    folder
}

#[test]
fn a_hostile_host_is_audited() {
    let folder = host();
    for format in ["table", "json", "junit", "prometheus"] {
        let (told, _) =
            shown(&["audit", "--root", "root", "--all", "--format", format], folder.path());
        assert!(!told.is_empty());
    }
    let (table, _) = shown(&["audit", "--root", "root", "--all"], folder.path());
    assert!(table.contains("Test\\x1b[2J\\x0d\\x07\\u202e\\u009b31m"), "{table}");
    let (lint, _) = shown(&["audit", "--boot-line", "--root", "root"], folder.path());
    assert!(lint.contains("\\x1b[2J"), "{lint}");
    shown(&["audit", "--boot-line", &format!("isolcpus=1 a{HOSTILE}")], folder.path());
    shown(&["audit", "--explain", &format!("ISO{HOSTILE}")], folder.path());
    shown(&["audit", "--only", &format!("ISO{HOSTILE}")], folder.path());
}

#[test]
fn a_hostile_host_is_planned_for() {
    let folder = host();
    let on_root = ["--root", "root", "--profile", "latency-kernel"];
    let nic = format!("e\nth{HOSTILE}");
    let (plan, wrong) = shown(&[&["tune", "plan"], &on_root[..]].concat(), folder.path());
    assert!(plan.contains("\\x1b[2J"), "{plan}{wrong}");
    shown(&[&["tune", "plan", "--interface", &nic], &on_root[..]].concat(), folder.path());
    let (_, wrong) =
        shown(&[&["tune", "plan", "--interface", "x"], &on_root[..]].concat(), folder.path());
    assert!(wrong.contains("e\\nth\\x1b[2J"), "{wrong}");
    for format in ["tuned", "sysctl", "grub", "systemd"] {
        shown(&[&["tune", "export", "--format", format], &on_root[..]].concat(), folder.path());
    }
    let state = format!("no\nfolder{HOSTILE}");
    fs::write(folder.path().join(&state), "").unwrap();
    for verb in ["status", "verify", "revert"] {
        let (_, wrong) = shown(&["tune", verb, "--state", &state, "--root", "root"], folder.path());
        assert!(wrong.contains("no\\nfolder\\x1b[2J"), "{wrong}");
    }
}

#[test]
fn errors_name_hostile_files() {
    let folder = TempDir::new().unwrap();
    let name = format!("a\nerror: fine{HOSTILE}.pcap");
    let named = "a\\nerror: fine\\x1b[2J\\x0d\\x07\\u202e\\u009b31m\\u2028.pcap";
    let verbs: [&[&str]; 7] = [
        &["analyze", &name, &name],
        &["audit", "--root", &name],
        &["audit", "--config", &name],
        &["audit", "--waivers", &name],
        &["noise", "--read", &name],
        &["generate", "--interface", &name, "--rate", "1", "--count", "1"],
        &["capture", "--tap", &name, "--out", &name],
    ];
    let (_, wrong) = shown(&["reflect", "--key-file", &name], folder.path());
    assert!(wrong.contains(named), "{wrong}");
    for content in
        [None, Some(&b"\x1b[2J not a capture \x9b\n = \x1b"[..]), Some(b"\xd4\xc3\xb2\xa1")]
    {
        if let Some(content) = content {
            fs::write(folder.path().join(&name), content).unwrap();
        }
        for verb in verbs {
            let (told, wrong) = shown(verb, folder.path());
            assert!(told.is_empty() && wrong.starts_with("error: "), "{verb:?}: {told}{wrong}");
        }
        let (_, wrong) = shown(&["analyze", &name, &name], folder.path());
        assert!(wrong.contains(named), "{wrong}");
    }
    // Errors of the command line's parser, which leaves sequences of ESC out.
    let (_, wrong) = shown(&["tune", "plan", "--profile", HOSTILE], folder.path());
    assert!(wrong.contains("'\\x0d\\u202e\\u009b31m\\u2028'"), "{wrong}");
}

#[test]
fn results_of_other_tools_with_hostile_names_are_shown() {
    let folder = TempDir::new().unwrap();
    let name = format!("cyclictest\n{HOSTILE}.txt");
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/noise/rtla-timerlat.txt");
    let text = fs::read_to_string(data).unwrap();
    fs::write(folder.path().join(&name), &text).unwrap();
    let (told, _) = shown(&["noise", "--read", &name], folder.path());
    assert!(told.starts_with("CPU 0: rtla timerlat"), "{told}");
    // The error quotes the line that is not understood.
    let line = text.lines().next().unwrap();
    fs::write(folder.path().join(&name), text.replace(line, &format!("{line} {HOSTILE}"))).unwrap();
    shown(&["noise", "--read", &name], folder.path());
    fs::write(folder.path().join(&name), format!("# {HOSTILE}\n")).unwrap();
    let (_, wrong) = shown(&["noise", "--read", &name], folder.path());
    assert!(wrong.contains("\\x1b[2J") && wrong.contains("cyclictest\\n"), "{wrong}");
}
