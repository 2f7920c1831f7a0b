//! Clocks of the taps that are set, drift or wander: told, and corrected.

use super::stretches::{by_stretches, said};
use super::worlds::World;
use super::{Arrival, MS, START_NS, US, open, options, pcap, run, try_run};
use crate::support::frames::probe;
use crate::support::{How, Order, Pcap, SECOND_NS, says};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use tailtrim_stats::Probability;
use tailtrim_tail::analysis::{Analysis, Options, Terms};
use tailtrim_tail::capture::CaptureError;
use tailtrim_tail::clock::{ClockFit, SampledSide, apart, clock_fit};
use tailtrim_tail::summary::{Summary, Warning};

/// Packets of a run, and the time between two.
const PACKETS: u32 = 2_000;
const GAP_NS: i64 = MS;

/// Latency of a device: 20 µs, up to 5 µs more for most packets, and up to 200 µs for one of 50.
fn latency(random: &mut Pcg64Mcg) -> i64 {
    let random = random.next_u64();
    let long = (random >> 32).is_multiple_of(50);
    20 * US + (random % if long { 200_000 } else { 5_000 }).cast_signed()
}

/// A run with clocks that are wrong by so much at a time since its begin.
fn world(entered: impl Fn(i64) -> i64, left: impl Fn(i64) -> i64) -> World {
    world_every(GAP_NS, entered, left)
}

/// The same with so much time between two packets.
fn world_every(gap_ns: i64, entered: impl Fn(i64) -> i64, left: impl Fn(i64) -> i64) -> World {
    let mut random = Pcg64Mcg::new(42);
    let mut world = World::default();
    for id in 0..PACKETS {
        let at_ns = i64::from(id) * gap_ns;
        let after_ns = at_ns + latency(&mut random);
        world.ingress.push((START_NS + at_ns + entered(at_ns), id));
        world.egress.push((START_NS + after_ns + left(at_ns), id));
    }
    world
}

fn right(_: i64) -> i64 {
    0
}

/// A clock that is set by so much in the middle.
fn set(by_ns: i64) -> impl Fn(i64) -> i64 {
    move |at_ns| if at_ns >= SECOND_NS { by_ns } else { 0 }
}

/// Five seconds, as by default.
fn wide() -> Options {
    Options { window: tailtrim_tail::matching::Window::default(), ..options() }
}

fn analysis(world: &World) -> Analysis {
    run(&pcap(&world.ingress), &pcap(&world.egress), &wide())
}

fn of_clocks(summary: &Summary) -> Vec<&Warning> {
    summary.warnings.iter().filter(|warning| warning.code.starts_with("clock")).collect()
}

/// That these clocks give one warning, with these facts.
#[track_caller]
fn told(world: &World, code: &str, invalidates: bool, facts: &[&str]) {
    let summary = analysis(world).summary;
    let found = of_clocks(&summary);
    let [warning] = found[..] else { panic!("{found:?}") };
    assert_eq!((warning.code, warning.invalidates), (code, invalidates), "{warning:?}");
    assert!(says(&warning.text, facts), "{warning:?}");
}

fn sides(world: &World) -> [SampledSide; 2] {
    let files = [pcap(&world.ingress), pcap(&world.egress)];
    let open = |side: usize| open("side", &files[side], How::default(), Arrival::Mapped);
    let [mut ingress, mut egress] = [open(0), open(1)];
    let terms = Terms::of(&mut ingress, &mut egress, &wide()).unwrap();
    [&mut ingress, &mut egress].map(|side| SampledSide::read(side, terms.signer(), 0).unwrap())
}

fn fitted(world: &World) -> (Analysis, ClockFit) {
    let [ingress, egress] = sides(world);
    let fit = clock_fit(&ingress, &egress);
    let options = Options { clock_fit: fit.clone(), ..wide() };
    let files = (&pcap(&world.ingress)[..], &pcap(&world.egress)[..]);
    (try_run(files, How::default(), Arrival::Mapped, &options).unwrap().0, fit)
}

