//! Packets at a constant rate that sample periodic interrupts: what latencies would be observed.

use super::sampling::{self, Sampling};
use serde::Serialize;
use tailtrim_wire::traffic::{Fraction, Pattern, Schedule};

/// A periodic interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Time between two.
    pub period_ns: Fraction,
    /// When the first begins.
    pub start_ns: u64,
    /// Durations of successive interrupts, repeated from the beginning.
    pub durations_ns: Vec<u64>,
}

/// Parameters of a simulated run.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Departure pattern of the packets.
    pub pattern: Pattern,
    /// Mean time between packets, as intended.
    pub interval_ns: Fraction,
    /// By how much the packets' clock is slow (parts in 10⁹): their intervals are longer by that.
    pub drift_ppb: i64,
    /// Latency of a packet that meets no interrupt.
    pub latency_ns: u64,
    /// Time of the run.
    pub run_ns: u64,
    /// The interrupts.
    pub interrupts: Vec<Interrupt>,
}

/// Latencies that the packets of a simulated run observe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Packets sent.
    pub packets: u64,
    /// Packets that met an interrupt.
    pub delayed: u64,
    /// When each of these was sent, and its latency.
    pub points: Vec<(u64, u64)>,
    /// Sampling of each interrupt by the schedule.
    pub sampling: Vec<Sampling>,
}

impl Interrupt {
    /// Time from `at_ns` to the end of the interrupt that holds the CPU then; 0 if none does.
    #[must_use]
    pub fn wait_ns(&self, at_ns: u64) -> u64 {
        let Some(since_ns) = at_ns.checked_sub(self.start_ns) else { return 0 };
        let number = (u128::from(since_ns) + 1) * self.period_ns.denominator;
        // The last one that began at or before this: number · period ≤ since, rounded down like it.
        let number = u64::try_from((number - 1) / self.period_ns.numerator).unwrap_or(u64::MAX);
        let started_ns = self.period_ns.times(number);
        let index = number % (self.durations_ns.len() as u64).max(1);
        let duration_ns = self.durations_ns.get(index as usize).copied().unwrap_or(0);
        (started_ns + duration_ns).saturating_sub(since_ns)
    }
}

impl Simulation {
    /// Runs it. A packet that meets an interrupt leaves after its end; interrupts that meet each other
    /// follow one another.
    #[must_use]
    pub fn run(&self) -> Observed {
        const BILLION: i64 = 1_000_000_000;
        let interval_ns = Fraction {
            numerator: self.interval_ns.numerator
                * u128::from((BILLION + self.drift_ppb).max(1).unsigned_abs()),
            denominator: self.interval_ns.denominator * u128::from(BILLION.unsigned_abs()),
        };
        let (mut packets, mut points) = (0, Vec::new());
        let mut met = vec![0_u64; self.interrupts.len()];
        let mut free_ns = 0;
        let sent = Schedule::new(&self.pattern, interval_ns, 1);
        for at_ns in sent.take_while(|at_ns| *at_ns < self.run_ns) {
            packets += 1;
            // One that waited until another had been served is served after it.
            let mut served_ns = at_ns.max(free_ns);
            loop {
                let waits = self.interrupts.iter().map(|interrupt| interrupt.wait_ns(served_ns));
                let Some((index, wait_ns)) = waits.enumerate().find(|(_, ns)| *ns > 0) else {
                    break;
                };
                met[index] += 1;
                served_ns += wait_ns;
            }
            free_ns = served_ns;
            if served_ns > at_ns {
                points.push((at_ns, served_ns - at_ns + self.latency_ns));
            }
        }
        let schedule = sampling::Schedule {
            interval_ns: interval_ns.as_f64(),
            constant: self.pattern == Pattern::Cbr,
        };
        let run_ns = i64::try_from(self.run_ns).unwrap_or(i64::MAX);
        let sampling = self.interrupts.iter().zip(met).map(|(interrupt, met)| {
            let count = (interrupt.durations_ns.len() as u64).max(1);
            let mean_ns = interrupt.durations_ns.iter().sum::<u64>() / count;
            let delay_ns = i64::try_from(mean_ns).unwrap_or(i64::MAX);
            schedule.sample((interrupt.period_ns.as_f64(), 1.0), delay_ns, met, run_ns)
        });
        Observed { packets, delayed: points.len() as u64, sampling: sampling.collect(), points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tick(durations_ns: &[u64]) -> Interrupt {
        Interrupt {
            period_ns: Fraction { numerator: 4_000_000_000, denominator: 999 },
            start_ns: 1_234_567,
            durations_ns: durations_ns.to_vec(),
        }
    }

    proptest! {
        #[test]
        fn waits_are_those_of_a_list_of_interrupts(at_ns in 0_u64..100_000_000) {
            let interrupt = tick(&[5_500, 5_500, 8_200]);
            let naive = (0..40_u64).find_map(|n| {
                let start = interrupt.start_ns + n * 4_000_000_000 / 999;
                let end = start + interrupt.durations_ns[n as usize % 3];
                (start..end).contains(&at_ns).then(|| end - at_ns)
            });
            prop_assert_eq!(interrupt.wait_ns(at_ns), naive.unwrap_or(0));
        }
    }

    fn simulation(interval_ns: u64, drift_ppb: i64) -> Simulation {
        Simulation {
            pattern: Pattern::Cbr,
            interval_ns: Fraction::whole(interval_ns),
            drift_ppb,
            latency_ns: 3_100,
            run_ns: 30_000_000_000,
            interrupts: vec![Interrupt {
                period_ns: Fraction::whole(4_000_000),
                start_ns: 50_000,
                durations_ns: vec![7_500, 7_500, 10_400],
            }],
        }
    }

    #[test]
    fn a_standing_schedule_sees_nothing_and_a_drifting_one_lines() {
        assert_eq!(simulation(100_000, 0).run().delayed, 0);
        let seen = simulation(100_000, 780_000).run();
        assert!(seen.delayed > 400, "{}", seen.delayed);
        let highest = seen.points.iter().map(|point| point.1).max();
        assert!((13_000..=13_500).contains(&highest.unwrap()), "{highest:?}");
        // The share of packets that arrive within interrupts: 25.4 µs of each 12 ms.
        let share = seen.delayed as f64 / seen.packets as f64;
        assert!((share / (25.4 / 12_000.0) - 1.0).abs() < 0.1, "{share}");
    }
}
