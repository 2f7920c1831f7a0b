//! Captures with packets of both directions.

use crate::frames::{
    Packet, Packets, Random, T0, US, body, datagram, explained, options, summary, try_analyze, udp,
    warning,
};
use tailtrim_tail::analysis::{AnalysisError, Options, OrderError};
use tailtrim_tail::directions::Direction;
use tailtrim_tail::summary::Summary;

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
    let found = try_analyze(&taps, &options()).unwrap();
    assert!(found.check_order().unwrap_err().to_string().contains("two directions"));
    let found = found.summary;
    assert!(warning(&found, "two_directions").invalidates);
    assert!(found.warnings.iter().all(|warning| warning.code != "not_positive"));
    for (direction, least_ns) in [(Direction::Forward, 3 * US), (Direction::Reverse, 6 * US)] {
        let found = try_analyze(&taps, &going(direction)).unwrap();
        assert_eq!(found.check_order(), Ok(()));
        let found = found.summary;
        assert_eq!(
            (found.samples, found.ingress.packets),
            (u64::from(PACKETS), u64::from(PACKETS))
        );
        let (min, max) = (found.latency_ns.min.unwrap(), found.latency_ns.max.unwrap());
        assert!(least_ns <= min && max < least_ns + US, "{direction:?}: {min} to {max}");
        assert_eq!(explained(&found), [""; 0]);
    }
}

/// A mirror port at one of the taps that writes each packet down twice.
#[test]
fn copies_of_a_mirror_port_do_not_hide_the_directions() {
    for (side, seed) in [(0, 73), (1, 74)] {
        for mut taps in [both_ways(seed, false), bridged(seed)] {
            let copy = |(stamp_ns, frame): &(i64, Vec<u8>)| (stamp_ns + US / 2, frame.clone());
            let copies: Packets = taps[side].iter().map(copy).collect();
            taps[side].extend(copies);
            let found = try_analyze(&taps, &options()).unwrap();
            assert!(matches!(found.check_order(), Err(OrderError::TwoDirections { .. })));
            for (direction, least_ns) in DIRECTIONS.into_iter().zip([3 * US, 6 * US]) {
                let found = try_analyze(&taps, &going(direction)).unwrap();
                assert_eq!(found.check_order(), Ok(()));
                let found = found.summary;
                assert_eq!(found.samples, u64::from(PACKETS), "{side} {direction:?}");
                let [min, max] = [found.latency_ns.min, found.latency_ns.max].map(Option::unwrap);
                assert!(least_ns <= min && max < least_ns + US, "{direction:?}: {min} to {max}");
            }
        }
    }
}

/// A mirror port at egress with both sides of a router: each packet comes as it entered and as it left, also those that come back.
#[test]
fn both_sides_at_egress_have_directions() {
    let [inside, mut outside] = both_ways(75, false);
    let late = |(stamp_ns, frame): &(i64, Vec<u8>)| (stamp_ns + US / 2, frame.clone());
    outside.extend(inside.iter().map(late));
    let taps = [inside, outside];
    let found = try_analyze(&taps, &options()).unwrap();
    assert!(matches!(found.check_order(), Err(OrderError::TwoDirections { .. })));
    for (direction, least_ns) in DIRECTIONS.into_iter().zip([3 * US, 6 * US]) {
        let found = try_analyze(&taps, &going(direction)).unwrap().summary;
        assert_eq!(found.samples, u64::from(PACKETS), "{direction:?} {found:?}");
        let [min, max] = [found.latency_ns.min, found.latency_ns.max].map(Option::unwrap);
        assert!(least_ns <= min && max < least_ns + US, "{direction:?}: {min} to {max}");
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
    let error = try_analyze(&taps, &going(Direction::Forward)).err();
    assert!(matches!(error, Some(AnalysisError::OneDirection)));
}

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Reverse];
const MS: i64 = 1_000 * US;
const SECOND: i64 = 1_000 * MS;

/// Both ways through a bridge, which changes nothing in packets.
fn bridged(seed: u64) -> [Packets; 2] {
    let mut random = Random::new(seed);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let (there_ns, back_ns) = (3 * US + random.below(US), 6 * US + random.below(US));
        let (sent_ns, replied_ns) = (entered_ns(number), entered_ns(number) + 300 * US);
        taps[0].push((sent_ns, request(number).frame()));
        taps[1].push((sent_ns + there_ns, request(number).frame()));
        taps[1].push((replied_ns, reply(number).frame()));
        taps[0].push((replied_ns + back_ns, reply(number).frame()));
    }
    taps
}

