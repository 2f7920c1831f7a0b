//! The program of `crates/ports/bpf/reflect.bpf.c`, with the policy as its settings.

use crate::reflect::seed;
use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::net::IpAddr;
use tailtrim_ports::bpf::{self, Requests, map, said};
use tailtrim_roundtrip::reflect::{Allowed, Class, Limit, Policy};

pub(super) const PROGRAM: &str = "reflect";
/// Bits in front of an address in the table of prefixes, which say how many bytes it has.
const FAMILY_BITS: u32 = 32;

/// Has the kernel verify the program, and does not attach it.
pub(super) fn load(requests: &Requests, policy: &Policy, native: bool) -> io::Result<Ebpf> {
    let Policy { allowed, limit, repeats, cookie, class, .. } = policy;
    let flags = [
        ("IS_GENERIC", !native),
        ("IS_RESTRICTED", !allowed.is_empty()),
        ("IS_LIMITED", limit.is_some()),
        ("IS_REPEAT_LIMITED", repeats.is_some()),
        ("HAS_COOKIE", cookie.is_some()),
        ("HAS_FIXED_CLASS", matches!(class, Class::Fixed(_))),
        ("ANSWERS_STAMP", policy.key.is_none() && !policy.stateful),
        ("ANSWERS_TWAMP", !policy.stateful),
    ]
    .map(|(name, value)| (name, u8::from(value)));
    let of_limit = |limit: &Option<Limit>| {
        let (interval_ns, slack_ns) = limit.map_or((0, 0), |one| one.interval_and_slack_ns());
        [interval_ns, slack_ns].map(i64::cast_unsigned)
    };
    let [limit_interval_ns, limit_slack_ns] = of_limit(limit);
    let [repeat_interval_ns, repeat_slack_ns] = of_limit(repeats);
    let numbers = [
        ("LIMIT_INTERVAL_NS", limit_interval_ns),
        ("LIMIT_SLACK_NS", limit_slack_ns),
        ("REPEAT_INTERVAL_NS", repeat_interval_ns),
        ("REPEAT_SLACK_NS", repeat_slack_ns),
        ("COOKIE_BYTES", u64::from_ne_bytes(cookie.unwrap_or_default())),
        ("SEED", seed()),
    ];
    let dscp = if let Class::Fixed(dscp) = class { *dscp } else { 0 };
    let mut loader = EbpfLoader::new();
    for (name, value) in &flags {
        loader.override_global(name, value, true);
    }
    for (name, value) in &numbers {
        loader.override_global(name, value, true);
    }
    loader.override_global("DSCP", &dscp, true);
    loader.map_max_entries("allowed", allowed.len().max(1) as u32);
    loader.map_max_entries("clients", limit.map_or(1, |_| policy.remembered as u32));
    requests.set(&mut loader);
    let mut loaded = bpf::load(&mut loader, &bpf::REFLECT)?;
    requests.enter(&mut loaded)?;
    enter_allowed(&mut loaded, allowed)?;
    bpf::program::<Xdp>(&mut loaded, PROGRAM)?.load().map_err(said)?;
    Ok(loaded)
}

fn enter_allowed(loaded: &mut Ebpf, allowed: &[Allowed]) -> io::Result<()> {
    let mut table = LpmTrie::<_, [u8; 20], u8>::try_from(map(loaded, "allowed")?).map_err(said)?;
    for prefix in allowed {
        let (address, bits) = prefix.prefix();
        let mut place = [0; 20];
        let octets = match &address {
            IpAddr::V4(address) => &address.octets()[..],
            IpAddr::V6(address) => &address.octets()[..],
        };
        place[..4].copy_from_slice(&(octets.len() as u32).to_ne_bytes());
        place[4..4 + octets.len()].copy_from_slice(octets);
        let key = Key::new(FAMILY_BITS + u32::from(bits), place);
        table.insert(&key, 1, 0).map_err(said)?;
    }
    Ok(())
}
