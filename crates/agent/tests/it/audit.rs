//! `tailtrim-agent audit` as a process.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tailtrim_audit::all;
use tempfile::TempDir;

fn audit(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"))
        .arg("audit")
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "80")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A host of two CPUs below a folder.
fn host() -> TempDir {
    let folder = TempDir::new().unwrap();
    let files = [
        ("proc/cmdline", "quiet isolcpus=1 rcu_nocbs=1 rcu_nocbs_poll"),
        ("proc/sys/kernel/osrelease", "6.1.0-28-amd64"),
        ("proc/sys/kernel/numa_balancing", "1"),
        ("proc/sys/vm/stat_interval", "3600"),
        (
            "proc/cpuinfo",
            "vendor_id : GenuineIntel\nmodel name : Test\nflags : tsc constant_tsc nonstop_tsc",
        ),
        ("sys/devices/system/cpu/online", "0-1"),
        ("sys/devices/system/cpu/possible", "0-1"),
        ("sys/devices/system/cpu/isolated", "1"),
        ("sys/kernel/security/lockdown", "[none] integrity confidentiality"),
        ("etc/shadow", "root:secret"),
        ("proc/7/environ", "PASSWORD=secret"),
        ("proc/7/cmdline", "program --password=secret"),
    ];
    for (path, content) in files {
        let path = folder.path().join("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    folder
}

fn verdicts(output: &Output) -> Vec<(String, String)> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut all: Vec<(String, String)> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (row["id"].as_str().unwrap().to_owned(), row["verdict"].as_str().unwrap().to_owned())
        })
        .collect();
    all.sort();
    all
}

fn verdict(output: &Output, id: &str) -> String {
    verdicts(output).into_iter().find(|(known, _)| known == id).unwrap().1
}

#[test]
fn a_folder_is_audited() {
    let folder = host();
    let output = audit(&["--root", "root", "--format", "json"], folder.path());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(verdicts(&output).len(), all().count());
    for (id, wanted) in [
        ("BOOT-002", "fail"),
        ("ISO-001", "ok"),
        ("MEM-005", "fail"),
        ("MEM-006", "ok"),
        ("ISO-003", "unknown"),
        ("ISO-012", "unknown"),
        ("CLK-001", "unknown"),
        ("ISO-024", "unknown"),
    ] {
        assert_eq!(verdict(&output, id), wanted, "{id}");
    }
}

#[test]
fn the_table_fits_its_width_and_says_what_to_do() {
    let folder = host();
    let output = audit(&["--root", "root", "--all"], folder.path());
    let table = text(&output.stdout);
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!table.contains('\x1b'), "colour into a pipe");
    assert!(table.contains("sysctl -w kernel.numa_balancing=0"), "{table}");
    assert!(table.contains("inferred    isolate 1 (what the kernel isolates"), "{table}");
    let fails = table.find("\nFAIL").unwrap();
    assert!(fails < table.find("\nWARN").unwrap() && fails < table.find("\nUNKNOWN").unwrap());
}

#[test]
fn a_capture_says_what_the_host_says_and_has_no_secrets() {
    let folder = host();
    let live = || audit(&["--format", "json", "--duration", "100ms"], folder.path());
    let before = live();
    assert_eq!(verdicts(&before).len(), all().count(), "{}", text(&before.stderr));
    let mut captured = Vec::new();
    for name in ["host.tar", "host.tar.zst"] {
        let made = audit(&["--capture", name, "--duration", "100ms"], folder.path());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        captured.push(audit(&["--root", name, "--format", "json"], folder.path()));
    }
    let after = live();
    // Counters move, threads come and go, and another process may change a setting meanwhile.
    let moves = ["MEM-002", "MEM-008", "MEM-013", "MEM-014"];
    let steady = ["MEM", "CLK", "SEC", "WD", "PWR", "BOOT", "FW"];
    let mut compared = 0;
    for (id, first) in verdicts(&before) {
        let family = id.split('-').next().unwrap();
        if !steady.contains(&family)
            || moves.contains(&id.as_str())
            || verdict(&after, &id) != first
        {
            continue;
        }
        compared += 1;
        for one in &captured {
            assert_eq!(verdict(one, &id), first, "{id}");
        }
    }
    assert!(compared > 30, "{compared}");
    let list = Command::new("tar").args(["tf", "host.tar"]).current_dir(folder.path()).output();
    for path in text(&list.unwrap().stdout).lines() {
        let secret = ["environ", "shadow", "/maps", "/fd/"].iter().any(|part| path.contains(part));
        assert!(!secret && (!path.ends_with("/cmdline") || path == "proc/cmdline"), "{path}");
    }
}

#[test]
fn a_folder_that_holds_an_unpacked_capture_is_one() {
    let folder = host();
    let made = audit(&["--capture", "host.tar", "--duration", "0"], folder.path());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    fs::create_dir(folder.path().join("unpacked")).unwrap();
    let tar = Command::new("tar")
        .args(["xf", "host.tar", "-C", "unpacked"])
        .current_dir(folder.path())
        .status();
    assert!(tar.unwrap().success());
    let packed = audit(&["--root", "host.tar", "--format", "json"], folder.path());
    let unpacked = audit(&["--root", "unpacked", "--format", "json"], folder.path());
    assert_eq!(verdicts(&packed), verdicts(&unpacked));
}

