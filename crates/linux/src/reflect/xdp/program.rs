//! The XDP program that reflects: from the driver back to the driver.
//!
//! It answers what needs neither a key nor memory of a session: UDP echo, and STAMP and TWAMP-Light packets
//! without TLVs. Everything else for the same ports goes up to the sockets of this process, other traffic to
//! whom it is for. Helpers and the context: <linux/bpf.h>.

use super::assembly::{Assembly, Label, Op, Size, When};
use super::shared::{CLOCK_AT, Count, ERROR_AT};
use crate::sys::bpf::Instruction;
use std::net::IpAddr;
use tailtrim_roundtrip::reflect::{Allowed, Class, Limit, Service};

/// Registers that calls leave alone: the context, the frame's start, its end.
pub(super) const CONTEXT: u8 = 6;
pub(super) const DATA: u8 = 7;
pub(super) const END: u8 = 8;
pub(super) const KEPT: u8 = 9;
pub(super) const STACK: u8 = 10;
/// On the stack: T2, the client, a number for the limit, the request's payload.
pub(super) const T2_AT: i16 = -8;
pub(super) const CLIENT_AT: i16 = -24;
pub(super) const DUE_AT: i16 = -32;
pub(super) const OLD_AT: i16 = -80;
/// Helpers.
pub(super) const MAP_LOOKUP: i32 = 1;
pub(super) const MAP_UPDATE: i32 = 2;
pub(super) const KTIME_NS: i32 = 5;
pub(super) const CSUM_DIFF: i32 = 28;
pub(super) const TAI_NS: i32 = 208;
/// What a program says of a frame.
const DROP: i32 = 1;
const PASS: i32 = 2;
const SEND_BACK: i32 = 3;
const ETHERNET: i16 = 14;
/// Bytes of a test packet without TLVs.
pub(super) const TEST_LEN: i16 = 44;
const UDP_LEN: i16 = 8;
const NS_PER_S: i32 = 1_000_000_000;
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// What the program is made for.
#[derive(Debug)]
pub(super) struct Task<'a> {
    /// What is spoken on which port.
    pub(super) services: &'a [(Service, u16)],
    /// Addresses that are ours: frames to others pass.
    pub(super) addresses: &'a [IpAddr],
    pub(super) allowed: &'a [Allowed],
    pub(super) limit: Option<Limit>,
    pub(super) class: Class,
    /// Whether STAMP is answered here, not by the sockets.
    pub(super) stamp: bool,
    /// Whether TWAMP-Light is.
    pub(super) twamp: bool,
    /// Whether it runs behind the driver, where the kernel still knows what is left to do to a checksum.
    pub(super) generic: bool,
    /// Descriptors of the map of numbers and of that of clients.
    pub(super) shared: i32,
    pub(super) clients: i32,
}

/// Where things stand in a frame of IPv4 or IPv6 without options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) v6: bool,
    pub(super) source: i16,
    pub(super) destination: i16,
    pub(super) address_len: i16,
    pub(super) udp: i16,
    pub(super) hops: i16,
}

pub(super) const V4: Family =
    Family { v6: false, source: 26, destination: 30, address_len: 4, udp: 34, hops: 22 };
pub(super) const V6: Family =
    Family { v6: true, source: 22, destination: 38, address_len: 16, udp: 54, hops: 21 };

impl Family {
    pub(super) const fn payload(self) -> i16 {
        self.udp + UDP_LEN
    }
}

/// Where the program ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// Not for us.
    pub(super) others: Label,
    /// For us, but not for this program.
    pub(super) sockets: Label,
    pub(super) source_port: Label,
    pub(super) address: Label,
    pub(super) not_allowed: Label,
    pub(super) rate: Label,
    pub(super) reflected: Label,
}

