//! How the program makes a reply of a request.

use super::assembly::{Assembly, Label, Op, Size, When};
use super::judge::stack_address;
use super::program::{
    CSUM_DIFF, DATA, Ends, Family, KEPT, OLD_AT, STACK, T2_AT, TAI_NS, TEST_LEN, Task, needs,
    network, write_error, write_time,
};
use tailtrim_roundtrip::reflect::{Class, Service};

const ETHERNET: i16 = 14;
const IPV4_LEN: i32 = 20;
/// UDP's number, and the length of its header.
const UDP: i32 = 17;
const UDP_LEN: u16 = 8;
/// TTL and hop limit of replies.
const HOPS: i32 = 64;
const TEST_HOPS: i32 = 255;

pub(super) fn answer(a: &mut Assembly, task: &Task<'_>, f: Family, service: Service, ends: &Ends) {
    if service == Service::Echo {
        checksum_state(a, task, f, ends.sockets);
    } else {
        a.load(Size::Half, 1, DATA, f.udp + 4);
        let base = UDP_LEN + TEST_LEN as u16;
        if service == Service::Stamp {
            // TLVs, authentication, and what is too short.
            a.jump_if(1, When::NotEqual, network(base), ends.sockets);
        } else {
            a.network_order(1, 16);
            a.jump_if(1, When::Less, i32::from(base), ends.sockets);
        }
        needs(a, f.payload() + TEST_LEN, ends.sockets);
        checksum_state(a, task, f, ends.sockets);
        test_packet(a, task, f, service);
        update_checksum(a, f);
    }
    turn_round(a, f);
    let hops = if service == Service::Echo { HOPS } else { TEST_HOPS };
    header(a, task, f, hops);
}

/// Leaves in register 9 the checksum that the request came with, or 0 where none is to be kept up to date: the
/// sender left it out, or will have it filled in by a NIC that, as within a veth pair, does not exist. Such a
/// checksum is that of the pseudo header alone.
fn checksum_state(a: &mut Assembly, task: &Task<'_>, f: Family, sockets: Label) {
    let known = a.label();
    a.load(Size::Half, KEPT, DATA, f.udp + 6);
    a.jump_if(KEPT, When::Equal, 0, known);
    // Addresses, length, protocol.
    a.calculate(Op::Set, 1, 0);
    a.calculate(Op::Set, 2, 0);
    a.combine(Op::Set, 3, DATA);
    a.calculate(Op::Add, 3, i32::from(f.source));
    a.calculate(Op::Set, 4, i32::from(f.address_len) * 2);
    a.load(Size::Half, 5, DATA, f.udp + 4);
    a.calculate(Op::Add, 5, network(UDP as u16));
    a.call(CSUM_DIFF);
    fold(a);
    a.jump_if_than(0, When::NotEqual, KEPT, known);
    if task.generic {
        // The kernel knows that it is not finished, and the receiver is told.
        a.calculate(Op::Set, KEPT, 0);
    } else if f.v6 {
        // IPv6 wants one.
        a.jump(sockets);
    } else {
        a.calculate(Op::Set, KEPT, 0);
        a.store_value(Size::Half, DATA, f.udp + 6, 0);
    }
    a.place(known);
}

/// Adds up the halves of register 0 until one is left.
fn fold(a: &mut Assembly) {
    a.truncate(0);
    for _ in 0..2 {
        a.combine(Op::Set, 1, 0);
        a.calculate(Op::ShiftRight, 1, 16);
        a.calculate(Op::And, 0, 0xffff);
        a.combine(Op::Add, 0, 1);
    }
}

/// RFC 8762 section 4.3.1, over a sender's packet of which a copy is kept on the stack.
fn test_packet(a: &mut Assembly, task: &Task<'_>, f: Family, service: Service) {
    let at = f.payload();
    for word in (0..TEST_LEN).step_by(4) {
        a.load(Size::Word, 1, DATA, at + word);
        a.store(Size::Word, STACK, OLD_AT + word, 1);
    }
    // Number, T1: from 0 to 24 and 28.
    for word in [0, 4, 8] {
        a.load(Size::Word, 1, STACK, OLD_AT + word);
        a.store(Size::Word, DATA, at + 24 + word, 1);
    }
    a.load(Size::Half, 1, STACK, OLD_AT + 12);
    a.store(Size::Half, DATA, at + 36, 1);
    a.store_value(Size::Half, DATA, at + 38, 0);
    a.load(Size::Byte, 1, DATA, f.hops);
    a.store(Size::Byte, DATA, at + 40, 1);
    if service == Service::Stamp {
        a.store_value(Size::Byte, DATA, at + 41, 0);
        a.store_value(Size::Half, DATA, at + 42, 0);
    } else {
        a.store_value(Size::Half, DATA, at + 14, 0);
    }
    write_error(a, task);
    a.store(Size::Half, DATA, at + 12, 1);
    a.load(Size::Double, 0, STACK, T2_AT);
    write_time(a, task);
    a.store(Size::Double, DATA, at + 16, 0);
    a.call(TAI_NS);
    write_time(a, task);
    a.store(Size::Double, DATA, at + 4, 0);
}

