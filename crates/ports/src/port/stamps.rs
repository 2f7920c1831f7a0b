//! Stamps by the NIC, where all taps have them from one clock.

use super::{PortKind, PortName, XdpPort};
use crate::claims::Claims;
use crate::keeper::{Failure, Keeper, Kept};
use tailtrim_sys::interface::{self, StampSetting};

/// NICs that stamp every frame which comes in, for as long as this lives; then as they did before, also where this process
/// is killed.
#[derive(Debug)]
pub struct HardwareStamps {
    clocks: Vec<String>,
    _keeper: Keeper,
}

/// Settings from before, restored when this is dropped.
struct Before(Vec<(String, StampSetting)>);

impl Kept for Before {}

impl HardwareStamps {
    /// Turns stamps on at every port.
    ///
    /// Stamps of different clocks do not subtract, so a latency needs one clock for all taps: two ports
    /// of one NIC mostly share theirs. Where `several` clocks may stamp, they are to be compared. To be called before other
    /// threads are started.
    ///
    /// # Errors
    /// Why not: a NIC that cannot, clocks that differ, or no permission.
    pub fn enable(ports: &[PortName], several: bool) -> Result<Self, String> {
        let mut clocks: Vec<String> = Vec::new();
        for port in ports {
            let clock = interface::stamping_clock(&port.interface)
                .map_err(|error| format!("{port}: asking for its stamps: {error}"))?
                .ok_or_else(|| format!("{port}: its driver does not stamp every frame"))?;
            if port.kind == PortKind::Xdp {
                if !claims_hints(port) {
                    return Err(format!("{port}: its driver gives no stamps to XDP programs"));
                }
                XdpPort::check_hints(port).map_err(|error| error.to_string())?;
            }
            let clock = format!("ptp{clock}");
            if let Some(other) = clocks.first().filter(|other| !several && **other != clock) {
                return Err(format!("{port}: stamps by clock {clock}, others by {other}"));
            }
            clocks.push(clock);
        }
        let set_up = || {
            let mut set = Before(Vec::new());
            for port in ports {
                let before = interface::stamp_all(&port.interface);
                let before = before.map_err(|error| {
                    Failure::of(&format!("{port}: turning its stamps on"))(error)
                })?;
                set.0.push((port.interface.clone(), before));
            }
            Ok(((), set))
        };
        let ((), keeper) = Keeper::start(set_up).map_err(|failure| failure.to_string())?;
        Ok(Self { clocks, _keeper: keeper })
    }

    /// The clock of each port, such as `ptp0`.
    #[must_use]
    pub fn clocks(&self) -> &[String] {
        &self.clocks
    }
}

/// Whether its driver claims that XDP programs can have the NIC's stamps.
fn claims_hints(port: &PortName) -> bool {
    let claims = Claims::of(&port.interface).ok().and_then(|claims| claims.af_xdp);
    claims.is_some_and(|told| told.hints_stamps())
}

impl Drop for Before {
    fn drop(&mut self) {
        // Of an interface that is there twice, the first setting is that of before.
        for (name, before) in self.0.iter_mut().rev() {
            // The interface may be gone, and then so is the setting.
            let _ = interface::set_stamping(name, before);
        }
    }
}