fn quantiles(analysis: &Analysis) -> [i64; 4] {
    ["0.5", "0.9", "0.99", "0.999"].map(|p| {
        let p: Probability = p.parse().unwrap();
        analysis.latencies.quantile(p).unwrap()
    })
}

/// That corrected clocks give the percentiles of right ones within the bound.
#[track_caller]
fn corrects(world: &World) {
    let (fitted, fit) = fitted(world);
    let truth = quantiles(&analysis(&self::world(right, right)));
    assert_eq!(fitted.summary.samples, u64::from(PACKETS));
    assert_eq!(fitted.summary.clock_fit.as_ref(), Some(&fit).filter(|fit| fit.corrects()));
    assert!(fit.level_kept && fit.bound_ns <= 5 * US, "{fit:?}");
    for (found, truth) in quantiles(&fitted).into_iter().zip(truth) {
        assert!((found - truth).abs() <= fit.bound_ns + 1, "{found} {truth} {fit:?}");
    }
    let warnings = of_clocks(&fitted.summary);
    assert!(warnings.iter().all(|warning| warning.code == "clock_fit"), "{warnings:?}");
}

#[test]
fn right_clocks_give_no_warning() {
    assert_eq!(of_clocks(&analysis(&world(right, right)).summary), Vec::<&Warning>::new());
    let [ingress, egress] = sides(&world(right, right));
    assert_eq!(apart(&ingress, &egress, wide().window), []);
    assert!(!clock_fit(&ingress, &egress).corrects());
}

#[test]
fn a_clock_that_is_set_is_told_with_time_and_size() {
    for by_ns in [MS, 400 * MS, 4 * SECOND_NS] {
        let facts = &["longer from about 1.00", "after the first packet on", "samples before it"];
        told(&world(right, set(by_ns)), "clock_step", true, facts);
    }
    for by_ns in [-MS, -400 * MS] {
        let facts = &["shorter from about 1.00", "s after", "samples before it"];
        told(&world(right, set(by_ns)), "clock_step", true, facts);
    }
    told(&world(set(400 * MS), right), "clock_step", true, &["400 ms shorter"]);
    told(&world(right, set(400 * MS)), "clock_step", true, &["400 ms longer"]);
}

#[test]
fn a_device_that_gets_slower_is_no_clock_that_is_set() {
    told(&world(right, set(100 * US)), "clock_step", false, &["100 µs longer", "or the way"]);
}

#[test]
fn clocks_that_drift_are_told_with_their_rate() {
    for ppm in [20, -20, 100, -100] {
        let world = world(right, |at_ns| at_ns * ppm / 1_000_000);
        let way = if ppm > 0 { "longer" } else { "shorter" };
        told(&world, "clock_drift", true, &[way, " ppm", "--clock-fit"]);
        let summary = analysis(&world).summary;
        let (before, _) = of_clocks(&summary)[0].text.split_once(" ppm").unwrap();
        let found: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((found / ppm.unsigned_abs() as f64 - 1.0).abs() < 0.01, "{before}");
    }
    // 2 µs in all are less than what packets differ by.
    let slow = world(right, |at_ns| at_ns / 1_000_000);
    assert_eq!(of_clocks(&analysis(&slow).summary), Vec::<&Warning>::new());
}

#[test]
fn clocks_that_are_steered_are_told() {
    // 200 µs up and down again, at 300 ppm, within the run.
    let wander = |at_ns: i64| {
        (200e3 * (at_ns as f64 / 1e9 * 1.5 * std::f64::consts::TAU / 6.0).sin()) as i64
    };
    told(&world(right, wander), "clock_drift", true, &["wanders", "ppm"]);
    corrects(&world(right, wander));
}

