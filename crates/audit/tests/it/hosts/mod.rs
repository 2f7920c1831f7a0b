//! Hosts as text. A line is a file and its content (`/proc/cmdline: quiet`), a link (`/path -> target`),
//! the beginning of a file of several lines (`/path <<`, ended by `>>`), a thread
//! (`task PID CPUS LAST FLAGS POLICY:PRIORITY NAME`, with `busy` for a program's thread that runs), or `cpus 0-7`, which `{cpus}` then stands for. A later
//! line replaces an earlier one, so that a host is a common one and what differs.

use tailtrim_host::{Cpus, Memory};

const SERVER: &str = include_str!("server.host");

pub(crate) const TUNED: &str = include_str!("tuned.host");
pub(crate) const TYPOS: &str = include_str!("typos.host");
pub(crate) const GUEST: &str = include_str!("guest.host");
pub(crate) const AMD: &str = include_str!("amd.host");
pub(crate) const LAPTOP: &str = include_str!("laptop.host");
pub(crate) const EQUIPPED: &str = include_str!("equipped.host");
pub(crate) const REFERENCE: &str = include_str!("reference.host");

/// A bare-metal server as it comes, with Debian's kernel 6.1.
pub(crate) fn untuned() -> Memory {
    build(&[SERVER])
}

/// The server with something changed.
pub(crate) fn changed(text: &str) -> Memory {
    build(&[SERVER, text])
}

/// The machine that the project is developed on, captured.
pub(crate) fn reference() -> Memory {
    build(&[REFERENCE])
}

fn build(texts: &[&str]) -> Memory {
    let cpus: Cpus = texts
        .iter()
        .rev()
        .find_map(|text| text.lines().find_map(|line| line.strip_prefix("cpus ")))
        .unwrap()
        .parse()
        .unwrap();
    let mut tree = Memory::new(true);
    for text in texts {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(rest) = line.strip_prefix("task ") {
                task(&mut tree, rest);
            } else if let Some(path) = line.strip_suffix(" <<") {
                let content: Vec<&str> = lines.by_ref().take_while(|line| *line != ">>").collect();
                tree.insert(path, content.join("\n") + "\n");
            } else if line.starts_with('/') {
                for line in expand(line, &cpus) {
                    entry(&mut tree, &line);
                }
            }
        }
    }
    tree.insert("/sys/devices/system/cpu/online", format!("{cpus}\n"));
    tree.insert("/sys/devices/system/cpu/possible", format!("{cpus}\n"));
    tree
}

fn expand(line: &str, cpus: &Cpus) -> Vec<String> {
    if !line.contains("{cpus}") {
        return vec![line.to_owned()];
    }
    cpus.iter().map(|cpu| line.replace("{cpus}", &cpu.to_string())).collect()
}

fn entry(tree: &mut Memory, line: &str) {
    if let Some((path, target)) = line.split_once(" -> ") {
        tree.insert_link(path, target);
        return;
    }
    // Paths of PCI devices have colons as well.
    let (path, content) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
    tree.insert(path, format!("{content}\n"));
}

fn task(tree: &mut Memory, text: &str) {
    let mut words = text.splitn(6, ' ');
    let mut next = || words.next().unwrap();
    let (pid, allowed, last, flags, class, name) = (next(), next(), next(), next(), next(), next());
    let state = if flags == "busy" { "R" } else { "S" };
    let flags: u64 = match flags {
        "user" | "busy" => 0x40_0000,
        "kernel" => 0x20_8040,
        "fixed" => 0x420_8040,
        other => unreachable!("{other} is no kind of thread"),
    };
    let (policy, priority) = class.split_once(':').unwrap();
    let place = format!("/proc/{pid}/task/{pid}");
    let zeros = "0 ".repeat(29);
    let stat =
        format!("{pid} ({name}) {state} 1 0 0 0 -1 {flags} {zeros}{last} {priority} {policy} 0");
    let status =
        format!("Name:\t{name}\nVmLck:\t0 kB\nVmRSS:\t4096 kB\nCpus_allowed_list:\t{allowed}\n");
    tree.insert(&format!("{place}/stat"), stat.clone());
    tree.insert(&format!("{place}/status"), status.clone());
    tree.insert(&format!("/proc/{pid}/stat"), stat);
    tree.insert(&format!("/proc/{pid}/status"), status);
}
