//! Stamps by the NIC, where all taps have them from one clock.

use super::{PortKind, PortName, XdpPort};
use crate::claims::Claims;
use tailtrim_sys::interface::{self, StampSetting};

/// NICs that stamp every frame which comes in, for as long as this lives; then as they did before.
#[derive(Debug)]
pub struct HardwareStamps {
    before: Vec<(String, StampSetting)>,
    clocks: Vec<String>,
}

impl HardwareStamps {
    /// Turns stamps on at every port.
    ///
    /// Stamps of different clocks do not subtract, so a latency needs one clock for all taps: two ports
    /// of one NIC mostly share theirs. Where `several` clocks may stamp, they are to be compared.
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
        let mut enabled = Self { before: Vec::new(), clocks };
        for port in ports {
            let before = interface::stamp_all(&port.interface)
                .map_err(|error| format!("{port}: turning its stamps on: {error}"))?;
            enabled.before.push((port.interface.clone(), before));
        }
        Ok(enabled)
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

impl Drop for HardwareStamps {
    fn drop(&mut self) {
        // Of an interface that is there twice, the first setting is that of before.
        for (name, before) in self.before.iter_mut().rev() {
            // The interface may be gone, and then so is the setting.
            let _ = interface::set_stamping(name, before);
        }
    }
}