/// The captures where the egress clock is wrong by so much at a time since the begin.
fn with_clock(taps: &[Packets; 2], off: impl Fn(i64) -> i64) -> [Packets; 2] {
    let [ingress, egress] = taps.clone();
    let egress = egress.into_iter().map(|(stamp_ns, frame)| (stamp_ns + off(stamp_ns - T0), frame));
    [ingress, egress.collect()]
}

fn of_clocks(summary: &Summary) -> Vec<&'static str> {
    let codes = summary.warnings.iter().map(|warning| warning.code);
    codes.filter(|code| code.starts_with("clock") || *code == "not_positive").collect()
}

/// That a correction with both directions leaves them the latencies that they have, but for so much more in one and less in
/// the other.
#[track_caller]
fn corrected(taps: &[Packets; 2], wrong_ns: i64, within_ns: i64) {
    for (direction, wrong_ns) in [(Direction::Forward, wrong_ns), (Direction::Reverse, -wrong_ns)] {
        let asked = Options { fit_clocks: true, ..going(direction) };
        let found = try_analyze(taps, &asked).unwrap();
        assert_eq!(found.check_order(), Ok(()));
        let found = found.summary;
        assert_eq!(found.samples, u64::from(PACKETS), "{direction:?}");
        let [min, max] = [found.latency_ns.min, found.latency_ns.max].map(Option::unwrap);
        let least_ns = wrong_ns + if direction == Direction::Forward { 3 * US } else { 6 * US };
        assert!((min - least_ns).abs() <= within_ns, "{direction:?} {min} {:?}", found.clock_fit);
        assert!((max - least_ns - US).abs() <= within_ns, "{direction:?} {max}");
        assert_eq!(of_clocks(&found), ["clock_fit"]);
    }
}

#[test]
fn clocks_that_are_apart_do_not_decide_the_direction() {
    let (routed, bridged) = (both_ways(67, false), bridged(68));
    for (taps, off_ns, by) in [
        (&routed, MS, "999 µs ahead of"),
        (&routed, -37 * SECOND, "37.0 s behind"),
        (&bridged, -MS, "ms behind"),
        (&bridged, 100 * US, "98.5 µs ahead of"),
    ] {
        let taps = with_clock(taps, |_| off_ns);
        let found = summary(&taps, &options());
        assert_eq!((explained(&found), of_clocks(&found)), (vec!["two_directions"], vec![]));
        for direction in DIRECTIONS {
            let found = try_analyze(&taps, &going(direction)).unwrap();
            assert_eq!(found.check_order(), Ok(()), "the clocks are told");
            let told = warning(&found.summary, "clock_offset");
            assert!(told.invalidates && told.text.contains("--clock-fit"), "{}", told.text);
            let opposite = match by.split_once(" ahead of") {
                Some((by, _)) => format!("{by} behind"),
                None => by.replace("behind", "ahead of"),
            };
            let by = if direction == Direction::Forward { by } else { &opposite };
            assert!(told.text.contains(by), "{off_ns} {direction:?} {}", told.text);
        }
        // Half of what the directions differ by.
        corrected(&taps, 1_500, 200);
    }
}

/// Clocks that are apart by less than packets take leave both directions possible.
#[test]
fn clocks_that_are_apart_by_less_than_the_latency_are_not_seen() {
    let taps = with_clock(&both_ways(69, false), |_| 2 * US);
    for direction in DIRECTIONS {
        assert_eq!(of_clocks(&summary(&taps, &going(direction))), [""; 0]);
    }
}

#[test]
fn clocks_that_drift_or_are_set_are_told_and_corrected_in_both_directions() {
    let drift = |since_ns: i64| since_ns / 2_500;
    let set = |since_ns: i64| if since_ns > 20 * MS { 400 * MS } else { 0 };
    for taps in [both_ways(70, false), bridged(71)] {
        for (code, taps) in
            [("clock_drift", with_clock(&taps, drift)), ("clock_step", with_clock(&taps, set))]
        {
            assert_eq!(explained(&summary(&taps, &options())), ["two_directions"], "{code}");
            for direction in DIRECTIONS {
                let found = try_analyze(&taps, &going(direction)).unwrap();
                assert!(of_clocks(&found.summary).contains(&code), "{direction:?} {code}");
                assert_eq!(found.check_order(), Ok(()));
            }
            corrected(&taps, 0, 800);
        }
    }
}

