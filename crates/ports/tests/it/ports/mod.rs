//! One contract for all ports: the same tests over memory, AF_PACKET and AF_XDP.
#![allow(clippy::disallowed_methods, reason = "how long a call took is what is tested")]

mod contract;
pub(crate) mod namespace;

use crate::memory::memory_pair;
use crate::skip::skipped;
use contract::Tags::{Kept, TakenOut};
use namespace::Needs::{Root, UserNamespace};
use namespace::{cable, cable_of, ends, ip, is_inside, name};
use std::time::Duration;
use tailtrim_ports::claims::Claims;
use tailtrim_ports::port::{
    Attached, Hints, Port, PortKind, PortName, Receiving, Stamping, XdpMode, XdpPort, open,
};

/// Lengths without FCS: the least, odd ones, and an MTU of 1,500.
const LENGTHS: [usize; 6] = [60, 61, 64, 128, 1_501, 1_514];
/// The same around the borders of pages, up to an MTU of 9,000.
const JUMBO: [usize; 9] = [60, 1_514, 3_840, 3_841, 4_096, 4_097, 8_192, 8_193, 9_014];

/// Queues of an interface with several.
const QUEUES: u32 = 4;

/// The contract over ports that `$pair` makes if `$ready` allows it; `$tags` is the handling of VLAN tags on their way.
macro_rules! contract {
    ($ports:ident, $ready:expr, $pair:expr, $tags:expr) => {
        mod $ports {
            use super::*;

            contract_but_counts!($ready, $pair, $tags);

            #[test]
            fn counts_add_up() {
                if $ready {
                    contract::counts_add_up($pair);
                }
            }
        }
    };
}

/// The same where others than the port drop and count frames, too.
macro_rules! contract_but_counts {
    ($ready:expr, $pair:expr, $tags:expr) => {
        #[test]
        fn in_order_and_unchanged() {
            if $ready {
                contract::in_order_and_unchanged($pair, &LENGTHS);
            }
        }
        #[test]
        fn nothing_is_nothing() {
            if $ready {
                contract::nothing_is_nothing($pair);
            }
        }
        #[test]
        fn waits_as_long_as_asked() {
            if $ready {
                contract::waits_as_long_as_asked($pair);
            }
        }
        #[test]
        fn capabilities_are_honest() {
            if $ready {
                contract::capabilities_are_honest($pair, $tags);
            }
        }
    };
}

contract!(memory, true, boxed_memory(), Kept);
contract!(packet, is_inside(UserNamespace), at_cable(PortKind::Packet, 1_500), Kept);
contract!(xdp, is_inside(Root), at_cable(PortKind::Xdp, 1_500), Kept);
contract!(xdp_queues, is_inside(Root), at_queues(), Kept);
contract!(xdp_busy_poll, is_inside(Root), busy_polling(), Kept);
contract!(xdp_hints, is_inside(Root) && hints_are_there(), hinted(1_500), Kept);
contract!(xdp_generic, is_inside(Root), at_macvlan(), TakenOut);
contract!(xdp_jumbo, is_inside(Root), at_cable(PortKind::Xdp, 9_000), Kept);

/// The cards of a guest, joined by a cable: tests/qemu/test_cards.py starts these there. Frames for which a card has no
/// memory are dropped and counted by the card, or by the machine that emulates it.
mod cards {
    use super::*;
    use namespace::{are_cards, cards};

    mod packet {
        use super::*;
        contract_but_counts!(are_cards(), cards(PortKind::Packet), Kept);
    }
    mod xdp {
        use super::*;
        contract_but_counts!(are_cards(), cards(PortKind::Xdp), TakenOut);
    }
}

fn boxed_memory() -> contract::Pair {
    let (near, far) = memory_pair(1_000);
    (Box::new(near), Box::new(far))
}

fn at_cable(kind: PortKind, mtu: usize) -> contract::Pair {
    cable(mtu);
    ends(kind)
}

/// At a cable whose ends have four queues each.
fn at_queues() -> contract::Pair {
    cable_of(1_500, QUEUES);
    let (near, far) = ends(PortKind::Xdp);
    assert_eq!(near.capabilities().xdp.unwrap().queues, QUEUES);
    (near, far)
}

/// As on hardware: every look for frames runs the driver's poll.
fn busy_polling() -> contract::Pair {
    cable(1_500);
    let receiving =
        Receiving { snap: 2_048, memory_bytes: 4 << 20, promptly: true, hardware: false };
    let end = |interface| {
        let mut port = XdpPort::open(&name(PortKind::Xdp, interface), Some(receiving)).unwrap();
        port.busy_poll().unwrap();
        assert!(port.capabilities().xdp.unwrap().busy_poll);
        Box::new(port)
    };
    (end("near"), end("far"))
}