/// The instructions; `None` when the task is too large for jumps of 16 bits.
pub(super) fn text(task: &Task<'_>) -> Option<Vec<Instruction>> {
    let mut a = Assembly::default();
    let mut label = || a.label();
    let ends = Ends {
        others: label(),
        sockets: label(),
        source_port: label(),
        address: label(),
        not_allowed: label(),
        rate: label(),
        reflected: label(),
    };
    let (v4, v6) = (label(), label());
    starts(&mut a, ends.others, v4, v6);
    a.place(v4);
    is_plain_v4(&mut a, ends.others);
    family(&mut a, task, V4, &ends);
    a.place(v6);
    is_plain_v6(&mut a, ends.others);
    family(&mut a, task, V6, &ends);
    end(&mut a, task, ends.sockets, Some(Count::Passed), PASS);
    end(&mut a, task, ends.source_port, Some(Count::SourcePort), DROP);
    end(&mut a, task, ends.address, Some(Count::Address), DROP);
    end(&mut a, task, ends.not_allowed, Some(Count::NotAllowed), DROP);
    end(&mut a, task, ends.rate, Some(Count::Rate), DROP);
    end(&mut a, task, ends.reflected, Some(Count::Reflected), SEND_BACK);
    end(&mut a, task, ends.others, None, PASS);
    a.finish()
}

/// Instructions that pass everything but requests, which go on to what follows.
pub(super) fn filter(
    services: &[(Service, u16)],
    addresses: &[IpAddr],
) -> Option<Vec<Instruction>> {
    let mut a = Assembly::default();
    let (others, v4, v6, on) = (a.label(), a.label(), a.label(), a.label());
    let ports = |a: &mut Assembly, f: Family| {
        super::judge::is_to_us(a, addresses, f, others);
        a.load(Size::Half, 1, DATA, f.udp + 2);
        for (_, port) in services {
            a.jump_if(1, When::Equal, network(*port), on);
        }
        a.jump(others);
    };
    starts(&mut a, others, v4, v6);
    a.place(v4);
    is_plain_v4(&mut a, others);
    ports(&mut a, V4);
    a.place(v6);
    is_plain_v6(&mut a, others);
    ports(&mut a, V6);
    a.place(others);
    a.exit(PASS);
    a.place(on);
    a.finish()
}

/// To many or to all: the sockets know better whether that is for us.
fn starts(a: &mut Assembly, others: Label, v4: Label, v6: Label) {
    a.combine(Op::Set, CONTEXT, 1);
    a.load(Size::Word, DATA, CONTEXT, 0);
    a.load(Size::Word, END, CONTEXT, 4);
    needs(a, V4.payload(), others);
    a.load(Size::Byte, 1, DATA, 0);
    a.calculate(Op::And, 1, 1);
    a.jump_if(1, When::NotEqual, 0, others);
    a.load(Size::Half, 1, DATA, 12);
    a.jump_if(1, When::Equal, network(0x0800), v4);
    a.jump_if(1, When::Equal, network(0x86dd), v6);
    a.jump(others);
}

fn is_plain_v6(a: &mut Assembly, others: Label) {
    needs(a, V6.payload(), others);
    a.load(Size::Byte, 1, DATA, ETHERNET + 6);
    a.jump_if(1, When::NotEqual, 17, others);
}

fn end(a: &mut Assembly, task: &Task<'_>, label: Label, count: Option<Count>, answer: i32) {
    a.place(label);
    if let Some(count) = count {
        a.map_value(1, task.shared, count.at());
        a.calculate(Op::Set, 2, 1);
        a.add_atomically(1, 0, 2);
    }
    a.exit(answer);
}

/// A number as a load from the frame gives it.
pub(super) fn network(value: u16) -> i32 {
    i32::from(value.to_be())
}

/// The frame has so many bytes, or the program ends.
pub(super) fn needs(a: &mut Assembly, bytes: i16, otherwise: Label) {
    a.combine(Op::Set, 1, DATA);
    a.calculate(Op::Add, 1, i32::from(bytes));
    a.jump_if_than(1, When::Greater, END, otherwise);
}

