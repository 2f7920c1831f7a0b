//! Stamps by a NIC for datagrams in both directions.

use tailtrim_ports::keeper::{Failure, Keeper, Kept};
use tailtrim_sys::interface::{self, StampSetting};

/// The setting of a NIC that stamps sent and all received packets. Dropping this restores the one before.
#[derive(Debug)]
struct Set {
    interface: String,
    before: StampSetting,
}

impl Set {
    fn enable(interface: &str) -> Result<Self, String> {
        interface::stamping_clock(interface)
            .map_err(|error| format!("{interface}: asking for its stamps: {error}"))?
            .ok_or_else(|| format!("{interface}: its driver does not stamp every frame"))?;
        let before = interface::stamp_both_ways(interface)
            .map_err(|error| format!("{interface}: turning its stamps on: {error}"))?;
        Ok(Self { interface: interface.to_owned(), before })
    }
}

impl Kept for Set {}

/// A NIC that stamps sent and all received packets. A helper process keeps that, and restores the setting when this is
/// dropped, or when this process has ended for whatever reason.
#[derive(Debug)]
pub struct NicStamps {
    _keeper: Keeper,
}

impl NicStamps {
    /// Turns its stamps on. Needs CAP_NET_ADMIN; to be called before other threads are started.
    ///
    /// # Errors
    /// Why not: a driver that cannot, no permission, or no process can be started.
    pub fn enable(interface: &str) -> Result<Self, String> {
        let set_up = || {
            let failed = |why| Failure { what: "stamps by the NIC".to_owned(), why };
            Set::enable(interface).map_err(failed).map(|stamps| ((), stamps))
        };
        let ((), keeper) = Keeper::start(set_up).map_err(|failure| failure.to_string())?;
        Ok(Self { _keeper: keeper })
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // The interface may be gone, and then so is the setting.
        let _ = interface::set_stamping(&self.interface, &mut self.before);
    }
}