#[test]
fn corrected_clocks_give_the_percentiles_of_right_ones() {
    for by_ns in [MS, -MS, 400 * MS, -400 * MS, 37 * SECOND_NS, -37 * SECOND_NS] {
        corrects(&world(right, set(by_ns)));
        corrects(&world(set(by_ns), right));
    }
    for ppm in [1, -1, 20, -20, 100, -100] {
        corrects(&world(right, |at_ns| at_ns * ppm / 1_000_000));
    }
    let drift_and_step = |at_ns| at_ns * 20 / 1_000_000 + set(37 * SECOND_NS)(at_ns);
    corrects(&world(right, drift_and_step));
    corrects(&world(right, right));
}

/// A clock that is set forward for some packets and back again: packets that left later have earlier stamps.
#[test]
fn a_clock_that_is_set_forward_and_back_is_told_and_corrected() {
    for (from, to) in [(600, 1_200), (600, 660), (1_900, 1_960)] {
        let blip = |at_ns: i64| {
            if (from * GAP_NS..to * GAP_NS).contains(&at_ns) { 400 * MS } else { 0 }
        };
        for (world, side) in [(world(right, blip), "egress"), (world(blip, right), "ingress")] {
            let [ingress, egress] = sides(&world);
            let found = apart(&ingress, &egress, wide().window);
            let [step] = &found[..] else { panic!("{found:?}") };
            assert!(step.invalidates);
            let clock = format!("the {side} clock is set back by 400 ms");
            assert!(
                says(&step.text, &[&clock, "after the first packet", "--clock-fit"]),
                "{step:?}"
            );
            assert!(analysis(&world).leftovers.set_back);
            corrects(&world);
        }
    }
}

/// Packets that the tap writes down in another order than that in which they passed are no clock that is set.
#[test]
fn disorder_of_a_tap_is_no_clock_that_is_set() {
    let mut world = world(right, right);
    for block in world.egress.chunks_mut(100) {
        block.rotate_left(50);
    }
    let [ingress, egress] = sides(&world);
    assert_eq!(apart(&ingress, &egress, wide().window), []);
    assert!(analysis(&world).leftovers.set_back);
}

/// The same for packets that are written down late, each by another time, while latencies are long and differ.
#[test]
fn random_disorder_of_a_tap_is_no_clock_that_is_set() {
    let mut random = Pcg64Mcg::new(7);
    let mut draw = |most: i64| (random.next_u64() % most.unsigned_abs()).cast_signed();
    let mut world = world(right, right);
    for side in [&mut world.ingress, &mut world.egress] {
        for packet in side.iter_mut() {
            packet.0 += draw(200 * MS);
        }
        side.sort_by_cached_key(|packet| packet.0 + draw(300 * MS));
    }
    let [ingress, egress] = sides(&world);
    assert_eq!(apart(&ingress, &egress, wide().window), []);
    assert!(analysis(&world).leftovers.set_back);
}

#[test]
fn clocks_that_are_both_set_back_can_be_corrected() {
    let world = world(set(-10 * SECOND_NS), set(-10 * SECOND_NS));
    let files = (&pcap(&world.ingress)[..], &pcap(&world.egress)[..]);
    let refused = try_run(files, How::default(), Arrival::Mapped, &wide()).map(|_| ());
    let Err(tailtrim_tail::analysis::AnalysisError::Capture(error)) = refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(error, CaptureError::Disorder { packet: 1_001, .. }), "{error}");
    corrects(&world);
}

