//! Tables that tell whose they are, so that the next start can remove those of the dead.

use super::command::{nft, objects};
use super::ruleset::FORWARDING;
use serde_json::Value;
use std::io;
use tailtrim_sys::process::start_ticks;

/// Every table's name begins so; then follow the process and when it started.
const PREFIX: &str = "tailtrim_reflect_";

/// The name of this process' table.
pub(super) fn table() -> io::Result<String> {
    let process = std::process::id();
    let start = start_ticks(process)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(format!("{PREFIX}{process}_{start}"))
}

/// Whether the process that a table is named after still runs.
fn is_owned(table: &str) -> bool {
    let owner = table.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
    // A name that is not ours belongs to another program.
    let Some((process, start)) = owner else { return true };
    let (Ok(process), Ok(start)) = (process.parse(), start.parse::<u64>()) else { return true };
    start_ticks(process).ok().flatten() == Some(start)
}

/// Removes the tables of processes that were killed. Returns their names.
pub(super) fn remove_stale() -> io::Result<Vec<String>> {
    let tables = objects(&nft(&["-j", "list", "tables"], "")?, "table");
    let names = tables.iter().filter_map(|table| table["name"].as_str());
    let stale: Vec<String> = names.filter(|name| !is_owned(name)).map(str::to_owned).collect();
    for table in &stale {
        remove(table)?;
    }
    Ok(stale)
}

/// Removes a table, and turns off forwarding where the table's owner turned it on.
pub(super) fn remove(table: &str) -> io::Result<()> {
    let listed = nft(&["-j", "list", "table", "inet", table], "")?;
    let sets = objects(&listed, "set");
    let forwarding = sets.iter().find(|set| set["name"] == FORWARDING);
    let elements = forwarding.and_then(|set| set["elem"].as_array()).into_iter().flatten();
    let interfaces: Vec<&str> = elements.filter_map(Value::as_str).collect();
    // First the settings outside of the table: if the process is killed in between, the table is still there for the
    // next one.
    for interface in interfaces {
        match set_forwarding(interface, false) {
            // The interface is gone, and with it its setting.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    nft(&["delete", "table", "inet", table], "").map(drop)
}

fn forwarding_path(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

/// Whether packets that come in by an interface are forwarded.
pub(super) fn forwards(interface: &str) -> io::Result<bool> {
    Ok(std::fs::read_to_string(forwarding_path(interface))?.trim() != "0")
}

pub(super) fn set_forwarding(interface: &str, on: bool) -> io::Result<()> {
    std::fs::write(forwarding_path(interface), if on { "1" } else { "0" })
}

/// Whether this host forwards IPv6. That is a property of the host (it no longer listens to routers), so it is
/// not for us to turn on.
pub(super) fn forwards_v6() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding")
        .is_ok_and(|text| text.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_tells_whose_it_is() {
        assert!(is_owned(&table().unwrap()));
        let mine = start_ticks(std::process::id()).unwrap().unwrap();
        assert!(!is_owned(&format!("{PREFIX}{}_{}", std::process::id(), mine + 1)));
        assert!(!is_owned(&format!("{PREFIX}4194305_1")));
        for others in ["filter", "tailtrim_reflect_", "tailtrim_reflect_x_1"] {
            assert!(is_owned(others), "{others}");
        }
    }
}
