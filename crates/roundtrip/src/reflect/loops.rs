//! Ending echoes that go round between two reflectors.
//!
//! A request of UDP echo and its reply are the same bytes, so the bytes do not tell whether another reflector sent
//! them. But they come again, and two rules end that:
//!
//! * The TTL or hop limit of a reply is lower than that of its request. Between two reflectors that both do this, a
//!   datagram ends after 64 replies.
//! * A foreign reflector sends with a fresh TTL. Payloads that came before are therefore answered only so often for
//!   each flow ([`Policy::repeats`](super::Policy::repeats)).

use super::Arrival;
use super::clients::Clients;
use super::policy::Limit;
use super::refusal::Refusal;
use std::net::IpAddr;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// TTL and hop limit of requests that count as fresh: the default of most hosts. Replies have less.
const FRESH: u8 = 64;
/// At most this much left: it has passed many routers, or many reflectors, or it is the probe of a traceroute.
const LOW: u8 = 32;
/// Bytes of a payload that are compared: sequence numbers and times are at the beginning.
const COMPARED: usize = 64;
/// Payloads that share a place.
const WAYS: usize = 4;

/// Client address, client port, own port: 20 bytes.
type Flow = [u8; 20];

/// Memory of echoes: payloads and flows.
#[derive(Debug)]
pub(super) struct Loops {
    payloads: Payloads,
    /// Time at which the next repeated payload of a flow is due.
    flows: Clients<Flow, i64>,
    seed: u64,
}

impl Loops {
    /// Memory for so many flows, and a quarter as many payloads, so that they stay in the caches of a CPU.
    pub(super) fn new(remembered: usize, seed: u64) -> Self {
        Self {
            payloads: Payloads::new(remembered / 4),
            flows: Clients::new(remembered, seed),
            seed,
        }
    }

    /// Decides about an echo. Returns the TTL or hop limit of the reply.
    ///
    /// # Errors
    /// [`Refusal::Loop`].
    pub(super) fn judge(
        &mut self,
        repeats: Option<Limit>,
        arrival: &Arrival,
        payload: &[u8],
    ) -> Result<u8, Refusal> {
        let flow = flow(arrival);
        let repeated = self.payloads.enter(fingerprint(&flow, payload, self.seed));
        let low = arrival.hops.filter(|hops| *hops <= LOW);
        if let Some(repeats) = repeats
            && (repeated || low.is_some())
            && !repeats.admits(self.flows.entry(flow, || i64::MIN), arrival.now_ns)
        {
            return Err(Refusal::Loop);
        }
        match low {
            // The last hop of a traceroute: its reply has to find the way back.
            Some(_) if !repeated => Ok(LOW),
            Some(0 | 1) => Err(Refusal::Loop),
            Some(hops) => Ok(hops - 1),
            None => Ok(arrival.hops.unwrap_or(FRESH).min(FRESH) - 1),
        }
    }

    /// Flows that made room for others.
    pub(super) fn forgotten_flows(&self) -> u64 {
        self.flows.evicted()
    }

    /// Payloads that made room for others.
    pub(super) fn forgotten_payloads(&self) -> u64 {
        self.payloads.evicted
    }
}

fn flow(arrival: &Arrival) -> Flow {
    let mut flow = [0; 20];
    let address = match arrival.from.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    flow[..16].copy_from_slice(&address.octets());
    flow[16..18].copy_from_slice(&arrival.from.port().to_be_bytes());
    flow[18..].copy_from_slice(&arrival.port.to_be_bytes());
    flow
}

/// A number for a payload in its flow; never 0.
fn fingerprint(flow: &Flow, payload: &[u8], seed: u64) -> u64 {
    let compared = &payload[..payload.len().min(COMPARED)];
    let mut bytes = [0; size_of::<Flow>() + 4 + COMPARED];
    bytes[..20].copy_from_slice(flow);
    bytes[20..24].copy_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes[24..24 + compared.len()].copy_from_slice(compared);
    xxh3_64_with_seed(&bytes[..24 + compared.len()], seed).max(1)
}

/// The payloads that came last, whatever their flow: by place, the latest first.
#[derive(Debug)]
struct Payloads {
    places: Vec<[u64; WAYS]>,
    evicted: u64,
}

impl Payloads {
    fn new(count: usize) -> Self {
        Self { places: vec![[0; WAYS]; (count / WAYS).next_power_of_two()], evicted: 0 }
    }

    /// Returns whether it came before, and remembers it.
    fn enter(&mut self, fingerprint: u64) -> bool {
        // A power of two of places.
        let at = fingerprint as usize & (self.places.len() - 1);
        let place = &mut self.places[at];
        let found = place.iter().position(|other| *other == fingerprint);
        let end = found.unwrap_or(WAYS - 1);
        self.evicted += u64::from(found.is_none() && place[end] != 0);
        place[..=end].rotate_right(1);
        place[0] = fingerprint;
        found.is_some()
    }
}
