//! Settings and state of an interface from its driver, as `key: value`.

use std::io;
use tailtrim_sys::ethtool::{
    self, Channels, Coalescing, Driver, Eee, Feature, Pause, Rings, Timestamping,
};

/// The possible questions.
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

/// Asks an interface. A question that its driver does not support returns the error of a missing file.
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
        _ => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    }
}

fn table<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    rows.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn numbers<'a>(rows: impl IntoIterator<Item = (&'a str, u32)>) -> String {
    table(rows.into_iter().map(|(key, number)| (key, number.to_string())))
}

fn switch(word: u32) -> String {
    if word == 0 { "off".to_owned() } else { "on".to_owned() }
}

fn coalesce(nic: &str) -> io::Result<String> {
    let told: Coalescing = ethtool::get(nic)?;
    Ok(table([
        ("adaptive-rx", switch(told.adaptive_rx)),
        ("adaptive-tx", switch(told.adaptive_tx)),
        ("rx-usecs", told.rx_usecs.to_string()),
        ("rx-frames", told.rx_frames.to_string()),
        ("tx-usecs", told.tx_usecs.to_string()),
        ("tx-frames", told.tx_frames.to_string()),
    ]))
}

fn rings(nic: &str) -> io::Result<String> {
    let Rings { rx_max, tx_max, rx, tx, .. } = ethtool::get(nic)?;
    Ok(numbers([("rx-max", rx_max), ("tx-max", tx_max), ("rx", rx), ("tx", tx)]))
}

fn channels(nic: &str) -> io::Result<String> {
    let told: Channels = ethtool::get(nic)?;
    Ok(numbers([
        ("rx-max", told.rx_max),
        ("tx-max", told.tx_max),
        ("combined-max", told.combined_max),
        ("rx", told.rx),
        ("tx", told.tx),
        ("combined", told.combined),
    ]))
}

fn pause(nic: &str) -> io::Result<String> {
    let Pause { autoneg, rx, tx } = ethtool::get(nic)?;
    Ok(table([("autoneg", switch(autoneg)), ("rx", switch(rx)), ("tx", switch(tx))]))
}

fn eee(nic: &str) -> io::Result<String> {
    let told: Eee = ethtool::get(nic)?;
    // Supported by no link mode: there is nothing to turn off.
    if told.supported == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(table([("active", switch(told.active)), ("enabled", switch(told.enabled))]))
}

fn timestamping(nic: &str) -> io::Result<String> {
    let told: Timestamping = ethtool::get(nic)?;
    let clock = if told.clock < 0 { "none".to_owned() } else { format!("/dev/ptp{}", told.clock) };
    Ok(table([
        ("capabilities", told.capability_names().join(" ")),
        ("clock", clock),
        ("receive-filters", told.filter_names().join(" ")),
    ]))
}

fn driver(nic: &str) -> io::Result<String> {
    let told: Driver = ethtool::get(nic)?;
    Ok(table([("driver", told.name()), ("version", told.version()), ("firmware", told.firmware())]))
}

fn indirection(nic: &str) -> io::Result<String> {
    let mut queues = ethtool::indirection(nic)?;
    let entries = queues.len().to_string();
    queues.sort_unstable();
    queues.dedup();
    let queues: Vec<String> = queues.iter().map(u32::to_string).collect();
    Ok(table([("entries", entries), ("queues", queues.join(" "))]))
}

fn features(nic: &str) -> io::Result<String> {
    let row = |feature: &Feature| {
        let state = if feature.active { "on" } else { "off" };
        let fixed = if feature.fixed { " [fixed]" } else { "" };
        format!("{}: {state}{fixed}\n", feature.name)
    };
    let features = ethtool::features(nic)?;
    // A number that the kernel has left free has no name.
    Ok(features.iter().filter(|feature| !feature.name.is_empty()).map(row).collect())
}
