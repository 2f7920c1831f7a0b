//! Disturbing a device under test at times that are written down: the known truth that explanations are checked
//! against.

mod group;
mod inside;
mod outside;

pub use inside::{Disturber, Pause};
pub use outside::{Target, disturb};

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_sys::clock;
use tailtrim_wire::traffic::Disturbance;

/// From when to when something was disturbed, `CLOCK_REALTIME`.
pub type Span = (i64, i64);

/// The longest sleep without a look at whether it is over. Looking disturbs, too, where it is the device's CPU.
const LOOK_NS: u64 = 500_000_000;

/// Does it again and again at its times, until `stopped`.
fn repeat(
    disturbance: &Disturbance,
    seed: u64,
    stopped: &AtomicBool,
    mut once: impl FnMut() -> io::Result<Vec<Span>>,
) -> io::Result<Vec<Span>> {
    let mut spans = Vec::new();
    for number in 0.. {
        let mut left_ns = disturbance.wait_ns(seed, number);
        while left_ns > 0 && !stopped.load(Ordering::Relaxed) {
            let step_ns = left_ns.min(LOOK_NS);
            thread::sleep(Duration::from_nanos(step_ns));
            left_ns -= step_ns;
        }
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        spans.extend(once()?);
    }
    Ok(spans)
}

/// Works until so much later, and returns from when to when.
fn work(for_ns: u64, mut piece: impl FnMut() -> io::Result<()>) -> io::Result<Span> {
    let start_ns = clock::realtime_ns();
    let until_ns = start_ns.saturating_add_unsigned(for_ns);
    loop {
        piece()?;
        let now_ns = clock::realtime_ns();
        if now_ns >= until_ns {
            return Ok((start_ns, now_ns));
        }
    }
}
