//! Simulated devices: queues with all that delays packets, and clocks with and without faults.

use super::envelope::Envelope;
use super::faults::{Faults, faults};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

struct Random(Pcg64Mcg);

impl Random {
    /// Between 0 and 1, exclusively.
    fn share(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.share()
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.share().ln()
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.share() * of.len() as f64) as usize]
    }
}

/// Packets of a run: when they enter, and their latencies, in ns.
type Run = Vec<(i64, i64)>;

/// A queue in front of a device that takes its time, is interrupted, and now and then has other work.
fn device(random: &mut Random, most_load: f64) -> Run {
    let packets = random.one_of(&[1_000, 3_000, 10_000, 50_000]);
    let gap = random.one_of(&[1e3, 1e4, 1e5, 1e6, 1e7]);
    let load = random.between(0.05, most_load);
    let (evenly, service) = (random.share() < 0.5, random.one_of(&[0, 1, 2, 3]));
    let way = random.between(1_000.0, 50_000.0);
    let jitter = way * random.between(0.01, 0.5);
    let (every, stall) = (random.between(1e6, 1e8), random.between(1e4, 1e6));
    let interrupted = random.share() < 0.5;
    let episode = if random.share() < 0.5 {
        let begin = random.between(0.0, 0.9);
        (begin, begin + random.between(0.02, 0.3), random.between(1.5, 4.0))
    } else {
        (2.0, 2.0, 1.0)
    };
    let buffer = gap * random.between(20.0, 2_000.0);
    let (mut now, mut free, mut next_stall) = (0.0_f64, 0.0_f64, every);
    let mut run = Vec::with_capacity(packets);
    for index in 0..packets {
        let part = index as f64 / packets as f64;
        let busy = if (episode.0..episode.1).contains(&part) { episode.2 } else { 1.0 };
        now += if evenly { gap } else { random.exponential(gap) };
        while interrupted && next_stall < now {
            free = free.max(next_stall) + random.exponential(stall);
            next_stall += every;
        }
        let mean = load * busy * gap;
        let time = match service {
            0 => mean,
            1 => random.exponential(mean),
            2 => mean * 0.5 * random.share().powf(-0.5),
            _ => mean * (random.share() + 0.5),
        };
        if free - now > buffer {
            continue; // lost
        }
        free = free.max(now) + time;
        let latency = free - now + way + random.exponential(jitter);
        run.push((now as i64, latency as i64));
    }
    run
}

fn describe(random: &mut Random, most_load: f64) -> String {
    let packets = random.one_of(&[1_000, 3_000, 10_000, 50_000]);
    let gap = random.one_of(&[1e3, 1e4, 1e5, 1e6, 1e7]);
    let load = random.between(0.05, most_load);
    let (evenly, service) = (random.share() < 0.5, random.one_of(&[0, 1, 2, 3]));
    let way = random.between(1_000.0, 50_000.0);
    let jitter = way * random.between(0.01, 0.5);
    let (every, stall) = (random.between(1e6, 1e8), random.between(1e4, 1e6));
    let interrupted = random.share() < 0.5;
    let episode = if random.share() < 0.5 {
        let begin = random.between(0.0, 0.9);
        (begin, begin + random.between(0.02, 0.3), random.between(1.5, 4.0))
    } else {
        (2.0, 2.0, 1.0)
    };
    let buffer = gap * random.between(20.0, 2_000.0);
    format!(
        "n {packets} gap {gap} load {load:.2} cbr {evenly} s {service} way {way:.0} jit {jitter:.0} every {every:.0} stall {stall:.0} {interrupted} ep {episode:.2?} buf {buffer:.0}"
    )
}

fn found(run: &Run) -> Faults {
    let mut envelope = Envelope::new();
    let start_ns = 1_700_000_000_000_000_000;
    run.iter().for_each(|&(at_ns, ns)| envelope.record(start_ns + at_ns, ns));
    let mut variation = tailtrim_stats::Histogram::around_zero();
    variation.record_all(run.windows(2).map(|pair| pair[1].1 - pair[0].1));
    let mut latencies: Vec<i64> = run.iter().map(|packet| packet.1).collect();
    latencies.sort_unstable();
    faults(&envelope, latencies[latencies.len() / 2], &variation)
}

fn random(seed: u64) -> Random {
    Random(Pcg64Mcg::new(u128::from(seed) << 32 | 0xcafe_f00d))
}

#[test]
fn simulate() {
    let runs: u64 = std::env::var("RUNS").map_or(300, |runs| runs.parse().unwrap());
    let seed: u64 = std::env::var("SEED").map_or(1, |runs| runs.parse().unwrap());
    for load in [0.8, 0.95, 1.02] {
        let (mut steps, mut certain, mut drifts) = (0, 0, 0);
        for run in 0..runs {
            let packets = device(&mut random(seed * 1_000_003 + run), load);
            let faults = found(&packets);
            steps += u32::from(!faults.steps.is_empty());
            certain += u32::from(faults.steps.iter().any(|step| step.certain));
            drifts += u32::from(faults.drift.is_some());
            if faults != Faults::default() && std::env::var("SHOW").is_ok() {
                println!(
                    "{load} {run}: {} {:?}",
                    describe(&mut random(seed * 1_000_003 + run), load),
                    faults
                );
            }
        }
        println!("up to {load}: of {runs}, {steps} steps, {certain} certain, {drifts} drifts");
    }
    let table = |name: &str, change: &dyn Fn(&mut Random, f64, f64) -> f64| {
        let (mut steps, mut certain, mut drifts, mut none, mut all) = (0, 0, 0, 0, 0);
        let mut sizes = Vec::new();
        for run in 0..runs {
            let mut random = random(seed * 7_000_003 + run);
            let mut packets = device(&mut random, 0.8);
            let length = packets.last().unwrap().0 as f64;
            let phase = random.share();
            if change(&mut random, length, length).abs() < 1e5
                && change(&mut random, 0.3 * length, length).abs() < 1e5
                && !name.starts_with("step")
            {
                continue;
            }
            all += 1;
            for packet in &mut packets {
                packet.1 +=
                    change(&mut Random(random.0.clone()), packet.0 as f64, length + phase) as i64;
            }
            let faults = found(&packets);
            steps += u32::from(!faults.steps.is_empty());
            certain += u32::from(faults.steps.iter().any(|step| step.certain));
            drifts += u32::from(faults.drift.is_some());
            none += u32::from(faults == Faults::default());
            if let Some(step) = faults.steps.first() {
                sizes.push(step.by_ns)
            }
        }
        sizes.sort_unstable();
        let middle = sizes.get(sizes.len() / 2);
        println!(
            "{name}: of {all}, {steps} steps, {certain} certain, {drifts} drifts, {none} none; {middle:?}"
        );
    };
    for by in [3e4, 1e6, -1e6, 4e8, -4e8] {
        table(&format!("step {by}"), &|_, t, length| if t > length * 0.4 { by } else { 0.0 });
    }
    for ppm in [1.0, -1.0, 20.0, -20.0, 100.0] {
        table(&format!("drift {ppm} ppm"), &|_, t, _| t * ppm * 1e-6);
    }
    for swing in [1e5, 1e6] {
        table(&format!("wander {swing}"), &|_, t, length| swing * (t / length * 9.0).sin());
    }
}
