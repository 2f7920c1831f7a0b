//! Warnings about the numbers: each has its code, its count, and the words that a reader needs.

use super::{Arrival, MS, START_NS, options, pcap, run, steady, try_run, warned};
use crate::support::frames::{Ipv4, UDP, probe, udp};
use crate::support::{How, Order, Pcap, Pcapng, says};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::capture::write::NO_STAMP_NS;
use tailtrim_tail::signature::{Rewrites, Selection};
use tailtrim_tail::summary;

#[test]
fn warnings_about_what_the_taps_did() {
    let frame = |id: u32| probe(id);
    let mut ingress = Pcapng::new(Order::Little);
    ingress.interface(1, Some(9), None).simple_packet(&frame(0), 64).packet(0, 5_000, &frame(1));
    ingress.packet(0, 4_000, &frame(2)).statistics(0, 2, 1);
    let mut egress = Pcapng::new(Order::Little);
    egress.interface(1, Some(9), None).packet(0, 6_000, &frame(1)).packet(0, 7_000, &frame(2));
    egress.simple_packet(&frame(0), 64).statistics(0, 4, 0);
    egress.bytes.extend([1, 2, 3]);
    let how = How::SALVAGE;
    let options = Options { trim_ns: 0, ..Options::default() };
    let files = (ingress.bytes.as_slice(), egress.bytes.as_slice());
    let (analysis, _) = try_run(files, how, Arrival::Mapped, &options).unwrap();
    let summary = &analysis.summary;
    assert_eq!((summary.ingress.unstamped, summary.egress.unstamped), (1, 1));
    assert_eq!(analysis.latencies.entries(), [(1_000, 1), (3_000, 1)]);
    let damage = summary.taps.egress.damage.as_deref().unwrap();
    let place = format!("byte {}:", egress.bytes.len() - 3);
    assert!(says(damage, &["out", &place, " 3 bytes", "expected"]), "{damage}");
    warned(
        &summary.warnings,
        &[
            ("tap_drops", 3, &["ingress", " 3 frames", "lost or unmatched"]),
            ("unstamped", 1, &["1 ingress", "left out"]),
            ("out_of_order", 1, &["1 ingress", "backwards"]),
            ("damaged", 1, &[damage, "3 packets before"]),
            ("tap_drops", 4, &["egress", " 4 frames", "lost or unmatched"]),
            ("unstamped", 1, &["1 egress", "left out"]),
        ],
    );
}

#[test]
fn packets_beyond_the_window_are_told_with_the_option() {
    let (ingress, mut egress) = steady(100);
    egress[50].0 += 60 * MS;
    egress.sort_by_key(|packet| packet.0);
    let summary = run(&pcap(&ingress), &pcap(&egress), &options()).summary;
    assert_eq!(summary.ingress.beyond_window, 1);
    let told = summary.warnings.iter().find(|one| one.code == "beyond_window").unwrap();
    assert!(says(&told.text, &["1 packet left", "window of 50.0 ms", "--window"]), "{told:?}");
}

#[test]
fn warnings_about_packets() {
    let (mut ingress, mut egress) = steady(2_000);
    // Within the trim one is lost and one comes too late; later two look the same.
    egress.remove(20);
    egress[20].0 += 60 * MS;
    let at = START_NS + 150 * MS;
    ingress.extend([(at + 10, 9_999), (at + 20, 9_999)]);
    ingress.sort_by_key(|packet| packet.0);
    egress.sort_by_key(|packet| packet.0);
    let options = Options { trim_ns: 10 * MS, ..options() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    warned(
        &analysis.summary.warnings,
        &[
            ("duplicate", 2, &["2 ingress", "signature", "unknown", "slowest"]),
            ("trimmed_lost", 2, &["2 packets", "lost", "trim", "--skip 0"]),
        ],
    );
}

#[test]
fn frames_too_far_out_of_order_have_no_gaps() {
    // Number 300 was stamped before everything that is still known.
    let mut packets: Vec<(i64, u32)> = (1..=300).map(|id| (START_NS + i64::from(id), id)).collect();
    packets.push((START_NS, 0));
    let bytes = pcap(&packets);
    let analysis = run(&bytes, &bytes, &options());
    assert_eq!(analysis.summary.taps.ingress.misplaced, 1);
    assert_eq!(analysis.ingress_gaps.sorted(), [(1, 299)]);
    warned(
        &analysis.summary.warnings[..4],
        &[
            ("out_of_order", 1, &["1 ingress", "backwards"]),
            ("misplaced", 1, &["1 ingress", "too far", "gaps"]),
            ("out_of_order", 1, &["1 egress", "backwards"]),
            ("misplaced", 1, &["1 egress", "too far", "gaps"]),
        ],
    );
}

#[test]
fn captures_of_different_snap_lengths_match() {
    let payload = |id: u32| [&id.to_be_bytes()[..], &[7; 60]].concat();
    let frame = |id: u32| Ipv4::new(UDP, udp(1, 2, 3, &payload(id))).frame();
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for id in 0..100 {
        let stamp_ns = START_NS + i64::from(id) * MS;
        ingress.frame(stamp_ns, &frame(id));
        egress.cut_frame(stamp_ns + 1, &frame(id)[..50], frame(id).len() as u32);
    }
    let analysis = run(&ingress.bytes, &egress.bytes, &options());
    assert_eq!(analysis.summary.samples, 100);
    assert_eq!(analysis.summary.signature.bytes, 36);
    assert_eq!(analysis.summary.taps.egress.cut_frames, 100);
    assert_eq!(analysis.summary.taps.egress.short_signatures, 0);
    // A selection is what it is.
    let selection: Selection = "42:4,49:2".parse().unwrap();
    let options = Options { selection: Some(selection), ..options() };
    let analysis = run(&ingress.bytes, &egress.bytes, &options);
    assert_eq!(analysis.summary.samples, 0);
    assert_eq!(analysis.summary.signature.selection.as_deref(), Some("42:4,49:2"));
    assert_eq!(analysis.summary.taps.egress.short_signatures, 100);
    warned(
        &analysis.summary.warnings[..1],
        &[("short_signature", 100, &["100 egress", "cut", "snap length"])],
    );
}

/// A frame that ends before the chosen bytes do was not cut.
#[test]
fn frames_that_are_short_but_whole_are_not_cut() {
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for id in 0..100_u32 {
        let frame = Ipv4::new(UDP, udp(1, 2, 3, &id.to_be_bytes())).frame();
        ingress.frame(START_NS + i64::from(id) * MS, &frame);
        egress.frame(START_NS + i64::from(id) * MS + 1, &frame);
    }
    let selection: Option<Selection> = Some("42:64".parse().unwrap());
    let analysis = run(&ingress.bytes, &egress.bytes, &Options { selection, ..options() });
    assert_eq!((analysis.summary.samples, analysis.summary.taps.egress.short_signatures), (100, 0));
    assert!(analysis.summary.warnings.iter().all(|one| one.code != "short_signature"));
}

#[test]
fn what_identified_the_packets_is_told() {
    let (ingress, egress) = steady(3);
    let rewrites = Rewrites { nat: true, tos: true, tunnel: true };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { rewrites, ..options() });
    let expected = summary::SignatureSettings {
        selection: None,
        bytes: 64,
        masks: vec!["nat", "tos", "tunnel"],
        in_order: false,
    };
    assert_eq!(analysis.summary.signature, expected);
    assert_eq!(analysis.summary.samples, 3);
    assert_eq!(analysis.summary.schema, "tailtrim.summary/1");
}

