//! What a device of known truth does to itself, so that an explanation can be checked against it.

use super::delay::{time_ns, uniform};
use std::fmt;
use std::str::FromStr;

/// Something that makes packets late, at known times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disturbance {
    /// What.
    pub kind: Disturbing,
    /// How far apart on average.
    pub every_ns: u64,
}

/// What a thread of the device's process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbing {
    /// Gives memory back: its translations have to go from every CPU that runs the process.
    Unmap,
    /// Takes the right to write to memory away: the same.
    Protect,
    /// Asks all CPUs that run the process for a memory barrier.
    Barrier,
    /// Has the device sleep for so long.
    Pause {
        /// For how long.
        ns: u64,
    },
}

/// A text that is no disturbance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no disturbance; expected munmap:EVERY, mprotect:EVERY, membarrier:EVERY or pause:TIME,EVERY with \
     times such as 20ms"
)]
pub struct DisturbanceError {
    text: String,
}

impl FromStr for Disturbance {
    type Err = DisturbanceError;

    fn from_str(text: &str) -> Result<Self, DisturbanceError> {
        parse(text).ok_or_else(|| DisturbanceError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Disturbance> {
    let (kind, times) = text.split_once(':')?;
    let times: Vec<u64> = times.split(',').map(time_ns).collect::<Option<_>>()?;
    let (kind, every_ns) = match (kind, times.as_slice()) {
        ("munmap", [every_ns]) => (Disturbing::Unmap, *every_ns),
        ("mprotect", [every_ns]) => (Disturbing::Protect, *every_ns),
        ("membarrier", [every_ns]) => (Disturbing::Barrier, *every_ns),
        ("pause", [ns, every_ns]) => (Disturbing::Pause { ns: *ns }, *every_ns),
        _ => return None,
    };
    (every_ns > 0).then_some(Disturbance { kind, every_ns })
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let every_ns = self.every_ns;
        match self.kind {
            Disturbing::Unmap => write!(f, "munmap:{every_ns}ns"),
            Disturbing::Protect => write!(f, "mprotect:{every_ns}ns"),
            Disturbing::Barrier => write!(f, "membarrier:{every_ns}ns"),
            Disturbing::Pause { ns } => write!(f, "pause:{ns}ns,{every_ns}ns"),
        }
    }
}

impl Disturbance {
    /// How long to wait before the `number`-th time: half to one and a half of the mean, so that it has no rhythm
    /// of its own.
    #[must_use]
    pub fn wait_ns(&self, seed: u64, number: u64) -> u64 {
        let half = self.every_ns as f64 / 2.0;
        (half + uniform(seed, number) * self.every_ns as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_back() {
        for text in ["munmap:20ms", "mprotect:1500us", "membarrier:5ms", "pause:2ms,100ms"] {
            let disturbance: Disturbance = text.parse().unwrap();
            assert_eq!(disturbance.to_string().parse(), Ok(disturbance), "{text}");
        }
        for text in ["munmap", "munmap:0ms", "pause:2ms", "munmap:1ms,2ms", "nap:1ms", "munmap:x"] {
            assert!(text.parse::<Disturbance>().is_err(), "{text}");
        }
    }

    #[test]
    fn waits_have_the_mean_that_was_asked_for() {
        let disturbance: Disturbance = "munmap:10ms".parse().unwrap();
        let waits: Vec<u64> = (0..1000).map(|number| disturbance.wait_ns(7, number)).collect();
        assert!(waits.iter().all(|ns| (5_000_000..15_000_000).contains(ns)));
        let mean_ns = waits.iter().sum::<u64>() / 1000;
        assert!((9_500_000..10_500_000).contains(&mean_ns), "{mean_ns}");
    }
}