/// RFC 1624: the old checksum, less the old payload, plus the new one.
fn update_checksum(a: &mut Assembly, f: Family) {
    let (none, some) = (a.label(), a.label());
    a.jump_if(KEPT, When::Equal, 0, none);
    stack_address(a, 1, OLD_AT);
    a.calculate(Op::Set, 2, i32::from(TEST_LEN));
    a.combine(Op::Set, 3, DATA);
    a.calculate(Op::Add, 3, i32::from(f.payload()));
    a.calculate(Op::Set, 4, i32::from(TEST_LEN));
    a.combine(Op::Set, 5, KEPT);
    a.calculate(Op::Xor, 5, 0xffff);
    a.call(CSUM_DIFF);
    fold(a);
    a.calculate(Op::Xor, 0, 0xffff);
    // 0 would say that there is none.
    a.jump_if(0, When::NotEqual, 0, some);
    a.calculate(Op::Set, 0, 0xffff);
    a.place(some);
    a.store(Size::Half, DATA, f.udp + 6, 0);
    a.place(none);
}

/// Who sent becomes who receives: addresses of Ethernet and IP, ports. No checksum changes by that.
fn turn_round(a: &mut Assembly, f: Family) {
    swap(a, Size::Word, 0, 6);
    swap(a, Size::Half, 4, 10);
    for word in (0..f.address_len).step_by(4) {
        swap(a, Size::Word, f.source + word, f.destination + word);
    }
    swap(a, Size::Half, f.udp, f.udp + 2);
}

fn swap(a: &mut Assembly, size: Size, one: i16, other: i16) {
    a.load(size, 1, DATA, one);
    a.load(size, 2, DATA, other);
    a.store(size, DATA, one, 2);
    a.store(size, DATA, other, 1);
}

/// A fresh TTL, the DSCP of the request or ours, no ECN.
fn header(a: &mut Assembly, task: &Task<'_>, f: Family, hops: i32) {
    a.store_value(Size::Byte, DATA, f.hops, hops);
    match (f.v6, task.class) {
        (false, Class::Mirror) => keep_bits(a, ETHERNET + 1, 0xfc),
        (false, Class::Fixed(dscp)) => {
            a.store_value(Size::Byte, DATA, ETHERNET + 1, i32::from(dscp) << 2);
        }
        (true, Class::Mirror) => keep_bits(a, ETHERNET + 1, 0xcf),
        (true, Class::Fixed(dscp)) => {
            a.store_value(Size::Byte, DATA, ETHERNET, 0x60 | i32::from(dscp) >> 2);
            a.load(Size::Byte, 1, DATA, ETHERNET + 1);
            a.calculate(Op::And, 1, 0x0f);
            a.calculate(Op::Or, 1, (i32::from(dscp) & 3) << 6);
            a.store(Size::Byte, DATA, ETHERNET + 1, 1);
        }
    }
    if !f.v6 {
        a.store_value(Size::Half, DATA, ETHERNET + 10, 0);
        a.calculate(Op::Set, 1, 0);
        a.calculate(Op::Set, 2, 0);
        a.combine(Op::Set, 3, DATA);
        a.calculate(Op::Add, 3, i32::from(ETHERNET));
        a.calculate(Op::Set, 4, IPV4_LEN);
        a.calculate(Op::Set, 5, 0);
        a.call(CSUM_DIFF);
        fold(a);
        a.calculate(Op::Xor, 0, 0xffff);
        a.store(Size::Half, DATA, ETHERNET + 10, 0);
    }
}

fn keep_bits(a: &mut Assembly, at: i16, bits: i32) {
    a.load(Size::Byte, 1, DATA, at);
    a.calculate(Op::And, 1, bits);
    a.store(Size::Byte, DATA, at, 1);
}