/// As the tap writes them and as other programs convert them: at the beginning and in the middle.
#[test]
fn frames_without_a_stamp_are_counted_in_every_format() {
    let (ingress, egress) = steady(300);
    let mut of_tap = Pcap::ethernet();
    let mut converted = Pcapng::new(Order::Little);
    converted.interface(1, Some(9), None);
    let mut simple = Pcapng::new(Order::Little);
    simple.interface(1, Some(9), None);
    for (at, (stamp_ns, number)) in ingress.iter().enumerate() {
        let frame = &probe(*number);
        let has_none = at == 0 || at == 150;
        let stamp_ns = if has_none { NO_STAMP_NS } else { *stamp_ns };
        of_tap.frame(stamp_ns, frame);
        converted.packet(0, stamp_ns as u64, frame);
        if has_none {
            simple.simple_packet(frame, frame.len() as u32);
        } else {
            simple.packet(0, stamp_ns as u64, frame);
        }
    }
    for file in [of_tap.bytes, converted.bytes, simple.bytes] {
        let analysis = run(&file, &pcap(&egress), &options());
        let side = &analysis.summary.ingress;
        assert_eq!((side.packets, side.unstamped, analysis.summary.samples), (300, 2, 298));
        assert_eq!(analysis.summary.warnings[0].code, "unstamped");
    }
}

/// Packets behind it take the place of others, although as many entered as left.
#[test]
fn matching_in_order_across_a_packet_without_a_stamp_is_refused() {
    let frame = &probe(7);
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for at in 0..300 {
        let stamp_ns = START_NS + at * MS;
        ingress.frame(stamp_ns, frame);
        egress.frame(if at == 150 { NO_STAMP_NS } else { stamp_ns + 20_000 }, frame);
    }
    let options = Options { in_order: true, ..options() };
    let summary = run(&ingress.bytes, &egress.bytes, &options).summary;
    let told = summary.warnings.iter().find(|one| one.code == "in_order").unwrap();
    assert!(told.invalidates, "{told:?}");
    assert!(says(&told.text, &["300 packets entered and 299 left", "unstamped"]), "{told:?}");
}

/// A device that is cold, one that loses at any time, and a tap that begins late.
#[test]
fn losses_at_the_start_only_are_told() {
    let (ingress, egress) = steady(10_000);
    let without = |lost: &dyn Fn(usize) -> bool| {
        let left: Vec<_> =
            egress.iter().enumerate().filter(|(at, _)| !lost(*at)).map(|(_, one)| *one).collect();
        let warnings = run(&pcap(&ingress), &pcap(&left), &options()).summary.warnings;
        warnings.into_iter().find(|one| one.code == "lost_at_start")
    };
    let told = without(&|at| at > 0 && at < 900 && at.is_multiple_of(30)).unwrap();
    assert!(
        says(&told.text, &["all 29 packets", "the first 88 ms of 1.0 s", "--skip 88ms"]),
        "{told:?}"
    );
    for lost in
        [&|at: usize| at > 0 && at.is_multiple_of(300), &|at| at > 400 && at < 430, &|at| at < 600]
            as [&dyn Fn(usize) -> bool; 3]
    {
        assert_eq!(without(lost), None);
    }
}