/// A few packets that come back, and many that come back after all others, are the other direction, and no clock that was
/// set.
#[test]
fn rare_and_late_replies_are_the_other_direction() {
    let all = both_ways(72, false);
    let rare = all.clone().map(|mut packets| {
        let mut replies = 0;
        packets.retain(|(_, frame)| {
            replies += u32::from(frame[27] == 9);
            frame[27] == 1 || replies.is_multiple_of(400)
        });
        packets
    });
    let mut late = [Vec::new(), Vec::new()];
    for number in 0..20_000 {
        late[0].push((entered_ns(number), request(number).frame()));
        late[1].push((entered_ns(number) + 3 * US, request(number).routed().frame()));
    }
    for number in 20_000..21_000 {
        late[1].push((entered_ns(number), reply(number).frame()));
        late[0].push((entered_ns(number) + 3 * US, reply(number).routed().frame()));
    }
    for (taps, replies) in [(rare, 5), (late, 1_000)] {
        let found = summary(&taps, &options());
        assert_eq!((explained(&found), of_clocks(&found)), (vec!["two_directions"], vec![]));
        assert_eq!(summary(&taps, &going(Direction::Reverse)).samples, replies);
    }
}

/// Addresses in a tunnel tell the direction, if nothing else does.
#[test]
fn packets_in_labels_have_directions() {
    let [ingress, egress] = both_ways(73, false);
    let label =
        |frame: Vec<u8>| [&[2; 12][..], &[0x88, 0x47, 0, 6, 0x41, 64], &frame[14..]].concat();
    let egress = egress.into_iter().map(|(stamp_ns, frame)| (stamp_ns, label(frame)));
    let taps = with_clock(&[ingress, egress.collect()], |_| MS);
    let mut asked = options();
    asked.rewrites.tunnel = true;
    assert_eq!(explained(&summary(&taps, &asked)), ["two_directions"]);
    for direction in DIRECTIONS {
        let found = summary(&taps, &Options { direction: Some(direction), ..asked.clone() });
        assert_eq!(found.samples, u64::from(PACKETS), "{direction:?}");
    }
}

/// A reply with more bytes than the request, such as of DNS.
fn long_reply(number: u32) -> Packet {
    Packet { payload: datagram([6_000, 5_000], &body(number, 900)), ..reply(number) }
}

/// Through a bridge, replies that are all longer than the requests have taken less time: they went the other way.
#[test]
fn longer_replies_that_take_less_time_come_back() {
    let mut random = Random::new(76);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let (there_ns, back_ns) = (3 * US + random.below(US), 6 * US + random.below(US));
        let (sent_ns, replied_ns) = (entered_ns(number), entered_ns(number) + 300 * US);
        taps[0].push((sent_ns, request(number).frame()));
        taps[1].push((sent_ns + there_ns + MS, request(number).frame()));
        taps[1].push((replied_ns + MS, long_reply(number).frame()));
        taps[0].push((replied_ns + back_ns, long_reply(number).frame()));
    }
    assert_eq!(explained(&summary(&taps, &options())), ["two_directions"]);
    corrected(&taps, 1_500, 200);
}

/// Requests and replies that one port sends through a bridge go one way, also where the longer ones take longer, and where
/// some of the shorter ones wait.
#[test]
fn replayed_requests_and_replies_go_one_way() {
    let mut random = Random::new(74);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let wait_ns = if number.is_multiple_of(90) { 8 * US } else { 0 };
        for (packet, at_ns, latency_ns) in
            [(request(number), 0, 4 * US + wait_ns), (long_reply(number), 9 * US, 9 * US)]
        {
            let entered_ns = entered_ns(number) + at_ns;
            taps[0].push((entered_ns, packet.frame()));
            taps[1].push((entered_ns + latency_ns + random.below(US), packet.frame()));
        }
    }
    let found = try_analyze(&taps, &options()).unwrap();
    assert_eq!((found.check_order(), found.summary.samples), (Ok(()), 2 * u64::from(PACKETS)));
    assert_eq!(explained(&found.summary), [""; 0]);
}

/// Percentiles of many packets that left before they entered are none of the device.
#[test]
fn many_negative_latencies_are_no_result() {
    let mut random = Random::new(75);
    let mut taps = [Vec::new(), Vec::new()];
    for number in 0..PACKETS {
        let noise_ns = random.below(20 * US) - 7 * US;
        taps[0].push((entered_ns(number), request(number).frame()));
        taps[1].push((entered_ns(number) + noise_ns, request(number).routed().frame()));
    }
    let error = try_analyze(&taps, &options()).unwrap().check_order().unwrap_err();
    assert!(matches!(error, OrderError::Negative { median_ns: 1.., .. }), "{error:?}");
    assert!(!error.to_string().contains("swapped"), "{error}");
}
