//! Disturbances of a device, of known kind and time, against which an explanation of its late packets can be checked.

use super::delay::uniform;
use crate::duration::time_ns;
use std::fmt;
use std::str::FromStr;

/// Something that makes packets late, at known times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disturbance {
    /// Kind of disturbance.
    pub kind: Disturbing,
    /// Mean time between two disturbances.
    pub every_ns: u64,
    /// Length of each disturbance, where the disturbing program determines it; 0 elsewhere.
    pub for_ns: u64,
}

/// Kinds of disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbing {
    /// From within the process: memory is given back, whose translations have to go from every CPU that runs it.
    Unmap,
    /// From within: the right to write to memory is taken away, which is the same.
    Protect,
    /// From within: all CPUs that run the process have to pass a memory barrier.
    Barrier,
    /// The process itself sleeps.
    Pause,
    /// From outside: a thread of the same priority wants the CPU.
    Thread,
    /// A thread of real-time priority takes it.
    Fifo,
    /// Timers expire on the CPU, one every 20 µs.
    Timers,
    /// Packets that are none of the device's are received on the CPU.
    Softirqs,
    /// The control group of the process gets next to no CPU time.
    Quota,
    /// The process is stopped by a signal.
    Stop,
    /// A BPF program is attached to a tracepoint and taken off it, for which the kernel changes its code.
    Program,
}

/// Their names, whether they last as long as is asked for, and whether they come from within the process.
const KINDS: [(&str, Disturbing, bool, bool); 11] = [
    ("munmap", Disturbing::Unmap, false, true),
    ("mprotect", Disturbing::Protect, false, true),
    ("membarrier", Disturbing::Barrier, false, true),
    ("pause", Disturbing::Pause, true, true),
    ("thread", Disturbing::Thread, true, false),
    ("fifo", Disturbing::Fifo, true, false),
    ("timers", Disturbing::Timers, true, false),
    ("softirqs", Disturbing::Softirqs, true, false),
    ("quota", Disturbing::Quota, true, false),
    ("stop", Disturbing::Stop, true, false),
    ("bpf", Disturbing::Program, false, false),
];

/// A text that is not a disturbance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid disturbance {text:?}, expected munmap:EVERY, mprotect:EVERY, membarrier:EVERY or bpf:EVERY, or pause, \
     thread, \
     fifo, timers, softirqs, quota or stop with :TIME,EVERY, each time such as 20ms"
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
    let (name, times) = text.split_once(':')?;
    let (_, kind, lasts, _) = KINDS.into_iter().find(|(known, ..)| *known == name)?;
    let times: Vec<u64> = times.split(',').map(time_ns).collect::<Option<_>>()?;
    let (for_ns, every_ns) = match (lasts, times.as_slice()) {
        (false, [every_ns]) => (0, *every_ns),
        (true, [for_ns, every_ns]) => (*for_ns, *every_ns),
        _ => return None,
    };
    (every_ns > 0).then_some(Disturbance { kind, every_ns, for_ns })
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _, lasts, _) = self.row();
        if lasts {
            write!(f, "{name}:{}ns,{}ns", self.for_ns, self.every_ns)
        } else {
            write!(f, "{name}:{}ns", self.every_ns)
        }
    }
}

impl Disturbance {
    fn row(&self) -> (&'static str, Disturbing, bool, bool) {
        KINDS.into_iter().find(|(_, kind, ..)| *kind == self.kind).unwrap_or(KINDS[0])
    }

    /// Whether only the process itself can do it.
    #[must_use]
    pub fn from_within(&self) -> bool {
        self.row().3
    }

    /// Time to wait before the `number`-th disturbance: half to one and a half of the mean, so that it has no rhythm of
    /// its own.
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
        for (name, _, lasts, _) in KINDS {
            let text = if lasts { format!("{name}:1500us,20ms") } else { format!("{name}:20ms") };
            let disturbance: Disturbance = text.parse().unwrap();
            assert_eq!(disturbance.every_ns, 20_000_000);
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
