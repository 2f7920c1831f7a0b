//! What `ethtool` tells of an interface, as `key: value`. Layouts are those of linux/ethtool.h.

use crate::sys::ethtool::{self, CHANNELS, COALESCE, DRIVER, EEE, PAUSE, RINGS, TIMESTAMPING, get};
use std::io;

/// What can be asked.
pub(super) fn names() -> Vec<String> {
    let names = [
        "channels",
        "coalesce",
        "driver",
        "eee",
        "features",
        "indirection",
        "pause",
        "rings",
        "timestamping",
    ];
    names.map(str::to_owned).into()
}

/// Asks an interface. What its driver does not know is an error of the kind that a missing file is.
pub(super) fn ask(nic: &str, what: &str) -> io::Result<String> {
    match what {
        "channels" => channels(nic),
        "coalesce" => coalesce(nic),
        "driver" => driver(nic),
        "eee" => eee(nic),
        "features" => features(nic),
        "indirection" => indirection(nic),
        "pause" => pause(nic),
        "rings" => rings(nic),
        "timestamping" => timestamping(nic),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
    .map_err(|error| match error.raw_os_error() {
        // Drivers answer in more than one way that they do not know.
        Some(libc::EINVAL | libc::ENOTTY) => io::Error::from_raw_os_error(libc::EOPNOTSUPP),
        _ if error.kind() == io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::ENOENT),
        _ => error,
    })
}

fn table<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    rows.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn switch(word: u32) -> String {
    if word == 0 { "off".to_owned() } else { "on".to_owned() }
}

fn coalesce(nic: &str) -> io::Result<String> {
    let words = get(nic, COALESCE)?;
    let number = |at: usize| words[at].to_string();
    Ok(table([
        ("adaptive-rx", switch(words[10])),
        ("adaptive-tx", switch(words[11])),
        ("rx-usecs", number(1)),
        ("rx-frames", number(2)),
        ("tx-usecs", number(5)),
        ("tx-frames", number(6)),
    ]))
}

fn rings(nic: &str) -> io::Result<String> {
    let words = get(nic, RINGS)?;
    let rows = [("rx-max", 1), ("tx-max", 4), ("rx", 5), ("tx", 8)];
    Ok(table(rows.map(|(key, at)| (key, words[at].to_string()))))
}

fn channels(nic: &str) -> io::Result<String> {
    let words = get(nic, CHANNELS)?;
    let rows =
        [("rx-max", 1), ("tx-max", 2), ("combined-max", 4), ("rx", 5), ("tx", 6), ("combined", 8)];
    Ok(table(rows.map(|(key, at)| (key, words[at].to_string()))))
}

fn pause(nic: &str) -> io::Result<String> {
    let words = get(nic, PAUSE)?;
    Ok(table([("autoneg", 1), ("rx", 2), ("tx", 3)].map(|(key, at)| (key, switch(words[at])))))
}

fn eee(nic: &str) -> io::Result<String> {
    let words = get(nic, EEE)?;
    // Supported by no link mode: there is nothing to turn off.
    if words[1] == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(table([("active", 4), ("enabled", 5)].map(|(key, at)| (key, switch(words[at])))))
}

const STAMPS: [&str; 7] = [
    "hardware-transmit",
    "software-transmit",
    "hardware-receive",
    "software-receive",
    "software-system-clock",
    "hardware-legacy-clock",
    "hardware-raw-clock",
];
const FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

fn timestamping(nic: &str) -> io::Result<String> {
    let words = get(nic, TIMESTAMPING)?;
    let named = |bits: u32, names: &[&str]| {
        let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
        set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    };
    let clock = words[2] as i32;
    Ok(table([
        ("capabilities", named(words[1], &STAMPS)),
        ("clock", if clock < 0 { "none".to_owned() } else { format!("/dev/ptp{clock}") }),
        ("receive-filters", named(words[7], &FILTERS)),
    ]))
}

/// Text in some words, up to its first zero.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

fn driver(nic: &str) -> io::Result<String> {
    let words = get(nic, DRIVER)?;
    Ok(table([
        ("driver", text(&words[1..9])),
        ("version", text(&words[9..17])),
        ("firmware", text(&words[17..25])),
    ]))
}

fn indirection(nic: &str) -> io::Result<String> {
    let mut queues = ethtool::indirection(nic)?;
    let entries = queues.len();
    queues.sort_unstable();
    queues.dedup();
    let queues: Vec<String> = queues.iter().map(u32::to_string).collect();
    Ok(table([("entries", entries.to_string()), ("queues", queues.join(" "))]))
}

fn features(nic: &str) -> io::Result<String> {
    let (names, states) = ethtool::features(nic)?;
    let row = |(number, name): (usize, &[u32; 8])| {
        let name = text(name);
        // Available, requested, active, never changed.
        let block = states[number / 32];
        let bit = |word: usize| block[word] >> (number % 32) & 1 == 1;
        let fixed = if bit(0) && !bit(3) { "" } else { " [fixed]" };
        format!("{name}: {}{fixed}\n", if bit(2) { "on" } else { "off" })
    };
    Ok(names.iter().enumerate().map(row).filter(|row| !row.starts_with(':')).collect())
}