const HINTED: Receiving =
    Receiving { snap: 2_048, memory_bytes: 16 << 20, promptly: true, hardware: true };

/// Ports that ask the driver for the NIC's stamp of each frame. That of veth answers 0.
fn hinted(mtu: usize) -> contract::Pair {
    cable(mtu);
    let end = |interface| open(&name(PortKind::Xdp, interface), Some(HINTED)).unwrap();
    (end("near"), end("far"))
}

/// Before Linux 6.3 there was no such question.
fn hints_are_there() -> bool {
    cable(1_500);
    let claims = Claims::of("near").unwrap().af_xdp;
    ip("link del near");
    let there = claims.is_some_and(|told| told.hints_stamps());
    if !there {
        skipped("the kernel's veth gives no hints to XDP programs (Linux 6.3)");
    }
    there
}

#[test]
fn what_the_driver_says_of_its_stamps_is_counted() {
    if is_inside(Root) && hints_are_there() {
        let (mut near, mut far) = hinted(1_500);
        assert_eq!(far.capabilities().stamping, Stamping::Hardware);
        for number in 0..10 {
            assert_eq!(near.send(&[&contract::frame(number, 60)]).unwrap(), 1);
        }
        let mut stamps = Vec::new();
        while stamps.len() < 10 {
            assert!(far.wait(Duration::from_secs(60)).unwrap());
            far.receive(64, &mut |frame| stamps.push(frame.stamp)).unwrap();
        }
        assert_eq!(stamps, [None; 10]);
        let counters = far.counters().unwrap();
        assert_eq!(counters.hints, Hints { zero: 10, ..Hints::default() });
        assert_eq!((counters.received, counters.unstamped), (10, 10));
        // Behind a driver, nothing answers.
        drop((near, far));
        ip("link del near");
        drop(at_macvlan());
        let error = open(&name(PortKind::Xdp, "near"), Some(HINTED)).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("xdp:near: "), "{error}");
    }
}

/// Over MACVLAN interfaces, whose driver runs no XDP programs.
fn at_macvlan() -> contract::Pair {
    cable(1_504);
    for interface in ["near", "far"] {
        ip(&format!("link set {interface} name {interface}-cable"));
        ip(&format!("link add link {interface}-cable name {interface} type macvlan mode passthru"));
        ip(&format!("link set {interface} mtu 1500 arp off up"));
    }
    ends(PortKind::Xdp)
}

#[test]
fn xdp_says_how_it_is_attached() {
    if is_inside(Root) {
        let (native, peer) = at_cable(PortKind::Xdp, 1_500);
        let (how, stamping) = mode(native);
        assert_eq!((how.attached, how.zero_copy, how.queues), (Attached::Native, false, 1));
        assert_eq!(stamping, Stamping::Program);
        assert!(!how.busy_poll, "there is no interrupt to replace");
        drop(peer);
        ip("link del near");
        let (how, stamping) = mode(at_macvlan().0);
        assert_eq!((how.attached, how.zero_copy, how.queues), (Attached::Generic, false, 1));
        assert_eq!(stamping, Stamping::Program);
        let (how, stamping) = mode(open(&name(PortKind::Xdp, "far-cable"), None).unwrap());
        assert_eq!((how.attached, stamping), (Attached::Nowhere, Stamping::Process));
    }
}

fn mode(port: Box<dyn Port>) -> (XdpMode, Stamping) {
    let capabilities = port.capabilities();
    (capabilities.xdp.unwrap(), capabilities.stamping)
}

#[test]
fn packet_says_when_it_is_gone() {
    if is_inside(UserNamespace) {
        let pair = at_cable(PortKind::Packet, 1_500);
        contract::a_port_that_is_gone_says_so(pair, || ip("link del near"));
    }
}

#[test]
fn xdp_says_when_it_is_gone() {
    if is_inside(Root) {
        let pair = at_cable(PortKind::Xdp, 1_500);
        contract::a_port_that_is_gone_says_so(pair, || ip("link del near"));
    }
}

#[test]
fn packet_carries_large_frames() {
    if is_inside(UserNamespace) {
        contract::in_order_and_unchanged(at_cable(PortKind::Packet, 9_000), &JUMBO);
    }
}

#[test]
fn xdp_carries_large_frames() {
    if is_inside(Root) {
        contract::in_order_and_unchanged(at_cable(PortKind::Xdp, 9_000), &JUMBO);
    }
}

