//! Whom the program answers: the same rules as `Reflector`, in the same order.

use super::assembly::{Assembly, Label, Op, Size, When};
use super::program::{
    CLIENT_AT, DATA, DUE_AT, Ends, Family, KEPT, KTIME_NS, MAP_LOOKUP, MAP_UPDATE, STACK, Task,
    network,
};
use std::net::IpAddr;
use tailtrim_roundtrip::reflect::{Allowed, Limit};

/// Below it are services, which might answer the reply.
const FIRST_CLIENT_PORT: i32 = 1_024;

pub(super) fn judge(a: &mut Assembly, task: &Task<'_>, f: Family, ends: &Ends) {
    is_to_us(a, task.addresses, f, ends.others);
    a.load(Size::Half, 1, DATA, f.udp);
    for (_, port) in task.services {
        a.jump_if(1, When::Equal, network(*port), ends.source_port);
    }
    a.network_order(1, 16);
    a.jump_if(1, When::Less, FIRST_CLIENT_PORT, ends.source_port);
    is_somebody(a, f, ends.address);
    if !task.allowed.is_empty() {
        is_allowed(a, task.allowed, f, ends.not_allowed);
    }
    if let Some(limit) = task.limit {
        is_within(a, task, limit, f, ends.rate);
    }
}

fn words(address: IpAddr) -> Vec<u32> {
    let octets: Vec<u8> = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect()
}

/// A host that forwards sees frames for others.
pub(super) fn is_to_us(a: &mut Assembly, addresses: &[IpAddr], f: Family, others: Label) {
    let ours = a.label();
    for address in addresses.iter().filter(|address| address.is_ipv6() == f.v6) {
        let next = a.label();
        for (at, word) in (0..).step_by(4).zip(words(*address)) {
            a.load(Size::Word, 1, DATA, f.destination + at);
            a.jump_if_word(1, When::NotEqual, word, next);
        }
        a.jump(ours);
        a.place(next);
    }
    a.jump(others);
    a.place(ours);
}

/// Not from many, from all or from nobody.
fn is_somebody(a: &mut Assembly, f: Family, otherwise: Label) {
    a.load(Size::Byte, 1, DATA, f.source);
    if f.v6 {
        a.jump_if(1, When::Equal, 0xff, otherwise);
        a.load(Size::Word, 1, DATA, f.source);
        for at in [4, 8, 12] {
            a.load(Size::Word, 2, DATA, f.source + at);
            a.combine(Op::Or, 1, 2);
        }
        a.jump_if(1, When::Equal, 0, otherwise);
    } else {
        let multicast = a.label();
        // 224.0.0.0/4, and of what is above only 255.255.255.255 as the sockets have it.
        a.jump_if(1, When::Less, 224, multicast);
        a.jump_if(1, When::Less, 240, otherwise);
        a.place(multicast);
        a.load(Size::Word, 1, DATA, f.source);
        a.jump_if_word(1, When::Equal, u32::MAX, otherwise);
        a.jump_if_word(1, When::Equal, 0, otherwise);
    }
}

fn is_allowed(a: &mut Assembly, allowed: &[Allowed], f: Family, otherwise: Label) {
    let found = a.label();
    for allowed in allowed {
        let (address, bits) = allowed.prefix();
        if address.is_ipv6() != f.v6 {
            continue;
        }
        let next = a.label();
        for (at, word) in (0_i16..).step_by(4).zip(words(address)) {
            let bits = u32::from(bits).saturating_sub(at as u32 * 8).min(32);
            if bits == 0 {
                break;
            }
            let mask = (u32::MAX << (32 - bits)).to_be();
            a.load(Size::Word, 1, DATA, f.source + at);
            if bits < 32 {
                a.calculate(Op::And, 1, mask.cast_signed());
            }
            a.jump_if_word(1, When::NotEqual, word & mask, next);
        }
        a.jump(found);
        a.place(next);
    }
    a.jump(otherwise);
    a.place(found);
}

/// As `Limit::admits`. Requests of one client that come on several CPUs at the same moment may be counted as
/// one.
fn is_within(a: &mut Assembly, task: &Task<'_>, limit: Limit, f: Family, otherwise: Label) {
    let (interval_ns, slack_ns) = limit.interval_and_slack_ns();
    let (new, not_behind, within) = (a.label(), a.label(), a.label());
    a.call(KTIME_NS);
    a.combine(Op::Set, KEPT, 0);
    if f.v6 {
        for at in [0, 4] {
            a.load(Size::Word, 1, DATA, f.source + at);
            a.store(Size::Word, STACK, CLIENT_AT + at, 1);
        }
    } else {
        // ::ffff:0:0/96
        a.store_value(Size::Double, STACK, CLIENT_AT, 0);
    }
    a.store_value(Size::Double, STACK, CLIENT_AT + 8, 0);
    if !f.v6 {
        a.store_value(Size::Half, STACK, CLIENT_AT + 10, -1);
        a.load(Size::Word, 1, DATA, f.source);
        a.store(Size::Word, STACK, CLIENT_AT + 12, 1);
    }
    a.map(1, task.clients);
    stack_address(a, 2, CLIENT_AT);
    a.call(MAP_LOOKUP);
    a.jump_if(0, When::Equal, 0, new);
    a.load(Size::Double, 1, 0, 0);
    a.wide(2, slack_ns.cast_unsigned());
    a.combine(Op::Add, 2, KEPT);
    a.jump_if_than(1, When::Greater, 2, otherwise);
    a.jump_if_than(1, When::AtLeast, KEPT, not_behind);
    a.combine(Op::Set, 1, KEPT);
    a.place(not_behind);
    a.calculate(Op::Add, 1, interval_ns as i32);
    a.store(Size::Double, 0, 0, 1);
    a.jump(within);
    a.place(new);
    a.calculate(Op::Add, KEPT, interval_ns as i32);
    a.store(Size::Double, STACK, DUE_AT, KEPT);
    a.map(1, task.clients);
    stack_address(a, 2, CLIENT_AT);
    stack_address(a, 3, DUE_AT);
    a.calculate(Op::Set, 4, 0);
    a.call(MAP_UPDATE);
    a.place(within);
}

pub(super) fn stack_address(a: &mut Assembly, to: u8, at: i16) {
    a.combine(Op::Set, to, STACK);
    a.calculate(Op::Add, to, i32::from(at));
}
