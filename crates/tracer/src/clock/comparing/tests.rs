//! Simulated clocks, compared by the thread that compares real ones.

use super::*;
use std::sync::atomic::AtomicI64;

/// A clock so much ahead, read with an error of 400 ns.
#[derive(Clone)]
struct Simulated {
    device: &'static str,
    ahead_ns: Arc<AtomicI64>,
    ppm: i64,
}

impl Simulated {
    fn new(device: &'static str, ahead_ns: i64, ppm: i64) -> Self {
        Self { device, ahead_ns: Arc::new(AtomicI64::new(ahead_ns)), ppm }
    }

    fn ahead_at(&self, at_ns: i64) -> i64 {
        self.ahead_ns.load(Ordering::Relaxed) + at_ns % 1_000_000_000_000 * self.ppm / 1_000_000
    }
}

impl Readable for Simulated {
    fn device(&self) -> &str {
        self.device
    }

    fn offset(&self) -> Result<Offset, String> {
        let (at_ns, _) = crate::clock::of_the_kernel();
        match self.ahead_ns.load(Ordering::Relaxed) {
            i64::MIN => Err(format!("/dev/{}: gone", self.device)),
            _ => Ok(Offset { at_ns, offset_ns: self.ahead_at(at_ns), error_ns: 400 }),
        }
    }
}

fn begun(reference: &Simulated, other: &Simulated) -> Result<Comparing, ComparingError> {
    Comparing::every(Duration::from_millis(20), vec![reference.clone(), other.clone()])
}

#[test]
fn stamps_are_converted_within_the_bound_that_is_told() {
    let (reference, other) =
        (Simulated::new("ptp0", 37_000_000_000, -40), Simulated::new("ptp1", 5, 60));
    let comparing = begun(&reference, &other).unwrap();
    assert!(comparing.conversion("ptp0").is_none());
    let mut conversion = comparing.conversion("ptp1").unwrap();
    let mut worst_ns = 0;
    for _ in 0..50 {
        let (now_ns, _) = crate::clock::of_the_kernel();
        let stamp_ns = now_ns + other.ahead_at(now_ns);
        let off_ns = conversion.of_reference(stamp_ns) - (now_ns + reference.ahead_at(now_ns));
        worst_ns = worst_ns.max(off_ns.abs());
        thread::sleep(Duration::from_millis(2));
    }
    let told = comparing.end().remove(0);
    if told.longest_gap_ns > LONGEST_GAP_NS {
        // A busy machine has stopped the thread that reads.
        assert_eq!(told.clock_error_ns, None, "{told:?}");
        return;
    }
    assert!(worst_ns <= told.clock_error_ns.unwrap(), "{worst_ns} {told:?}");
    assert_eq!(
        (told.device.as_str(), &told.invalid[..], &told.steps[..]),
        ("ptp1", &[][..], &[][..])
    );
    assert!((told.drift_ppm.unwrap() - 100.0).abs() < 5.0, "{told:?}");
}

#[test]
fn a_step_names_its_clock_and_a_clock_that_is_gone_is_told() {
    let (reference, other) = (Simulated::new("ptp0", 0, 0), Simulated::new("ptp1", 0, 0));
    let comparing = begun(&reference, &other).unwrap();
    reference.ahead_ns.store(1_000_000_000, Ordering::Relaxed);
    thread::sleep(Duration::from_millis(60));
    let told = comparing.end().remove(0);
    assert_eq!(told.clock_error_ns, None);
    let why = "the clock ptp0 jumped, so that the one of the NICs was 1000.000 ms behind the other";
    assert_eq!(told.invalid, [why]);

    let comparing = begun(&reference, &other).unwrap();
    other.ahead_ns.store(i64::MIN, Ordering::Relaxed);
    let told = comparing.end().remove(0);
    let why = "the clocks of the NICs could not be compared at the end (/dev/ptp1: gone)";
    assert_eq!((told.clock_error_ns, &told.invalid[..]), (None, &[why.to_owned()][..]));
}

#[test]
fn a_clock_that_runs_too_fast_is_refused() {
    let (reference, other) = (Simulated::new("ptp0", 0, 0), Simulated::new("ptp1", 0, 1_500_000));
    let refused = begun(&reference, &other).err().unwrap();
    assert!(
        matches!(&refused, ComparingError::Fast { device, .. } if device == "ptp1"),
        "{refused}"
    );
    other.ahead_ns.store(i64::MIN, Ordering::Relaxed);
    assert_eq!(
        begun(&reference, &other).err(),
        Some(ComparingError::Unreadable("/dev/ptp1: gone".into()))
    );
}
