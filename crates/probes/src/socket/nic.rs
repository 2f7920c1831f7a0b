//! Stamps by a NIC for datagrams in both directions.

use tailtrim_ports::keeper::{Failure, Keeper, Kept};
use tailtrim_sys::interface::{self, StampSetting};

/// A NIC that stamps sent and all received packets. Dropping this restores its setting.
#[derive(Debug)]
pub struct NicStamps {
    interface: String,
    before: StampSetting,
}

impl NicStamps {
    /// Turns its stamps on. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// Why not: a driver that cannot, or no permission.
    pub fn enable(interface: &str) -> Result<Self, String> {
        interface::stamping_clock(interface)
            .map_err(|error| format!("{interface}: asking for its stamps: {error}"))?
            .ok_or_else(|| format!("{interface}: its driver does not stamp every frame"))?;
        let before = interface::stamp_both_ways(interface)
            .map_err(|error| format!("{interface}: turning its stamps on: {error}"))?;
        Ok(Self { interface: interface.to_owned(), before })
    }
}

impl Kept for NicStamps {}

/// The same, kept by a helper process, so that this one may give up its privileges.
#[derive(Debug)]
pub struct KeptNicStamps {
    _keeper: Keeper,
}

impl KeptNicStamps {
    /// As [`NicStamps::enable`]. To be called before other threads are started.
    ///
    /// # Errors
    /// As there, and where no process can be started.
    pub fn enable(interface: &str) -> Result<Self, String> {
        let set_up = || {
            let failed = |why| Failure { what: "stamps by the NIC".to_owned(), why };
            NicStamps::enable(interface).map_err(failed).map(|stamps| ((), stamps))
        };
        let ((), keeper) = Keeper::start(set_up).map_err(|failure| failure.to_string())?;
        Ok(Self { _keeper: keeper })
    }
}

impl Drop for NicStamps {
    fn drop(&mut self) {
        // The interface may be gone, and then so is the setting.
        let _ = interface::set_stamping(&self.interface, &mut self.before);
    }
}
