//! Packets that captures have twice: on both sides of the device, or in two VLANs.

use crate::frames::{
    Packet, Packets, Random, T0, US, explained, options, summary, try_analyze, udp, warning,
};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::signature::Rewrites;
use tailtrim_tail::summary::Summary;

const PACKETS: u32 = 1_300;

/// Change of a packet at a place on its way.
type Change = fn(Packet) -> Packet;

const SAME: Change = |packet| packet;
const ROUTED: Change = |packet| packet.routed();
const TTL: Change = |packet| Packet { ttl: packet.ttl - 1, ..packet };
const MACS: Change = |packet| Packet { macs: [6; 12], ..packet };
const VLAN_10: Change = |packet| Packet { vlan: Some(10), ..packet };
const VLAN_20: Change = |packet| Packet { vlan: Some(20), ..packet };

/// A device that takes 9 to 10 µs, every 100th time 200 µs more, and a mirror port that takes so long and varies so much.
struct Taps {
    random: Random,
    mirror_ns: i64,
    varies_ns: i64,
}

impl Taps {
    fn new(seed: u64, mirror_ns: i64, varies_ns: i64) -> Self {
        Self { random: Random::new(seed), mirror_ns, varies_ns }
    }

    fn entered_ns(number: u32) -> i64 {
        T0 + i64::from(number) * 100 * US
    }

    fn left_ns(&mut self, number: u32) -> i64 {
        let late_ns = if number % 100 == 7 { 200 * US } else { 0 };
        Self::entered_ns(number) + 9 * US + self.random.below(US) + late_ns
    }

    fn mirrored_ns(&mut self) -> i64 {
        self.mirror_ns + self.random.below(self.varies_ns.max(1))
    }

    /// Captures of packets that the egress file has as they come in and as they go out.
    fn both_at_egress(mut self, enters: Change, before: Change, behind: Change) -> [Packets; 2] {
        let mut taps = [Vec::new(), Vec::new()];
        for number in 0..PACKETS {
            let (entered_ns, left_ns) = (Self::entered_ns(number), self.left_ns(number));
            taps[0].push((entered_ns, enters(udp(number)).frame()));
            taps[1].push((entered_ns + self.mirrored_ns(), before(udp(number)).frame()));
            taps[1].push((left_ns + self.mirrored_ns(), behind(udp(number)).frame()));
        }
        taps
    }

    /// Captures that both have both sides.
    fn both_everywhere(mut self, before: Change, behind: Change) -> [Packets; 2] {
        let mut taps = [Vec::new(), Vec::new()];
        for number in 0..PACKETS {
            let stamps_ns = [Self::entered_ns(number), self.left_ns(number)];
            for (stamp_ns, change) in stamps_ns.into_iter().zip([before, behind]) {
                let frame = change(udp(number)).frame();
                taps[0].push((stamp_ns, frame.clone()));
                taps[1].push((stamp_ns + self.mirrored_ns(), frame));
            }
        }
        taps
    }
}

fn median_ns(summary: &Summary) -> i64 {
    summary.latency_ns.quantiles[0].value.unwrap()
}

/// The first copy counted: p50 was 500 ns, without a word.
#[test]
fn the_copy_that_was_forwarded_counts() {
    let cases: [(&str, Change, Change, Change); 6] = [
        ("routed", SAME, SAME, ROUTED),
        ("TTL", SAME, SAME, TTL),
        ("MAC addresses", SAME, SAME, MACS),
        ("tags of the mirror port", SAME, VLAN_10, |packet| VLAN_20(packet.routed())),
        ("one tag", SAME, VLAN_10, |packet| VLAN_10(packet.routed())),
        ("another VLAN", VLAN_10, VLAN_10, VLAN_20),
    ];
    for (name, enters, before, behind) in cases {
        for varies_ns in [0, 60] {
            let taps = Taps::new(3, 500, varies_ns).both_at_egress(enters, before, behind);
            let found = summary(&taps, &options());
            assert!((9 * US..11 * US).contains(&median_ns(&found)), "{name} {found:?}");
            let told = warning(&found, "both_sides");
            assert!(!told.invalidates, "{}", told.text);
            assert_eq!((found.samples, told.count), (u64::from(PACKETS), u64::from(PACKETS)));
            let egress = found.egress;
            assert_eq!((egress.packets, egress.copy), (2 * told.count, told.count));
            assert!(found.latency_ns.max > Some(200 * US));
        }
    }
}

