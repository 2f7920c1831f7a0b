//! Which frames are requests to this host, as `crates/linux/bpf/request.h` wants to know it.

use super::{map, said};
use aya::maps::{Array, HashMap};
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::net::IpAddr;
use tailtrim_roundtrip::reflect::Service;

/// Services by port, in the network's order.
type Ports = [u8; 1 << 16];

/// Where requests are expected.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) services: Vec<(Service, u16)>,
    pub(crate) addresses: Vec<IpAddr>,
    /// The interface's address, in the network's order.
    mac: [u16; 3],
}

impl Requests {
    pub(crate) fn new(services: Vec<(Service, u16)>, addresses: Vec<IpAddr>, mac: [u8; 6]) -> Self {
        let mac = [0, 2, 4].map(|at| u16::from_ne_bytes([mac[at], mac[at + 1]]));
        Self { services, addresses, mac }
    }

    /// Before the file is loaded.
    pub(crate) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("MAC", &self.mac, true);
        loader.map_max_entries("addresses", self.addresses.len().max(1) as u32);
    }

    /// Before the program is attached.
    pub(crate) fn enter(&self, loaded: &mut Ebpf) -> io::Result<()> {
        let mut ports: Ports = [0; 1 << 16];
        for (service, port) in &self.services {
            ports[usize::from(port.to_be())] = match service {
                Service::Echo => 1,
                Service::Stamp => 2,
                Service::Twamp => 3,
            };
        }
        let mut services = Array::<_, Ports>::try_from(map(loaded, "services")?).map_err(said)?;
        services.set(0, ports, 0).map_err(said)?;
        let mut addresses =
            HashMap::<_, [u8; 16], u8>::try_from(map(loaded, "addresses")?).map_err(said)?;
        for address in &self.addresses {
            let octets = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            addresses.insert(octets, 1, 0).map_err(said)?;
        }
        Ok(())
    }
}