#[test]
fn captures_too_far_apart_to_match_are_told_with_their_offset() {
    let hour = |_| 3_600 * SECOND_NS;
    let [ingress, egress] = sides(&world(right, hour));
    let found = apart(&ingress, &egress, wide().window);
    let [offset] = &found[..] else { panic!("{found:?}") };
    assert_eq!((offset.code, offset.count), ("clock_offset", u64::from(PACKETS)));
    assert!(offset.invalidates);
    assert!(says(&offset.text, &["3,600 s ahead of", "another time zone", "2,000 packets"]));
    let [ingress, egress] = sides(&world(right, |_| -1_000 * SECOND_NS));
    let found = apart(&ingress, &egress, wide().window);
    let facts = &["1,000 s behind", "do not overlap in time, are of two runs"];
    assert!(says(&found[0].text, facts), "{found:?}");
    let (fitted, fit) = fitted(&world(right, hour));
    assert!(!fit.level_kept);
    let truth = quantiles(&analysis(&world(right, right)));
    let least = analysis(&world(right, right)).summary.latency_ns.min.unwrap();
    for (found, truth) in quantiles(&fitted).into_iter().zip(truth) {
        assert!((found - (truth - least)).abs() <= fit.bound_ns, "{found} {truth}");
    }
}

#[test]
fn corrected_latencies_are_below_those_of_right_clocks_by_the_bound_at_most() {
    let least = |analysis: &Analysis| analysis.summary.latency_ns.min.unwrap();
    let truth = least(&analysis(&world(right, right)));
    // A clock that counts from when it was switched on, and one that is slewed for a second.
    let (since_boot, fit) = fitted(&world(|_| 1_700_000_000 * SECOND_NS, right));
    assert!(!fit.level_kept && fit.bound_ns < 2 * US, "{fit:?}");
    assert_eq!(least(&since_boot), 0, "{fit:?}");
    let slewed = |at_ns: i64| (at_ns - SECOND_NS / 2).clamp(0, SECOND_NS) / 2_000;
    let (slewed, fit) = fitted(&world(right, slewed));
    assert!(fit.level_kept && least(&slewed) >= truth - fit.bound_ns - 1, "{fit:?}");
}

#[test]
fn a_step_beyond_the_window_is_told_with_the_packets_that_are_not_lost() {
    for (world, clock) in [
        (world(right, set(37 * SECOND_NS)), "egress clock is set forward by 37.0 s (TAI"),
        (world(right, set(-37 * SECOND_NS)), "egress clock is set back by 37.0 s (TAI"),
        (world(set(37 * SECOND_NS), right), "ingress clock is set forward by 37.0 s (TAI"),
        (world(set(-37 * SECOND_NS), right), "ingress clock is set back by 37.0 s (TAI"),
    ] {
        let [ingress, egress] = sides(&world);
        let found = apart(&ingress, &egress, wide().window);
        let forward = clock.contains("forward");
        // Stamps that go back are corrected before they are compared.
        assert_eq!(found.len(), usize::from(forward), "{clock}: {found:?}");
        if let [step] = &found[..] {
            assert_eq!((step.code, step.count), ("clock_step", u64::from(PACKETS / 2)));
            let facts = &[clock, "1.000 s after", "its packet 1,001", "1,000 packets are not lost"];
            assert!(says(&step.text, facts), "{step:?}");
        }
    }
}

#[test]
fn coarse_stamps_are_told_with_what_that_does_to_a_latency() {
    let mut ingress = Pcap::new(Order::Little, false, 1);
    let mut egress = Pcap::ethernet();
    for id in 0..PACKETS {
        let at_ns = START_NS + i64::from(id) * GAP_NS + 777;
        ingress.frame(at_ns, &probe(id));
        egress.frame(at_ns + 400, &probe(id));
    }
    let summary = run(&ingress.bytes, &egress.bytes, &wide()).summary;
    assert_eq!(summary.latency_ns.min, Some(1_177));
    let coarse = summary.warnings.iter().find(|warning| warning.code == "coarse_stamps").unwrap();
    let facts = &["ingress stamps have steps of 1 µs", "egress stamps of 1 ns", "− 999 ns"];
    assert!(says(&coarse.text, facts) && !coarse.invalidates, "{coarse:?}");
    // 1 µs is little of 920 µs.
    let slow = world(right, |_| 900 * US);
    let mut ingress = Pcap::new(Order::Little, false, 1);
    for &(stamp_ns, id) in &slow.ingress {
        ingress.frame(stamp_ns, &probe(id));
    }
    let fine = run(&ingress.bytes, &pcap(&slow.egress), &wide()).summary;
    assert!(fine.warnings.iter().all(|warning| warning.code != "coarse_stamps"));
}