#[test]
fn xdp_hints_carry_large_frames() {
    if is_inside(Root) && hints_are_there() {
        contract::in_order_and_unchanged(hinted(9_000), &JUMBO);
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    // More than a user may lock: the error must name the missing right nevertheless.
    let receiving =
        Some(Receiving { snap: 2_048, memory_bytes: 64 << 20, promptly: true, hardware: false });
    let error = |name| open(&name, receiving).map(drop).unwrap_err().to_string();
    if is_inside(UserNamespace) {
        cable(1_500);
        for kind in [PortKind::Packet, PortKind::Xdp] {
            let error = error(name(kind, "nowhere"));
            assert!(error.contains("nowhere: no such interface: "), "{error}");
        }
        let error = error(name(PortKind::Xdp, "near"));
        assert!(error.starts_with("xdp:near: "), "{error}");
        assert!(error.contains("needs root") && error.contains("packet:INTERFACE"), "{error}");
    }
}

#[test]
fn frames_of_all_queues_come_in_the_order_of_their_stamps() {
    if is_inside(Root) {
        for promptly in [true, false] {
            cable_of(1_500, QUEUES);
            let receiving = Receiving { promptly, ..HINTED };
            let receiving = Receiving { hardware: false, ..receiving };
            let mut far = open(&name(PortKind::Xdp, "far"), Some(receiving)).unwrap();
            let sender = |queue| PortName { queue: Some(queue), ..name(PortKind::Xdp, "near") };
            let mut near: Vec<_> =
                (0..QUEUES).map(|queue| open(&sender(queue), None).unwrap()).collect();
            let numbers: Vec<usize> = (0..400).collect();
            for number in &numbers {
                // Not one after the other, and some queues more than others.
                let queue = number * number / 3 % near.len();
                assert_eq!(near[queue].send(&[&contract::frame(*number, 60)]).unwrap(), 1);
            }
            let (mut came, mut stamps) = (Vec::new(), Vec::new());
            while came.len() < numbers.len() {
                assert!(far.wait(Duration::from_secs(60)).unwrap(), "{}", came.len());
                far.receive(64, &mut |frame| {
                    came.push(frame.bytes.to_vec());
                    stamps.push(frame.stamp.unwrap().ns);
                })
                .unwrap();
            }
            assert!(stamps.is_sorted());
            let sent: Vec<_> = numbers.iter().map(|number| contract::frame(*number, 60)).collect();
            assert!(came == sent);
            let counters = far.counters().unwrap();
            assert_eq!((counters.received, counters.dropped, counters.elsewhere), (400, 0, 0));
            // A port of one queue leaves the others to the kernel, and counts their frames.
            drop(far);
            let one = PortName { queue: Some(2), ..name(PortKind::Xdp, "far") };
            let mut far = open(&one, Some(receiving)).unwrap();
            for near in &mut near {
                assert_eq!(near.send(&[&contract::frame(0, 60)]).unwrap(), 1);
            }
            while far.counters().unwrap().elsewhere < 3 {
                far.wait(Duration::from_millis(1)).unwrap();
            }
            assert_eq!(far.receive(64, &mut |_| ()).unwrap(), 1);
            ip("link del near");
        }
    }
}

#[test]
fn what_the_driver_throws_away_is_counted() {
    if is_inside(Root) {
        let (mut near, _far) = at_cable(PortKind::Xdp, 1_500);
        // Without a carrier, the driver drops all frames.
        ip("link set far down");
        let frame = contract::frame(1, 60);
        assert_eq!(near.send(&[frame.as_slice(); 64]).unwrap(), 64);
        let counters = near.counters().unwrap();
        assert_eq!((counters.sent, counters.discarded, counters.refused), (64, 64, 0));
    }
}

#[test]
fn a_queue_has_one_port() {
    if is_inside(Root) {
        cable(1_500);
        let receiving = Some(Receiving {
            snap: 2_048,
            memory_bytes: 64 * 2_048,
            promptly: true,
            hardware: false,
        });
        let near = name(PortKind::Xdp, "near");
        let first = open(&near, receiving).unwrap();
        let error = open(&near, receiving).map(drop).unwrap_err().to_string();
        assert!(error.contains("another AF_XDP socket"), "{error}");
        drop(first);
        drop(open(&near, receiving).unwrap());
        let queue = PortName { queue: Some(7), ..near };
        let error = open(&queue, receiving).map(drop).unwrap_err().to_string();
        assert!(error.contains("have this queue?"), "{error}");
    }
}
