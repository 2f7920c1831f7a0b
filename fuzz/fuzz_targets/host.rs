//! A captured host of unknown origin: it is refused, or every check of the audit and the linter of boot lines have an
//! answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_audit::{Intent, Wish, all, run};
use tailtrim_fuzz::with_tar_sums;
use tailtrim_host::{Memory, Tree};
use tailtrim_lint::{Context, lint};
use tailtrim_localhost::inspect::read_capture;

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    if how & 1 == 0 {
        audit(&of_lines(&String::from_utf8_lossy(rest)), *how);
    } else if let Ok(Some(tree)) = read_capture(with_tar_sums(rest).as_slice()) {
        audit(tree.as_ref(), *how);
    }
});

/// A host as text, `path: content` or `path -> target`; `\` and `|` stand for a new line and a NUL in a file.
fn of_lines(text: &str) -> Memory {
    let mut tree = Memory::new(text.len() % 2 == 0);
    for line in text.lines() {
        if let Some((path, target)) = line.split_once(" -> ") {
            tree.insert_link(path, target);
        } else if let Some((path, content)) = line.split_once(": ") {
            tree.insert(path, content.replace('\\', "\n").replace('|', "\0"));
        }
    }
    tree
}

fn audit(tree: &dyn Tree, how: u8) {
    let wish = Wish {
        isolate: (how & 2 != 0).then(|| "1-2".parse().unwrap()),
        nics: (how & 4 != 0).then(|| vec!["eth0".to_owned()]),
        ..Wish::default()
    };
    let intent = match Intent::complete(wish, tree) {
        Ok(intent) => intent,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let checks: Vec<_> = all().collect();
    let report = run(tree, &intent, &checks);
    assert_eq!(report.results.len(), checks.len());
    let line = tree.text("/proc/cmdline").unwrap_or_default();
    let release = tree.text("/proc/sys/kernel/osrelease").ok().and_then(|text| text.parse().ok());
    let cpus =
        tree.text("/sys/devices/system/cpu/possible").ok().and_then(|text| text.parse().ok());
    let _ = lint(&line, &Context { kernel: release, cpus }).worst();
}