/// Packets at a constant rate have gaps that tell no step of the stamps.
#[test]
fn packets_without_latency_tell_of_coarse_stamps() {
    let cut = |ns: i64| ns.div_euclid(US) * US;
    let at_ns = |id: u32| START_NS + i64::from(id) * GAP_NS + i64::from(id) * 137 % US;
    let ingress: Vec<(i64, u32)> = (0..PACKETS).map(|id| (cut(at_ns(id)), id)).collect();
    let egress: Vec<(i64, u32)> = (0..PACKETS).map(|id| (cut(at_ns(id) + 400), id)).collect();
    let summary = run(&pcap(&ingress), &pcap(&egress), &wide()).summary;
    let coarse = summary.warnings.iter().find(|warning| warning.code == "coarse_stamps").unwrap();
    assert!(says(&coarse.text, &["1,200 of 2,000 latencies are 0"]), "{coarse:?}");
}

#[test]
fn stamps_that_a_tap_takes_in_batches_are_told() {
    let world = world(right, right);
    let held = |packet: &(i64, u32)| {
        let batch = i64::from(packet.1 / 10 + 1);
        (START_NS + batch * 10 * GAP_NS + i64::from(packet.1 % 10) * 20, packet.1)
    };
    let egress: Vec<_> = world.egress.iter().map(held).collect();
    let summary = run(&pcap(&world.ingress), &pcap(&egress), &wide()).summary;
    let batched = summary.warnings.iter().find(|warning| warning.code == "batched_stamps");
    let facts =
        &["egress stamps come in batches of about 10", "every 10.0", "up to 10.0", "too long"];
    assert!(says(&batched.unwrap().text, facts), "{batched:?}");
}

#[test]
fn a_queue_of_more_than_the_window_is_not_the_clocks() {
    // The queue grows by 10 ms with each packet, to 20 s.
    let [ingress, egress] = sides(&world(right, |at_ns| at_ns / GAP_NS * 10 * MS));
    assert_eq!(apart(&ingress, &egress, wide().window), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_drift_of_either_sign_is_corrected_within_the_bound(ppm in -200_i64..200, gap in 1_i64..10) {
        let gap_ns = gap * MS;
        let drift = |at_ns: i64| at_ns * ppm / 1_000_000;
        let truth = quantiles(&analysis(&world_every(gap_ns, right, right)));
        let (fitted, fit) = fitted(&world_every(gap_ns, right, drift));
        for (found, truth) in quantiles(&fitted).into_iter().zip(truth) {
            prop_assert!((found - truth).abs() <= fit.bound_ns + 1, "{} {} {:?}", found, truth, fit);
        }
    }

    #[test]
    fn clocks_are_told_the_same_stretch_by_stretch(
        by_ns in prop_oneof![-3 * MS..3 * MS, Just(400 * MS)],
        ppm in -50_i64..50,
        cuts in prop::collection::btree_set(0..i64::from(PACKETS) * GAP_NS, 1..4),
    ) {
        let world = world(right, |at_ns| at_ns * ppm / 1_000_000 + set(by_ns)(at_ns));
        let cuts: Vec<i64> = cuts.into_iter().map(|cut_ns| START_NS + cut_ns).collect();
        let files = (&pcap(&world.ingress)[..], &pcap(&world.egress)[..]);
        let (whole, _) = try_run(files, How::default(), Arrival::Mapped, &wide()).unwrap();
        let (pieces, _) = by_stretches::<4096>(&world, &wide(), (&cuts, 1));
        prop_assert_eq!(pieces, said(&whole, &[]));
    }
}
