//! Generator, forwarder and tap on ports in memory: frames that go in come out, and every frame is counted.

mod converted;
mod departures;
mod forwarder;
mod generator;
mod tap;
mod unstamped;

use tailtrim_ports::generate::{Load, Stop};
use tailtrim_ports::port::Port;
use tailtrim_wire::traffic::{Addressing, Builder, Ip, Pattern, Probe, Rate, Schedule, Sizes};

fn builder() -> Builder {
    let addressing = Addressing {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        vlan: None,
        ip: Ip::V4([198, 18, 0, 1].into(), [198, 19, 0, 1].into()),
        dscp: 0,
        source_port: 10_000,
        destination_port: 20_000,
        flows: 4,
    };
    Builder::new(addressing, 60).unwrap()
}

fn load(rate: &str, sizes: &str, stop: Stop) -> Load {
    let sizes: Sizes = sizes.parse().unwrap();
    let interval_ns = rate.parse::<Rate>().unwrap().interval_ns(sizes.mean());
    let schedule = Schedule::new(&Pattern::Cbr, interval_ns, 1);
    Load { schedule, sizes, builder: builder(), stop }
}

fn numbers(log: &[u8]) -> Vec<i64> {
    log.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn received(port: &mut dyn Port) -> Vec<(Probe, usize)> {
    let mut frames = Vec::new();
    port.receive(usize::MAX, &mut |frame| {
        frames.push((Builder::probe(frame.bytes).unwrap(), frame.bytes.len()));
    })
    .unwrap();
    frames
}

fn received_any(port: &mut dyn Port) -> usize {
    port.receive(usize::MAX, &mut |_| {}).unwrap()
}
