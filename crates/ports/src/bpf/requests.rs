//! Requests to this host, as `bpf/request.h` has them.

use super::{map, said};
use aya::maps::Array;
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::net::IpAddr;
use tailtrim_roundtrip::reflect::Service;

/// Services by port, in the network's order.
type Ports = [u8; 1 << 16];

const MOST_ADDRESSES: usize = 64;

/// Where requests are expected.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Services with their ports.
    pub services: Vec<(Service, u16)>,
    /// Addresses of this host.
    pub addresses: Vec<IpAddr>,
    /// The same as words, and the interface's Ethernet address, in the network's order.
    words: [[u32; 4]; MOST_ADDRESSES],
    count: u32,
    mac: [u16; 3],
}

impl Requests {
    /// Fails where there are too many addresses.
    pub fn new(
        services: Vec<(Service, u16)>,
        addresses: Vec<IpAddr>,
        mac: [u8; 6],
    ) -> io::Result<Self> {
        let mut words = [[0; 4]; MOST_ADDRESSES];
        if addresses.len() > MOST_ADDRESSES {
            let told = format!("{} addresses, at most {MOST_ADDRESSES}", addresses.len());
            return Err(io::Error::other(told));
        }
        for (place, address) in words.iter_mut().zip(&addresses) {
            let octets = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            for (word, bytes) in place.iter_mut().zip(octets.as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*bytes);
            }
        }
        let mac = [0, 2, 4].map(|at| u16::from_ne_bytes([mac[at], mac[at + 1]]));
        Ok(Self { services, count: addresses.len() as u32, addresses, words, mac })
    }

    /// Before the file is loaded.
    pub fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("MAC", &self.mac, true);
        loader.override_global("ADDRESSES", &self.words, true);
        loader.override_global("ADDRESS_COUNT", &self.count, true);
    }

    /// Before the program is attached.
    pub fn enter(&self, loaded: &mut Ebpf) -> io::Result<()> {
        let mut ports: Ports = [0; 1 << 16];
        for (service, port) in &self.services {
            ports[usize::from(port.to_be())] = match service {
                Service::Echo => 1,
                Service::Stamp => 2,
                Service::Twamp => 3,
            };
        }
        let mut services = Array::<_, Ports>::try_from(map(loaded, "services")?).map_err(said)?;
        services.set(0, ports, 0).map_err(said)
    }
}
