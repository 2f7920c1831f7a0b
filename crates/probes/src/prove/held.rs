//! Interfaces that are up, and whose NICs stamp, for as long as they are measured; then as before.

use serde::{Deserialize, Serialize};
use std::io;
use tailtrim_ports::keeper::{Failure, Keeper, Kept};
use tailtrim_sys::interface::{self, StampSetting};

/// `HWTSTAMP_FILTER_…` in the order in which they are tried: all packets, PTP events by any transport, by Ethernet.
const FILTERS: [i32; 3] = [1, 12, 9];

/// Answer of a driver to the wish for stamps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Set {
    /// The number of the filter that it really set.
    pub(super) filter: i32,
    /// Whether sent packets are stamped.
    pub(super) sends: bool,
    /// Why there are no stamps.
    pub(super) why: Option<String>,
}

/// Interfaces in the hands of a helper process, which puts them back also when this one is killed.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) set: Vec<Set>,
    _keeper: Keeper,
}

impl Held {
    /// Sets interfaces up and turns their stamps on. To be called before other threads are started.
    pub(super) fn take(names: [&str; 2]) -> Result<Self, String> {
        let set_up = || {
            let (mut set, mut kept) = (Vec::new(), Interfaces(Vec::new()));
            for name in names {
                let (one, before) = taken(name)?;
                set.push(one);
                kept.0.push(before);
            }
            Ok((set, kept))
        };
        let (set, keeper) = Keeper::start(set_up).map_err(|failure| failure.to_string())?;
        Ok(Self { set, _keeper: keeper })
    }
}

struct Interfaces(Vec<Before>);

impl Kept for Interfaces {}

/// State of an interface before.
struct Before {
    name: String,
    up: bool,
    stamps: Option<StampSetting>,
}

impl Drop for Before {
    fn drop(&mut self) {
        // The interface may be gone, and then so are its settings.
        if let Some(stamps) = &mut self.stamps {
            let _ = interface::set_stamping(&self.name, stamps);
        }
        if !self.up {
            let _ = interface::set_up(&self.name, false);
        }
    }
}

fn taken(name: &str) -> Result<(Set, Before), Failure> {
    let failed = |what: &'static str| {
        move |why: io::Error| {
            let refused = why.kind() == io::ErrorKind::PermissionDenied;
            let right =
                if refused { " (needs root, or CAP_NET_ADMIN and CAP_NET_RAW)" } else { "" };
            Failure { what: format!("{name}: {what}"), why: format!("{why}{right}") }
        }
    };
    let up = interface::state(name).map_err(failed("asking for its state"))?.up;
    let mut before = Before { name: name.to_owned(), up, stamps: None };
    if !up {
        interface::set_up(name, true).map_err(failed("setting it up"))?;
    }
    // Drivers of before Linux 3.14 set and do not tell.
    let stamps = interface::stamping(name).unwrap_or_default();
    let set = match stamped(name) {
        Ok(real) => {
            before.stamps = Some(stamps);
            Set { filter: real.receive_filter(), sends: real.sends(), why: None }
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(failed("turning its stamps on")(error));
        }
        Err(error) => Set { why: Some(error.to_string()), ..Set::default() },
    };
    Ok((set, before))
}

/// Sets as much as the driver takes. Returns what it really set.
fn stamped(name: &str) -> io::Result<StampSetting> {
    let mut last = io::ErrorKind::Unsupported.into();
    for sends in [true, false] {
        for filter in FILTERS {
            let mut wanted = StampSetting::of(filter, sends);
            match interface::set_stamping(name, &mut wanted) {
                Ok(()) => return Ok(wanted),
                // Another filter may do.
                Err(error) if error.raw_os_error() == Some(libc::ERANGE) => last = error,
                Err(error) => return Err(error),
            }
        }
    }
    Err(last)
}
