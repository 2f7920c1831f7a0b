//! The table in the kernel, which a process sets up and removes that keeps CAP_NET_ADMIN for that.

use super::command::{nft, objects};
use super::owner;
use super::ruleset::{Rules, text};
use std::io;
use tailtrim_ports::keeper::{Failure, Kept, Numbers};

/// The table, until this is dropped.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
}

impl Table {
    /// Removes the tables of killed processes, and sets up the table of `rules` under this process' name. Turns
    /// forwarding on where it is off, whatever `rules` has for it. Returns the names of those that were removed, too.
    pub(super) fn set_up(rules: &Rules<'_>) -> Result<(Vec<String>, Self), Failure> {
        let interface = rules.interface;
        let removed =
            owner::remove_stale().map_err(Failure::of("removing rules of killed reflectors"))?;
        let name = owner::table().map_err(Failure::of("naming the table"))?;
        // Asked only now: a killed process may have turned it on.
        let forwards = owner::forwards(interface)
            .map_err(Failure::of("asking whether the interface forwards"))?;
        let rules = text(&Rules { table: &name, turns_forwarding_on: !forwards, ..*rules });
        nft(&["-f", "-"], &rules).map_err(Failure::of("setting up rules"))?;
        let table = Self { name };
        if !forwards {
            // After the rules, which say that it is to be turned off again.
            owner::set_forwarding(interface, true).map_err(Failure::of("turning forwarding on"))?;
        }
        Ok((removed, table))
    }
}

impl Kept for Table {
    /// Reads the rules' counters, in packets.
    fn look(&self) -> io::Result<Numbers> {
        let listed = nft(&["-j", "list", "counters", "table", "inet", &self.name], "")?;
        let count = |counter: &serde_json::Value| {
            Some((counter["name"].as_str()?.to_owned(), counter["packets"].as_u64()?))
        };
        Ok(objects(&listed, "counter").iter().filter_map(count).collect())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // If this fails, the next start removes the table.
        let _ = owner::remove(&self.name);
    }
}