#[test]
fn links_of_a_captured_host_do_not_lead_to_this_one() {
    let folder = host();
    let path = folder.path().join("root/proc/sys/kernel/nmi_watchdog");
    std::os::unix::fs::symlink("/proc/sys/kernel/nmi_watchdog", &path).unwrap();
    let output = audit(&["--root", "root", "--format", "json", "--only", "WD-001"], folder.path());
    assert_eq!(verdict(&output, "WD-001"), "unknown");
}

#[test]
fn every_format_is_what_it_claims() {
    let folder = host();
    let run = |format: &str| audit(&["--root", "root", "--format", format], folder.path());
    let junit = text(&run("junit").stdout);
    assert_eq!(junit.matches("<testcase ").count(), all().count());
    assert_eq!(junit.matches("<failure ").count().to_string(), attribute(&junit, "failures"));
    assert_eq!(junit.matches("<skipped ").count().to_string(), attribute(&junit, "skipped"));
    let prometheus = text(&run("prometheus").stdout);
    assert!(prometheus.lines().any(
        |line| line.starts_with("tailtrim_audit_check{id=\"MEM-005\"") && line.ends_with("} 2")
    ));
}

fn attribute(xml: &str, name: &str) -> String {
    xml.split_once(&format!("{name}=\"")).unwrap().1.split('"').next().unwrap().to_owned()
}

#[test]
fn intent_and_waivers_come_from_files() {
    let folder = host();
    fs::write(
        folder.path().join("tailtrim.json"),
        r#"{"host": {"isolate": "1", "nics": ["eth7"], "workload": "poll"}}"#,
    )
    .unwrap();
    let waivers = r#"[
        {"id": "MEM-005", "reason": "one node", "until": "2999-12-31"},
        {"id": "boot-002", "reason": "later", "until": "2020-01-31"}
    ]"#;
    fs::write(folder.path().join("waivers.json"), waivers).unwrap();
    let output = audit(&["--root", "root", "--waivers", "waivers.json"], folder.path());
    let table = text(&output.stdout);
    assert!(
        table.contains("read from   tailtrim.json") && table.contains("nics eth7 · workload poll"),
        "{table}"
    );
    assert!(table.contains("WAIVED  1") && table.contains("one node, until 2999-12-31"), "{table}");
    assert!(table.contains("waiver of BOOT-002 expired on 2020-01-31"), "{table}");
    assert_eq!(output.status.code(), Some(1));
    let only =
        audit(&["--root", "root", "--waivers", "waivers.json", "--only", "MEM-005"], folder.path());
    assert_eq!(only.status.code(), Some(0), "what is waived does not fail");
}

#[test]
fn the_file_of_earlier_versions_is_refused() {
    let folder = host();
    fs::write(folder.path().join("tailtrim.toml"), "[host]\nisolate = \"1\"\n").unwrap();
    let output = audit(&["--root", "root"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("expected tailtrim.json"), "{}", text(&output.stderr));
}

#[test]
fn wrong_requests_say_what_to_do() {
    let folder = host();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (name, waiver) in [
        ("silent.json", r#"[{"id": "MEM-005", "reason": "", "until": "2999-12-31"}]"#),
        ("endless.json", r#"[{"id": "MEM-005", "reason": "later", "until": "2999-13-01"}]"#),
        ("open.json", "[\n{\"id\": \"MEM-005\", \"reason\": \"later\"}]"),
    ] {
        fs::write(folder.path().join(name), waiver).unwrap();
    }
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--isolate", "0-1"], 2, "leaves no CPU"),
        (&["--isolate", "1", "--housekeeping", "0-1"], 2, "both --isolate and --housekeeping"),
        (&["--isolate", "5"], 2, "not on this host"),
        (&["--only", "XYZ"], 2, "--list shows all"),
        (&["--explain", "XYZ-1"], 2, "--list shows all"),
        (&["--duration", "soon"], 2, "such as 10s"),
        (&["--waivers", "silent.json"], 2, "reason is missing"),
        (&["--waivers", "endless.json"], 2, "expected one such as 2027-03-31"),
        (&["--waivers", "open.json"], 2, "missing field `until` at line 2"),
        (&["--workload", "none"], 2, "poll, interrupt, vm or guest"),
        (&["--root", "empty"], 3, "no host files found"),
    ];
    for (arguments, code, wanted) in cases {
        let mut all = arguments.to_vec();
        if !all.contains(&"--root") {
            all.extend(["--root", "root"]);
        }
        let output = audit(&all, folder.path());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(wanted), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty());
    }
    fs::write(folder.path().join("damaged.tar"), [7; 2_000]).unwrap();
    let damaged = audit(&["--root", "damaged.tar"], folder.path());
    assert_eq!(damaged.status.code(), Some(3), "{}", text(&damaged.stderr));
}

#[test]
fn checks_explain_themselves() {
    let folder = host();
    let told = text(&audit(&["--explain", "iso-003"], folder.path()).stdout);
    for part in ["ISO-003", "why ", "read from", "wanted", "at boot", "undo", "source"] {
        assert!(told.contains(part), "{told}");
    }
    let list = text(&audit(&["--list"], folder.path()).stdout);
    assert_eq!(list.lines().count(), all().count());
    let list: Value =
        serde_json::from_slice(&audit(&["--list", "--format", "json"], folder.path()).stdout)
            .unwrap();
    assert_eq!(list.as_array().unwrap().len(), all().count());
}
