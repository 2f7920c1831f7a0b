//! Captures with packets of both directions.

use crate::frames::{
    Packet, Packets, Random, T0, US, explained, options, summary, try_analyze, udp, warning,
};
use tailtrim_tail::analysis::{AnalysisError, Options};
use tailtrim_tail::directions::Direction;

const PACKETS: u32 = 2_000;

fn entered_ns(number: u32) -> i64 {
    T0 + i64::from(number) * 25 * US
}

/// A client of many, and a server of some.
fn request(number: u32) -> Packet {
    let (client, server) = ((number % 31) as u8, (number % 3) as u8);
    Packet { source: [10, 1, 0, client], destination: [10, 9, 0, server], ..udp(number) }
}

fn reply(number: u32) -> Packet {
    let Packet { source, destination, .. } = request(number);
    Packet { source: destination, destination: source, ..udp(1_000_000 + number) }
}

/// Requests, and replies to them; `translated` changes what is seen at egress of the clients' addresses.
fn both_ways(seed: u64, translated: bool) -> [Packets; 2] {
    let mut random = Random::new(seed);
    let mut taps = [Vec::new(), Vec::new()];
    let outside =
        |address: [u8; 4]| if translated && address[1] == 1 { [203, 0, 113, 9] } else { address };
    let seen_outside = |packet: Packet| Packet {
        source: outside(packet.source),
        destination: outside(packet.destination),
        ..packet
    };
    for number in 0..PACKETS {
        let (there_ns, back_ns) = (3 * US + random.below(US), 6 * US + random.below(US));
        let sent_ns = entered_ns(number);
        taps[0].push((sent_ns, request(number).frame()));
        taps[1].push((sent_ns + there_ns, seen_outside(request(number).routed()).frame()));
        let sent_ns = sent_ns + 300 * US;
        taps[1].push((sent_ns, seen_outside(reply(number)).frame()));
        taps[0].push((sent_ns + back_ns, reply(number).routed().frame()));
    }
    taps
}

fn going(direction: Direction) -> Options {
    Options { direction: Some(direction), ..options() }
}

#[test]
fn two_directions_are_told_and_analysed_one_by_one() {
    let taps = both_ways(61, false);
    let found = summary(&taps, &options());
    assert!(warning(&found, "two_directions").invalidates);
    assert!(found.check_order().unwrap_err().to_string().contains("two directions"));
    assert!(found.warnings.iter().all(|warning| warning.code != "not_positive"));
    for (direction, least_ns) in [(Direction::Forward, 3 * US), (Direction::Reverse, 6 * US)] {
        let found = summary(&taps, &going(direction));
        assert_eq!(
            (found.samples, found.ingress.packets),
            (u64::from(PACKETS), u64::from(PACKETS))
        );
        let (min, max) = (found.latency_ns.min.unwrap(), found.latency_ns.max.unwrap());
        assert!(least_ns <= min && max < least_ns + US, "{direction:?}: {min} to {max}");
        assert_eq!((found.check_order(), explained(&found)), (Ok(()), vec![]));
    }
}

#[test]
fn lost_packets_count_in_their_direction() {
    let mut taps = both_ways(62, false);
    // A flow that never passes, one that passes at times, and replies that get lost.
    let blocked = |number: u32| Packet {
        source: [10, 1, 0, 200],
        destination: [10, 9, 0, 77],
        ..udp(number)
    };
    for number in 0..50 {
        taps[0].push((entered_ns(number) + 7, blocked(5_000_000 + number).frame()));
    }
    let [egress_part, ingress_part] = [request(40).routed().frame(), reply(80).routed().frame()];
    taps[1].retain(|(_, frame)| *frame != egress_part);
    taps[0].retain(|(_, frame)| *frame != ingress_part);
    let [forward, reverse] =
        [Direction::Forward, Direction::Reverse].map(|direction| summary(&taps, &going(direction)));
    assert_eq!((forward.ingress.lost, forward.ingress.matched), (51, u64::from(PACKETS) - 1));
    assert_eq!((reverse.ingress.lost, reverse.ingress.matched), (1, u64::from(PACKETS) - 1));
    assert_eq!(forward.egress.unmatched + reverse.egress.unmatched, 0);
}

#[test]
fn addresses_may_be_translated_in_both_directions() {
    let taps = both_ways(63, true);
    let mut asked = options();
    asked.rewrites.nat = true;
    assert_eq!(explained(&summary(&taps, &asked)), ["two_directions"]);
    for direction in [Direction::Forward, Direction::Reverse] {
        let found = summary(&taps, &Options { direction: Some(direction), ..asked.clone() });
        assert_eq!(found.samples, u64::from(PACKETS), "{direction:?}");
    }
}

/// Clocks that disagree are no two directions: all addresses are early alike, or early at times.
#[test]
fn clocks_that_disagree_are_no_directions() {
    for (seed, drift) in [(64, 0), (65, 1)] {
        let mut random = Random::new(seed);
        let mut taps = [Vec::new(), Vec::new()];
        for number in 0..PACKETS {
            let noise_ns = random.below(20 * US) - 10 * US;
            let drift_ns = i64::from(drift) * (i64::from(PACKETS / 2) - i64::from(number)) * 20;
            taps[0].push((entered_ns(number), request(number).frame()));
            taps[1]
                .push((entered_ns(number) + noise_ns + drift_ns, request(number).routed().frame()));
        }
        assert_eq!(explained(&summary(&taps, &options())), [""; 0], "{seed}");
    }
}

#[test]
fn a_direction_takes_captures_with_two() {
    let taps = both_ways(66, false).map(|mut packets| {
        packets.retain(|(_, frame)| frame[27] == 1);
        packets
    });
    let error = try_analyze(&taps, &going(Direction::Forward)).unwrap_err();
    assert!(matches!(error, AnalysisError::OneDirection));
}