/// Regression: corrections of clocks began at packets by their number among all, not among those that count.
#[test]
fn clocks_are_corrected_where_copies_are_left_out() {
    let mut taps = Taps::new(8, 500, 60).both_at_egress(SAME, SAME, ROUTED);
    let stepped_ns = Taps::entered_ns(PACKETS / 2);
    for (stamp_ns, _) in taps[1].iter_mut().filter(|(stamp_ns, _)| *stamp_ns >= stepped_ns) {
        *stamp_ns += 37_000_000 * US;
    }
    let found = summary(&taps, &Options { fit_clocks: true, ..options() });
    assert_eq!(found.samples, u64::from(PACKETS), "{found:?}");
    assert!((9 * US..11 * US).contains(&median_ns(&found)), "{found:?}");
}

#[test]
fn copies_that_nothing_tells_apart_are_no_result() {
    let cases: [(&str, Change, Change, Change, &str); 3] = [
        ("alike", SAME, SAME, SAME, "mirror one direction"),
        ("tags of the mirror port", SAME, VLAN_10, VLAN_20, "'vlan 20'"),
        ("a tag of the mirror port", SAME, VLAN_10, SAME, "'not vlan'"),
    ];
    for (name, enters, before, behind, typed) in cases {
        let taps = Taps::new(4, 500, 60).both_at_egress(enters, before, behind);
        let found = summary(&taps, &options());
        let told = warning(&found, "both_sides");
        assert!(told.invalidates && told.text.contains(typed), "{name}: {}", told.text);
    }
    // A busy mirror port varies as much as the device: which of both the router is, is not known.
    let taps = Taps::new(5, 500, 900 * US).both_at_egress(SAME, SAME, ROUTED);
    let found = summary(&taps, &options());
    assert!(warning(&found, "both_sides").invalidates, "{found:?}");
}

/// Two sniffers at one mirror port, which has both sides of the device.
#[test]
fn captures_that_both_have_both_sides_are_told() {
    let cases: [(&str, Change, Change); 3] = [
        ("routed", SAME, ROUTED),
        ("tags", VLAN_10, VLAN_20),
        ("routed with tags", VLAN_10, |packet| VLAN_20(packet.routed())),
    ];
    for (name, before, behind) in cases {
        let taps = Taps::new(6, 130, 20).both_everywhere(before, behind);
        let found = summary(&taps, &options());
        assert!((9 * US..11 * US).contains(&median_ns(&found)), "{name} {found:?}");
        assert_eq!(explained(&found), ["both_sides", "mirror_copies"], "{name}");
        assert_eq!(found.samples, u64::from(PACKETS), "{name}");
    }
}

fn translated(packet: Packet) -> Packet {
    let payload = [&[0x9c, 0x40, 0x17, 0x70][..], &packet.payload[4..]].concat();
    Packet { source: [203, 0, 113, 5], payload, ..packet }
}

#[test]
fn both_sides_of_a_translator_are_told_with_the_mask() {
    let taps =
        Taps::new(7, 500, 60).both_at_egress(SAME, SAME, |packet| translated(packet.routed()));
    let found = summary(&taps, &options());
    let told = warning(&found, "both_sides");
    assert!(told.invalidates && told.text.contains("--mask nat"), "{}", told.text);
    let rewrites = Rewrites { nat: true, ..Rewrites::default() };
    let found = summary(&taps, &Options { rewrites, ..options() });
    assert!((9 * US..11 * US).contains(&median_ns(&found)), "{found:?}");
    assert!(!warning(&found, "both_sides").invalidates);
}

