//! Which phases of a clock packets meet: a schedule that keeps to a clock meets few, however long it runs.

use super::NS_PER_S;

/// Ticks of kernels (Kconfig.hz), and timers of 10 and 4 Hz.
const CLOCKS_HZ: [u64; 6] = [1_000, 300, 250, 100, 10, 4];

/// Clocks with fewer periods in a run show in its latencies one by one.
const FEWEST_PERIODS: u64 = 8;

/// The clocks that a run of so long has to cover.
pub fn clocks(run_ns: u64) -> impl Iterator<Item = u64> {
    CLOCKS_HZ.into_iter().filter(move |hz| run_ns.saturating_mul(*hz) / NS_PER_S >= FEWEST_PERIODS)
}

/// A cause that takes the device for so long delays a packet that comes at any time of it.
pub const REACH_NS: u64 = 10_000;

/// A clock is covered if packets meet this share of the phases that as many packets at random times would meet. So a run is
/// not blamed on its schedule for being short.
const COVERED: f64 = 0.9;

/// Most packets that are looked at for each clock. Those of 10 µs or less cover each clock anyway, so that these are more
/// than ten seconds.
pub const LOOKED_AT: usize = 1 << 20;

/// Phases are told apart so far.
const BIN_NS: u64 = 1_000;

/// The share of the phases that packets at these times meet, see [`covered`], if a clock is not covered.
#[must_use]
pub fn lacking(
    times_ns: impl IntoIterator<Item = u64>,
    clock_hz: u64,
    reach_ns: u64,
) -> Option<f64> {
    let mut packets = 0_u64;
    let counted = times_ns.into_iter().inspect(|_| packets += 1);
    let share = covered(counted, clock_hz, reach_ns);
    let each = reach_ns as f64 * clock_hz as f64 / NS_PER_S as f64;
    let random = 1.0 - libm::exp(-(packets as f64) * each);
    (share < COVERED * random).then_some(share)
}

/// Share of the phases of a clock at which a cause that lasts `reach_ns` would meet a packet, of packets at these times in
/// ns. The times are below 10^16.
#[must_use]
pub fn covered(times_ns: impl IntoIterator<Item = u64>, clock_hz: u64, reach_ns: u64) -> f64 {
    let bins = (NS_PER_S / clock_hz.max(1)).div_ceil(BIN_NS).max(1);
    let mut met = vec![false; bins as usize];
    for at_ns in times_ns {
        // In billionths of the period, so that nothing is rounded.
        let phase = at_ns * clock_hz % NS_PER_S;
        met[(phase * bins / NS_PER_S) as usize] = true;
    }
    let reach = (reach_ns / BIN_NS).max(1);
    let mut left = 0;
    let mut count = 0_u64;
    // Twice around: at the first bin, what the last ones met is known.
    for (turn, met) in met.iter().chain(&met).enumerate() {
        left = if *met { reach } else { left - u64::from(left > 0) };
        count += u64::from(turn as u64 >= bins && left > 0);
    }
    count as f64 / bins as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets at a constant rate that is off by so many parts of a million.
    fn constant(interval_ns: f64, ppm: f64, seconds: f64) -> impl Iterator<Item = u64> {
        let interval_ns = interval_ns * (1.0 + ppm / 1e6);
        (0..(seconds * 1e9 / interval_ns) as u64).map(move |n| (n as f64 * interval_ns) as u64)
    }

    #[test]
    fn a_clock_is_covered_when_drift_times_run_is_the_interval() {
        for (ppm, expected) in [(0.0, 0.10), (0.3, 0.16), (3.0, 0.70), (4.5, 1.0), (30.0, 1.0)] {
            let share = covered(constant(100_000.0, ppm, 20.0), 250, REACH_NS);
            assert!((share - expected).abs() < 0.02, "{ppm} ppm: {share}");
        }
    }

    #[test]
    fn a_run_that_is_only_short_lacks_nothing() {
        // 20,000 packets cannot meet all phases of 4 Hz, whatever their schedule is.
        let short = || constant(150_010.0, 0.0, 3.0);
        assert!(covered(short(), 4, REACH_NS) < 0.7);
        assert_eq!(lacking(short(), 4, REACH_NS), None);
        assert!(lacking(constant(100_000.0, 0.0, 3.0), 4, REACH_NS).is_some());
    }

    #[test]
    fn the_end_of_a_period_goes_on_at_its_start() {
        // One packet 2 µs before the end of each period of 1 ms.
        let times = (1..10).map(|n| n * 1_000_000 - 2_000);
        assert!((covered(times, 1_000, 10_000) - 0.01).abs() < 1e-9);
        assert!(covered(0..0, 1_000, 10_000).abs() < 1e-9);
    }
}
