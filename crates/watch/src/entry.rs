//! An entry of the file of targets, and its values.

use serde::Deserialize;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use tailtrim_roundtrip::{Protocol, StampLevel};
use tailtrim_wire::{Key, parse_cookie};

/// An entry as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) name: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) rate: Option<String>,
    pub(crate) timeout: Option<String>,
    pub(crate) dscp: Option<String>,
    pub(crate) src_ip: Option<IpAddr>,
    pub(crate) src_port: Option<String>,
    pub(crate) packet_bytes: Option<usize>,
    pub(crate) interface: Option<String>,
    pub(crate) ttl: Option<u8>,
    pub(crate) stamps: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) cookie: Option<String>,
    pub(crate) follow_up: Option<bool>,
    pub(crate) objectives: Option<Vec<String>>,
}

impl Entry {
    /// The entry, with the defaults for what it does not have.
    pub(crate) fn over(&self, defaults: &Self) -> Self {
        macro_rules! either {
            ($($key:ident),*) => { Self { $($key: self.$key.clone().or_else(|| defaults.$key.clone())),* } };
        }
        either!(
            name,
            address,
            protocol,
            rate,
            timeout,
            dscp,
            src_ip,
            src_port,
            packet_bytes,
            interface,
            ttl,
            stamps,
            key_file,
            cookie,
            follow_up,
            objectives
        )
    }
}

/// Refuses names that cannot be folders.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || "._:%[]-".contains(c);
    let fine = !name.is_empty() && name.len() <= 200 && name.chars().all(fits);
    if fine && !name.starts_with('.') {
        Ok(())
    } else {
        Err(format!("{name:?}: expected letters, digits and . _ : % [ ] -, and no dot in front"))
    }
}

/// The protocol of an entry, with its own keys.
pub(crate) fn protocol(entry: &Entry) -> Result<Protocol, (&'static str, String)> {
    let name = entry.protocol.as_deref().unwrap_or("udp");
    let follow_up = entry.follow_up.unwrap_or(false);
    for (key, given, of) in [
        ("key_file", entry.key_file.is_some(), "stamp"),
        ("follow_up", follow_up, "stamp"),
        ("cookie", entry.cookie.is_some(), "udp"),
    ] {
        if given && name != of {
            return Err((key, format!("only for protocol: {of}")));
        }
    }
    let cookie = |text: &String| parse_cookie(text).map_err(|error| ("cookie", error));
    let key = |path: &PathBuf| {
        let text = fs::read(path).map_err(|error| error.to_string());
        text.and_then(|text| Key::of_text(&text).map_err(|error| error.to_string()))
            .map_err(|error| ("key_file", format!("{}: {error}", path.display())))
    };
    match name {
        "udp" => Ok(Protocol::UdpEcho { cookie: entry.cookie.as_ref().map(cookie).transpose()? }),
        "icmp" => Ok(Protocol::IcmpEcho),
        "stamp" => {
            Ok(Protocol::Stamp { key: entry.key_file.as_ref().map(key).transpose()?, follow_up })
        }
        "twamp-light" => Ok(Protocol::TwampLight),
        _ => Err(("protocol", format!("{name:?}: expected udp, icmp, stamp or twamp-light"))),
    }
}

/// Points between which round trips are taken.
pub(crate) fn level(text: &str) -> Result<StampLevel, (&'static str, String)> {
    match text {
        "application" => Ok(StampLevel::Application),
        "arrival" => Ok(StampLevel::Arrival),
        "software" => Ok(StampLevel::Software),
        _ => Err(("stamps", format!("{text:?}: expected application, arrival or software"))),
    }
}

/// The ports of `50000`, or of `50000-50015`.
pub(crate) fn source_ports(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u16>().ok()?);
    let ports: Vec<u16> = (first..=last).take(65).collect();
    ((1..=64).contains(&ports.len()) && (first > 0 || last == 0)).then_some(ports)
}
