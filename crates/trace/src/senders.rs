//! Senders of interrupts: the record of another CPU that comes nearest before the interrupt.

use super::record::{Record, What};
use super::symbols::Symbols;
use std::collections::HashMap;

/// Purposes of interrupts between CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Purpose {
    Reschedule,
    Call,
    Work,
}

/// A sent interrupt or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// When, in ticks.
    pub stamp: u64,
    /// The process that sent it; `None` for an interrupt or softirq, whichever process it interrupted.
    pub pid: Option<u32>,
    /// The address that it was sent from.
    pub callsite: u64,
}

/// All interrupts and requests that were sent during a recording.
#[derive(Debug, Default)]
pub struct Senders {
    /// By CPU and address of the request; ascending in time.
    requests: HashMap<(u32, u64), Vec<Sent>>,
    /// By CPU and purpose.
    interrupts: HashMap<(u32, Purpose), Vec<Sent>>,
}

impl Senders {
    /// Collects them; records of other kinds are skipped.
    #[must_use]
    pub fn new(records: &[Record], symbols: &Symbols) -> Self {
        let mut senders = Self::default();
        for Record { stamp, pid, interrupting, what, .. } in records {
            let pid = (!interrupting).then_some(*pid);
            let sent = |callsite: &u64| Sent { stamp: *stamp, pid, callsite: *callsite };
            match what {
                What::Queued { cpu, request, callsite } => {
                    senders.requests.entry((*cpu, *request)).or_default().push(sent(callsite));
                }
                What::Sent { cpus, callsite, callback } => {
                    for cpu in cpus {
                        let key = (*cpu, purpose(*callback, symbols));
                        senders.interrupts.entry(key).or_default().push(sent(callsite));
                    }
                }
                _ => {}
            }
        }
        for list in senders.requests.values_mut().chain(senders.interrupts.values_mut()) {
            list.sort_by_key(|sent| sent.stamp);
        }
        senders
    }

    /// Finds the sender of the request for the function that begins on a CPU at `stamp`, at most `within` ticks before.
    #[must_use]
    pub fn of_request(&self, cpu: u32, request: u64, stamp: u64, within: u64) -> Option<Sent> {
        nearest(self.requests.get(&(cpu, request))?, stamp, within)
    }

    /// Finds the sender of the interrupt of this name that a CPU takes at `stamp`, at most `within` ticks before.
    #[must_use]
    pub fn of_interrupt(&self, cpu: u32, name: &str, stamp: u64, within: u64) -> Option<Sent> {
        let purpose = match name {
            "reschedule" => Purpose::Reschedule,
            "call_function" | "call_function_single" => Purpose::Call,
            "irq_work" => Purpose::Work,
            _ => return None,
        };
        nearest(self.interrupts.get(&(cpu, purpose))?, stamp, within)
    }
}

/// Purpose by the function to call: a rescheduling interrupt has none, and function calls go through one function of
/// the kernel.
fn purpose(callback: u64, symbols: &Symbols) -> Purpose {
    if callback == 0 {
        Purpose::Reschedule
    } else if symbols.name(callback).contains("call_function") {
        Purpose::Call
    } else {
        Purpose::Work
    }
}

fn nearest(list: &[Sent], stamp: u64, within: u64) -> Option<Sent> {
    let after = list.partition_point(|sent| sent.stamp <= stamp);
    let sent = list[after.checked_sub(1)?];
    (stamp - sent.stamp <= within).then_some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_before_of_the_same_kind() {
        let symbols = Symbols::parse("10 T generic_smp_call_function_single_interrupt\n20 T wake");
        let sent = |stamp, pid, callback| Record {
            stamp,
            pid,
            interrupting: pid == 5,
            rescheduling: false,
            what: What::Sent { cpus: vec![1, 3], callsite: 5, callback },
        };
        let queued = What::Queued { cpu: 1, request: 9, callsite: 6 };
        let senders = Senders::new(
            &[
                sent(30, 3, 0),
                sent(10, 1, 0x10),
                sent(20, 2, 0),
                sent(50, 5, 0),
                Record {
                    stamp: 12,
                    pid: 4,
                    interrupting: false,
                    rescheduling: false,
                    what: queued,
                },
            ],
            &symbols,
        );
        let who = |name, stamp| senders.of_interrupt(1, name, stamp, 8).map(|sent| sent.pid);
        assert_eq!(who("reschedule", 25), Some(Some(2)));
        assert_eq!(who("reschedule", 30), Some(Some(3)));
        // An interrupted process has not sent the interrupt.
        assert_eq!(who("reschedule", 51), Some(None));
        assert_eq!(who("reschedule", 19), None);
        assert_eq!(who("reschedule", 39), None);
        assert_eq!(who("call_function_single", 11), Some(Some(1)));
        assert_eq!(who("irq_work", 11), None);
        assert_eq!(who("local_timer", 11), None);
        assert_eq!(senders.of_interrupt(2, "reschedule", 25, 8), None);
        assert_eq!(
            senders.of_request(1, 9, 13, 8).map(|sent| (sent.pid, sent.callsite)),
            Some((Some(4), 6))
        );
        assert_eq!(senders.of_request(1, 8, 13, 8), None);
    }
}
