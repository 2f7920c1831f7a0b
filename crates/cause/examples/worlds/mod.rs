//! Simulated runs: a queue with one server that stalls at known times.

use crate::random::Random;

/// Time that a packet needs without a stall, besides its service; then the service.
const WAY_NS: f64 = 10_000.0;
const SERVICE_NS: f64 = 800.0;

/// Length of a run, and of a run of [`Sources::Pair`].
const RUN_NS: f64 = 20e9;
const PAIR_RUN_NS: f64 = 30e9;

/// Sources of a world.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sources {
    /// 0 to 4, some of them commensurable.
    Any,
    /// A frequent short one and a rare long one.
    Pair,
}

/// Counts of each schedule, over as many worlds as the first argument says (300), from the seed that is the second one (0).
/// Worlds are pairs of sources if the last argument is `pairs`.
///
/// # Errors
/// The first error of `judge`, which is given a seed, its world, and the counts to add to.
pub(crate) fn by_schedule<C: Copy + Default>(
    arguments: &[String],
    mut judge: impl FnMut(u64, &World, &mut C) -> std::io::Result<()>,
) -> std::io::Result<[C; SCHEDULES.len()]> {
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (worlds, first) = (number(0).unwrap_or(300), number(1).unwrap_or(0));
    let mut all = [C::default(); SCHEDULES.len()];
    let pairs = arguments.last().is_some_and(|last| last == "pairs");
    for seed in first..first + worlds {
        let world = if pairs {
            world(seed, PAIR_RUN_NS, Sources::Pair)
        } else {
            world(seed, RUN_NS, Sources::Any)
        };
        let row = SCHEDULES.iter().position(|name| *name == world.schedule).unwrap_or(0);
        judge(seed, &world, &mut all[row])?;
    }
    Ok(all)
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.uniform())
}

fn of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[(random.uniform() * all.len() as f64) as usize]
}

/// Something that stalls the device.
pub(crate) struct Source {
    pub(crate) hz: f64,
    pub(crate) length_ns: f64,
    pub(crate) phase_ns: f64,
}

/// A simulated run.
pub(crate) struct World {
    pub(crate) schedule: &'static str,
    pub(crate) jitter: f64,
    pub(crate) sources: Vec<Source>,
    /// Whether there are stalls at random times, too.
    pub(crate) noise: bool,
    pub(crate) samples: Vec<(i64, i64)>,
    /// By how much each source makes each packet later.
    pub(crate) added_ns: Vec<Vec<f64>>,
}

pub(crate) const SCHEDULES: [&str; 5] =
    ["CBR", "CBR 7 ppm off", "CBR 0.17 % off", "Poisson", "bursts"];

fn arrivals(schedule: &str, run_ns: f64, random: &mut Random) -> Vec<f64> {
    let interval_ns = match schedule {
        "CBR 7 ppm off" => 100_000.7,
        "CBR 0.17 % off" => 100_170.0,
        _ => 100_000.0,
    };
    let size = of(random, &[4.0, 8.0, 16.0, 32.0]);
    let count = (run_ns / interval_ns) as usize;
    let mut at_ns = 0.0;
    (0..count)
        .map(|number| {
            let number = number as f64;
            match schedule {
                "Poisson" => {
                    at_ns += interval_ns * random.exponential();
                    at_ns
                }
                "bursts" => {
                    let burst = (number / size).floor();
                    burst * size * 99_921.0
                        + (number - burst * size) * 1_000.0
                        + 50.0 * random.uniform()
                }
                _ => number * interval_ns + 50.0 * random.uniform(),
            }
        })
        .collect()
}

/// 0 to 4 sources.
fn any_sources(random: &mut Random, count: usize) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    while sources.len() < count {
        let hz = match sources.last() {
            // Commensurable, with the same clock.
            Some(last) if random.uniform() < 0.4 => {
                last.hz
                    * of(
                        random,
                        &[0.2, 0.25, 1.0 / 3.0, 0.4, 0.5, 2.0 / 3.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
                    )
            }
            _ if random.uniform() < 0.3 => {
                of(random, &[1.0, 4.0, 10.0, 25.0, 100.0, 250.0, 300.0, 1_000.0])
            }
            _ => between(random, 1.0, 2_000.0),
        };
        let length_ns = between(random, 2_000.0, 500_000.0);
        let near = |other: &Source| (other.hz / hz - 1.0).abs() < 0.01;
        if (1.0..=2_000.0).contains(&hz) && hz * length_ns < 0.1e9 && !sources.iter().any(near) {
            sources.push(Source { hz, length_ns, phase_ns: random.uniform() * 1e9 / hz });
        }
    }
    sources
}

