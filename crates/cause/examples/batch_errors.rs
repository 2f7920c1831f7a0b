//! Simulates how often a device is taken for one that sends batches: devices that do, with service times that vary,
//! and devices that send each packet alone and are stalled. Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-cause --example batch_errors [RUNS [FIRST_SEED]]

mod random;

use random::Random;
use std::io::Write;
use tailtrim_cause::queue::passages;

/// Packets of a run, and the mean time between them.
const PACKETS: usize = 20_000;
const INTERVAL_NS: f64 = 10_000.0;

/// Distribution of the lengths of a device's stalls around their mean.
#[derive(Clone, Copy)]
enum Stalls {
    Exponential,
    Uniform,
    Constant,
}

#[derive(Clone, Copy)]
enum Device {
    /// Takes up to so many packets, works on all, and sends them together. The time for each, this part of the interval,
    /// varies from batch to batch by this relative standard deviation.
    Batches(usize, f64, f64),
    /// Sends each packet alone, at this load, and is stalled for so many service times on average, every so many packets.
    /// Before their turn, packets are on their way for 30 service times.
    Alone(f64, Stalls, f64, f64),
}

/// Ingress and egress stamps; packets come at random times or at a constant rate.
fn run(device: Device, constant: bool, random: &mut Random) -> Vec<(i64, i64)> {
    let mut at = 0.0;
    let mut arrivals = Vec::with_capacity(PACKETS);
    for _ in 0..PACKETS {
        at += INTERVAL_NS * if constant { 1.0 } else { random.exponential() };
        arrivals.push(at);
    }
    let mut left = Vec::with_capacity(PACKETS);
    let mut free = 0.0_f64;
    match device {
        Device::Batches(most, load, spread) => {
            let mut next = 0;
            while next < PACKETS {
                free = free.max(arrivals[next]);
                let here = arrivals[next..].iter().take_while(|at| **at <= free).count();
                let count = here.clamp(1, most);
                let each = load * INTERVAL_NS * (1.0 + spread * random.normal()).max(0.1);
                free += each * count as f64;
                left.extend((0..count).map(|place| free + 50.0 * place as f64));
                next += count;
            }
        }
        Device::Alone(load, stalls, long, every) => {
            let service = load * INTERVAL_NS;
            for at in &arrivals {
                free = free.max(*at + 30.0 * service);
                if random.uniform() * every < 1.0 {
                    let times = match stalls {
                        Stalls::Exponential => random.exponential(),
                        Stalls::Uniform => 2.0 * random.uniform(),
                        Stalls::Constant => 1.0,
                    };
                    free += long * service * times;
                }
                free += service * (1.0 + 0.05 * random.normal());
                left.push(free);
            }
        }
    }
    arrivals.iter().zip(left).map(|(at, left)| (*at as i64, left as i64)).collect()
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|n| n.parse::<u64>().ok());
    let runs = arguments.next().unwrap_or(200);
    let first = arguments.next().unwrap_or(0);
    let mut devices: Vec<(String, Device)> = Vec::new();
    for most in [4, 32] {
        for spread in [0.0, 0.05, 0.1, 0.15, 0.2] {
            let name = format!("batches of {most}, load 0.8, ±{} %", 100.0 * spread);
            devices.push((name, Device::Batches(most, 0.8, spread)));
        }
        devices
            .push((format!("batches of {most}, load 1.2, ±5 %"), Device::Batches(most, 1.2, 0.05)));
    }
    for (name, stalls) in [
        ("exponential", Stalls::Exponential),
        ("uniform", Stalls::Uniform),
        ("equal", Stalls::Constant),
    ] {
        for (load, long, every) in [
            (0.6, 20.0, 100.0),
            (0.3, 20.0, 100.0),
            (0.1, 50.0, 20.0),
            (0.05, 100.0, 40.0),
            (0.02, 200.0, 40.0),
        ] {
            let name = format!(
                "alone, load {load}, {name} stalls of {long} services every {every} packets"
            );
            devices.push((name, Device::Alone(load, stalls, long, every)));
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| device | taken for one with batches: random times | constant rate |\n|---|---|---|"
    )?;
    for (name, device) in devices {
        let share = |constant: bool| {
            let found = (first..first + runs)
                .filter(|seed| passages(&run(device, constant, &mut Random(*seed))).0.batch > 1);
            100.0 * found.count() as f64 / runs as f64
        };
        writeln!(out, "| {name} | {:.1} % | {:.1} % |", share(false), share(true))?;
        out.flush()?;
    }
    Ok(())
}
