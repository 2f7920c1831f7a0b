//! Settings of interfaces, by the program `ethtool`.

use std::path::Path;
use std::process::{Command, Stdio};
use tailtrim_host::tune::{NicGroup, Value};

/// How a part is shown and set, and the names under which settings are shown.
struct Part {
    show: &'static str,
    set: &'static str,
    names: &'static [(&'static str, &'static str)],
    /// What precedes the values; before it come the limits.
    behind: Option<&'static str>,
}

fn part(group: NicGroup) -> Part {
    const CURRENT: Option<&str> = Some("Current hardware settings:");
    let (show, set, names, behind): (_, _, &[(&str, &str)], _) = match group {
        NicGroup::Coalesce => {
            ("-c", "-C", &[("adaptive-rx", "Adaptive RX"), ("adaptive-tx", "TX")], None)
        }
        NicGroup::Ring => ("-g", "-G", &[("rx", "RX"), ("tx", "TX")], CURRENT),
        NicGroup::Feature => (
            "-k",
            "-K",
            &[("lro", "large-receive-offload"), ("gro", "generic-receive-offload")],
            None,
        ),
        NicGroup::Channels => ("-l", "-L", &[("combined", "Combined")], CURRENT),
        NicGroup::Pause => {
            ("-a", "-A", &[("autoneg", "Autonegotiate"), ("rx", "RX"), ("tx", "TX")], None)
        }
        NicGroup::Eee => ("--show-eee", "--set-eee", &[("eee", "EEE status")], None),
    };
    Part { show, set, names, behind }
}

/// A setting; `None` where the driver does not have it.
pub(super) fn read(interface: &str, group: NicGroup, key: &str) -> Result<Option<Value>, String> {
    if !Path::new("/sys/class/net").join(interface).exists() {
        return Ok(None);
    }
    let part = part(group);
    let output = command(&[part.show, interface])?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let none = errors.contains("not supported") || errors.contains("No such device");
        return if none { Ok(None) } else { Err(last_line(&errors)) };
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(find(&text, &part, key).map(Value::from))
}

/// Sets it.
pub(super) fn write(
    interface: &str,
    group: NicGroup,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let output = command(&[part(group).set, interface, key, value])?;
    if output.status.success() {
        return Ok(());
    }
    Err(last_line(&String::from_utf8_lossy(&output.stderr)))
}

fn command(arguments: &[&str]) -> Result<std::process::Output, String> {
    Command::new("ethtool")
        .args(arguments)
        // Messages are looked at.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("ethtool: {error} (install it, or leave --nic out)"))
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("ethtool failed").to_owned()
}

fn find(text: &str, part: &Part, key: &str) -> Option<String> {
    let text =
        part.behind.map_or(text, |behind| text.split_once(behind).map_or("", |(_, rest)| rest));
    let shown = part.names.iter().find(|(known, _)| *known == key).map_or(key, |(_, shown)| *shown);
    for line in text.lines().map(str::trim) {
        // `Adaptive RX: off  TX: n/a` has two on a line.
        let value = match line.strip_prefix("Adaptive RX:") {
            Some(rest) if shown == "TX" => rest.split_once("TX:").map(|(_, value)| value),
            Some(rest) if shown == "Adaptive RX" => Some(rest),
            Some(_) => None,
            None => line.strip_prefix(shown).and_then(|rest| rest.strip_prefix(':')),
        };
        let Some(value) = value else { continue };
        if value.contains("[fixed]") {
            return None;
        }
        let word = value.split_whitespace().next()?;
        return match word {
            "n/a" | "not" => None,
            "enabled" => Some("on".to_owned()),
            "disabled" => Some("off".to_owned()),
            word => Some(word.to_owned()),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_ethtool_shows_them() {
        let found = |group, text: &str, key: &str| find(text, &part(group), key);
        let coalesce = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nrx-usecs: 3\n\
                        rx-usecs-irq: n/a\ntx-usecs: 0\n";
        assert_eq!(found(NicGroup::Coalesce, coalesce, "adaptive-rx").as_deref(), Some("on"));
        assert_eq!(found(NicGroup::Coalesce, coalesce, "adaptive-tx"), None);
        assert_eq!(found(NicGroup::Coalesce, coalesce, "rx-usecs").as_deref(), Some("3"));
        assert_eq!(found(NicGroup::Coalesce, coalesce, "rx-usecs-irq"), None);
        let ring =
            "Pre-set maximums:\nRX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nTX:\t\t128\n";
        assert_eq!(found(NicGroup::Ring, ring, "rx").as_deref(), Some("256"));
        assert_eq!(found(NicGroup::Ring, ring, "tx").as_deref(), Some("128"));
        let features =
            "generic-receive-offload: on\nlarge-receive-offload: off [fixed]\nrx-gro-hw: off\n";
        assert_eq!(found(NicGroup::Feature, features, "gro").as_deref(), Some("on"));
        assert_eq!(found(NicGroup::Feature, features, "lro"), None);
        assert_eq!(found(NicGroup::Feature, features, "rx-gro-hw").as_deref(), Some("off"));
        let eee = "EEE settings for eth0:\n\tEEE status: enabled - inactive\n";
        assert_eq!(found(NicGroup::Eee, eee, "eee").as_deref(), Some("on"));
        let pause = "Autonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\n";
        assert_eq!(found(NicGroup::Pause, pause, "tx").as_deref(), Some("on"));
    }
}