/// A frequent short source, of a usual clock in half of the worlds, and a rare long one.
fn pair_sources(random: &mut Random) -> Vec<Source> {
    let usual = random.uniform() < 0.5;
    let frequent_hz = if usual {
        of(random, &[100.0, 250.0, 300.0, 1_000.0])
    } else {
        between(random, 100.0, 2_000.0)
    };
    let rare_hz = between(random, 2.0, 20.0);
    [
        (frequent_hz, between(random, 2_000.0, 10_000.0)),
        (rare_hz, between(random, 50_000.0, 500_000.0)),
    ]
    .map(|(hz, length_ns)| Source { hz, length_ns, phase_ns: random.uniform() * 1e9 / hz })
    .into()
}

/// The world of a seed, of packets that come for so long.
pub(crate) fn world(seed: u64, run_ns: f64, sources: Sources) -> World {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let schedule = SCHEDULES[(seed % 5) as usize];
    let jitter = of(&mut random, &[0.02, 0.1, 0.3]);
    let noise = random.uniform() < 0.5;
    let sources = match sources {
        Sources::Any => any_sources(&mut random, (seed / 5 % 5) as usize),
        Sources::Pair => pair_sources(&mut random),
    };
    // From, until, and the source's number.
    let mut stalls: Vec<(f64, f64, usize)> = Vec::new();
    for (source, one) in sources.iter().enumerate() {
        for number in 0..(run_ns * one.hz / 1e9) as usize {
            let from_ns = one.phase_ns + number as f64 * 1e9 / one.hz + 300.0 * random.normal();
            let until_ns = from_ns + one.length_ns * (0.05 * random.normal()).exp();
            stalls.push((from_ns, until_ns, source));
        }
    }
    if noise {
        for _ in 0..600 {
            let from_ns = random.uniform() * run_ns;
            stalls.push((from_ns, from_ns + 20_000.0 * random.exponential(), usize::MAX));
        }
    }
    stalls.sort_by(|a, b| a.0.total_cmp(&b.0));
    let arrivals = arrivals(schedule, run_ns, &mut random);
    let samples = served(&arrivals, &stalls, jitter, &mut Random(random.0));
    let added_ns = (0..sources.len())
        .map(|source| {
            let mut others = stalls.clone();
            others.retain(|stall| stall.2 != source);
            let without = served(&arrivals, &others, jitter, &mut Random(random.0));
            samples.iter().zip(without).map(|(with, without)| (with.1 - without.1) as f64).collect()
        })
        .collect();
    World { schedule, jitter, sources, noise, samples, added_ns }
}

/// Ingress and egress stamps of packets that one server serves in turn, except while it is stalled.
fn served(
    arrivals: &[f64],
    stalls: &[(f64, f64, usize)],
    jitter: f64,
    random: &mut Random,
) -> Vec<(i64, i64)> {
    let (mut next, mut stalled_until_ns, mut free_ns) = (0, 0.0_f64, 0.0_f64);
    arrivals
        .iter()
        .map(|at_ns| {
            let mut from_ns = at_ns.max(free_ns);
            loop {
                while next < stalls.len() && stalls[next].0 <= from_ns {
                    stalled_until_ns = stalled_until_ns.max(stalls[next].1);
                    next += 1;
                }
                if stalled_until_ns <= from_ns {
                    break;
                }
                from_ns = stalled_until_ns;
            }
            free_ns = from_ns + SERVICE_NS * (1.0 + jitter * random.normal()).max(0.1);
            let left_ns = free_ns + WAY_NS + 300.0 * jitter * random.exponential();
            (*at_ns as i64, left_ns as i64)
        })
        .collect()
}
