//! Waiting for the first of two ports.

use super::{Port, PortError};
use std::time::{Duration, Instant};
use tailtrim_sys::poll;

/// Time for which each of two ports without a descriptor for poll(2) is waited for before it is the other's turn.
const TURN: Duration = Duration::from_micros(100);

/// Waits until a frame has come to one of two ports, at most so long. Returns whether one has.
///
/// # Errors
/// [`PortError::Broken`].
pub fn wait_either(
    one: &mut dyn Port,
    other: &mut dyn Port,
    timeout: Duration,
) -> Result<bool, PortError> {
    // Frames and errors that are there already. In AF_XDP such a call also sends frames.
    let mut ready = one.wait(Duration::ZERO)? | other.wait(Duration::ZERO)?;
    if ready {
        return Ok(true);
    }
    let (mut files, others) = (one.descriptors(), other.descriptors());
    if !files.is_empty() && !others.is_empty() {
        files.extend(others);
        poll::any(&files, timeout).map_err(|source| PortError::Broken {
            port: "two ports".to_owned(),
            what: "waiting",
            source,
        })?;
        return Ok(one.wait(Duration::ZERO)? | other.wait(Duration::ZERO)?);
    }
    #[expect(clippy::disallowed_methods, reason = "this is the crate that reads clocks")]
    let end = Instant::now() + timeout;
    while !ready {
        #[expect(clippy::disallowed_methods, reason = "this is the crate that reads clocks")]
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        ready = one.wait(left.min(TURN))? || other.wait(Duration::ZERO)?;
        if !ready && !left.is_zero() {
            ready = other.wait(left.min(TURN))?;
        }
    }
    Ok(ready)
}
