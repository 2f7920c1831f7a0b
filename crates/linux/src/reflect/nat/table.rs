//! The table in the kernel: what is set up and removed by a process that keeps CAP_NET_ADMIN for that.

use super::command::{nft, objects};
use super::owner;
use super::ruleset::{Rules, text};
use crate::keeper::{Failure, Kept, Numbers};
use std::io;

/// The table, until this is dropped.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
}

impl Table {
    /// Removes what killed processes left, and sets up the table of `rules` under this process' name. Returns the
    /// names of those that were removed, too.
    pub(super) fn set_up(rules: &Rules<'_>) -> Result<(Vec<String>, Self), Failure> {
        let removed =
            owner::remove_stale().map_err(Failure::of("removing rules of killed reflectors"))?;
        let name = owner::table().map_err(Failure::of("naming the table"))?;
        let named = text(&Rules { table: &name, ..*rules });
        nft(&["-f", "-"], &named).map_err(Failure::of("setting up rules"))?;
        let table = Self { name };
        if rules.turns_forwarding_on {
            // After the rules, which say that it is to be turned off again.
            owner::set_forwarding(rules.interface, true)
                .map_err(Failure::of("turning forwarding on"))?;
        }
        Ok((removed, table))
    }
}

impl Kept for Table {
    /// What the rules counted, in packets.
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
        // What cannot be removed now the next start removes.
        let _ = owner::remove(&self.name);
    }
}