fn is_plain_v4(a: &mut Assembly, others: Label) {
    a.load(Size::Byte, 1, DATA, ETHERNET);
    a.jump_if(1, When::NotEqual, 0x45, others);
    // No fragment: neither more to come nor an offset.
    a.load(Size::Half, 1, DATA, ETHERNET + 6);
    a.calculate(Op::And, 1, network(0x3fff));
    a.jump_if(1, When::NotEqual, 0, others);
    a.load(Size::Byte, 1, DATA, ETHERNET + 9);
    a.jump_if(1, When::NotEqual, 17, others);
}

fn family(a: &mut Assembly, task: &Task<'_>, f: Family, ends: &Ends) {
    let kinds = [Service::Echo, Service::Stamp, Service::Twamp];
    let (ours, labels) = (a.label(), kinds.map(|_| a.label()));
    // Most frames are not for our ports.
    a.load(Size::Half, 1, DATA, f.udp + 2);
    for (_, port) in task.services {
        a.jump_if(1, When::Equal, network(*port), ours);
    }
    a.jump(ends.others);
    a.place(ours);
    // First of all, since all else takes time.
    a.call(TAI_NS);
    a.store(Size::Double, STACK, T2_AT, 0);
    super::judge::judge(a, task, f, ends);
    a.load(Size::Half, 1, DATA, f.udp + 2);
    for (service, port) in task.services {
        a.jump_if(1, When::Equal, network(*port), labels[*service as usize]);
    }
    a.jump(ends.sockets);
    for (service, label) in kinds.into_iter().zip(labels) {
        a.place(label);
        let here = match service {
            Service::Echo => true,
            Service::Stamp => task.stamp,
            Service::Twamp => task.twamp,
        };
        if !here {
            a.jump(ends.sockets);
            continue;
        }
        super::answer::answer(a, task, f, service, ends);
        a.jump(ends.reflected);
    }
}

/// Puts a time of `CLOCK_TAI` in register 0 as a packet has it, in the network's order. The Z bit of the error
/// estimate on the stack says how. Takes registers 1 to 3.
pub(super) fn write_time(a: &mut Assembly, task: &Task<'_>) {
    let ptp = a.label();
    a.map_value(1, task.shared, CLOCK_AT);
    a.load(Size::Double, 2, 1, 0);
    a.combine(Op::Subtract, 0, 2);
    a.combine(Op::Set, 1, 0);
    a.calculate(Op::Divide, 1, NS_PER_S);
    a.combine(Op::Set, 2, 1);
    a.calculate(Op::Multiply, 2, NS_PER_S);
    a.combine(Op::Subtract, 0, 2);
    a.load(Size::Byte, 3, STACK, OLD_AT + 12);
    a.calculate(Op::And, 3, 0x40);
    a.jump_if(3, When::NotEqual, 0, ptp);
    a.wide(2, NTP_TO_UNIX_S);
    a.combine(Op::Add, 1, 2);
    // The fraction, rounded up as the sockets do.
    a.calculate(Op::ShiftLeft, 0, 32);
    a.calculate(Op::Add, 0, NS_PER_S - 1);
    a.calculate(Op::Divide, 0, NS_PER_S);
    a.place(ptp);
    a.calculate(Op::ShiftLeft, 1, 32);
    a.combine(Op::Or, 0, 1);
    a.network_order(0, 64);
}

/// The error estimate of our clock in register 1, with the Z bit of the request.
pub(super) fn write_error(a: &mut Assembly, task: &Task<'_>) {
    a.map_value(1, task.shared, ERROR_AT);
    a.load(Size::Double, 1, 1, 0);
    a.load(Size::Half, 2, STACK, OLD_AT + 12);
    a.calculate(Op::And, 2, network(0x4000));
    a.combine(Op::Or, 1, 2);
}