/// Another port, which the ingress tap does not see, carries a flow of the same payload.
#[test]
fn a_flow_of_the_same_payload_is_no_other_side() {
    for device in [SAME, ROUTED] {
        let mut taps = [Vec::new(), Vec::new()];
        let mut random = Taps::new(12, 0, 0);
        for number in 0..PACKETS {
            let other = Packet { macs: [5; 12], ..translated(udp(number)) };
            let other_ns = Taps::entered_ns(number) + 30 * US + random.random.below(20 * US);
            taps[0].push((Taps::entered_ns(number), udp(number).frame()));
            taps[1].push((random.left_ns(number), device(udp(number)).frame()));
            taps[1].push((other_ns, device(other).frame()));
        }
        assert_eq!(explained(&summary(&taps, &options())), [""; 0]);
    }
}

/// A mirror port behind the device, whose first copy counts.
#[test]
fn copies_behind_the_device_are_no_other_side() {
    for (name, second) in [("alike", SAME), ("tagged", VLAN_10), ("routed again", ROUTED)] {
        for (behind, device) in [("a router", ROUTED), ("a bridge", SAME)] {
            let mut taps = [Vec::new(), Vec::new()];
            let mut random = Taps::new(8, 700, 20);
            for number in 0..PACKETS {
                let left_ns = random.left_ns(number);
                taps[0].push((Taps::entered_ns(number), udp(number).frame()));
                taps[1].push((left_ns, device(udp(number)).frame()));
                taps[1].push((left_ns + random.mirrored_ns(), second(device(udp(number))).frame()));
            }
            let found = summary(&taps, &options());
            // A router behind a bridge: which of them is the device, is not known.
            if behind == "a bridge" && name == "routed again" {
                assert!(warning(&found, "both_sides").invalidates, "{found:?}");
            } else {
                assert_eq!(explained(&found), [""; 0], "{name} behind {behind}");
                assert!((9 * US..10 * US).contains(&median_ns(&found)));
            }
        }
    }
}

/// Half of the packets were dropped as copies of a mirror port.
#[test]
fn two_vlans_of_the_same_packets_are_two_flows() {
    for (name, device) in [("a router", ROUTED), ("a bridge", SAME)] {
        for apart_ns in [3 * US, 40 * US] {
            let mut taps = [Vec::new(), Vec::new()];
            let mut random = Taps::new(10, 0, 0);
            for number in 0..PACKETS {
                for (vlan, late_ns) in [(VLAN_10, 0), (VLAN_20, apart_ns)] {
                    let left_ns = random.left_ns(number) + late_ns;
                    taps[0].push((Taps::entered_ns(number) + late_ns, vlan(udp(number)).frame()));
                    taps[1].push((left_ns, vlan(device(udp(number))).frame()));
                }
            }
            let found = summary(&taps, &options());
            let all = 2 * u64::from(PACKETS);
            assert_eq!((found.samples, found.ingress.copy), (all, 0), "{name} {apart_ns}");
            let told = warning(&found, "same_vlans");
            assert!(told.text.contains("VLANs 10 and 20") && !told.invalidates, "{}", told.text);
            assert!(found.latency_ns.min >= Some(9 * US) && median_ns(&found) < 10 * US);
            let asked = Options { lost: 10, ..options() };
            assert_eq!(try_analyze(&taps, &asked).unwrap().lost_frames.unwrap(), []);
        }
    }
}

#[test]
fn three_vlans_of_the_same_packets_are_three_flows() {
    let mut taps = [Vec::new(), Vec::new()];
    let mut random = Taps::new(11, 0, 0);
    for number in 0..PACKETS {
        for (vlan, late_ns) in [(10, 0), (20, 3 * US), (30, 6 * US)] {
            let packet = Packet { vlan: Some(vlan), ..udp(number) };
            taps[0].push((Taps::entered_ns(number) + late_ns, packet.frame()));
            taps[1].push((random.left_ns(number) + late_ns, packet.frame()));
        }
    }
    let found = summary(&taps, &options());
    assert_eq!((found.samples, found.ingress.copy), (3 * u64::from(PACKETS), 0));
    let told = &warning(&found, "same_vlans").text;
    assert!(told.starts_with("the VLANs 10, 20 and 30 have"), "{told}");
    // The third does not pass.
    taps[1].retain(|(_, frame)| frame[15] != 30);
    let found = summary(&taps, &options());
    assert_eq!(found.samples, 2 * u64::from(PACKETS));
    assert_eq!(found.ingress.lost + found.ingress.cut, u64::from(PACKETS));
}
