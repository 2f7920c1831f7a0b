//! Results for samples, losses and bursts.

use super::{MS, START_NS, US, options, pcap, run, steady, warned};
use tailtrim_tail::analysis::OrderError;
use tailtrim_tail::analysis::{Options, POSITIONS};
use tailtrim_tail::summary;

#[test]
fn among_equal_latencies_the_earlier_are_the_worst() {
    let latencies = [5, 9, 9, 1, 9, 5, 9, 5];
    let (ingress, mut egress) = steady(8);
    for (packet, latency) in egress.iter_mut().zip(latencies) {
        packet.0 += latency * US;
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { worst: 6, ..options() });
    let worst: Vec<(i64, u64)> = analysis
        .worst
        .iter()
        .map(|worst| ((worst.sample.latency_ns() - 30 * US) / US, worst.index))
        .collect();
    assert_eq!(worst, [(9, 1), (9, 2), (9, 4), (9, 6), (5, 0), (5, 5)]);
    assert_eq!(analysis.summary.worst.count, 6);
    // 0 to 2, 4 to 6.
    assert_eq!(analysis.summary.worst.clusters, 2);
    assert_eq!(analysis.summary.worst.from_ns, Some(35 * US));
}

#[test]
fn lost_packets_are_infinitely_late() {
    let (ingress, mut egress) = steady(1_000);
    // Two in a hundred get lost, and one is too late.
    egress.retain(|packet| !packet.1.is_multiple_of(50));
    egress[100].0 += 60 * MS;
    egress.sort_by_key(|packet| packet.0);
    let options = Options { quantiles: vec!["0.975".parse().unwrap()], ..options() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    let summary = &analysis.summary;
    assert_eq!((summary.ingress.lost, summary.ingress.beyond_window), (20, 1));
    let value = |quantiles: &[summary::Quantile], p: &str| {
        let p = p.parse().unwrap();
        quantiles.iter().find(|quantile| quantile.p == p).unwrap().value
    };
    for p in ["0.5", "0.9", "0.975", "0.99", "0.999999"] {
        assert_eq!(value(&summary.latency_ns.quantiles, p), Some(30 * US));
    }
    let adjusted = &summary.delivery_adjusted_ns;
    assert_eq!(value(adjusted, "0.975"), Some(30 * US));
    assert_eq!(value(adjusted, "0.99"), None);
    assert_eq!(value(adjusted, "0.999"), None);
}

#[test]
fn positions_in_bursts() {
    // Bursts of 5 frames 1 µs apart every 100 µs; the n-th waits n · 2 µs longer.
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    for id in 0..1_000_u32 {
        let at = START_NS + i64::from(id / 5) * 100 * US + i64::from(id % 5) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US + i64::from(id % 5) * 2 * US, id));
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    let bursts = analysis.summary.bursts.unwrap();
    assert!((US..95 * US).contains(&bursts.gap_ns), "{}", bursts.gap_ns);
    assert_eq!(bursts.positions.len(), 5);
    for (position, index) in bursts.positions.iter().zip(0..) {
        assert_eq!((position.position, position.samples), (index + 1, 200));
        let latency_ns = Some(30 * US + index as i64 * 2 * US);
        assert_eq!((position.latency_ns.min, position.latency_ns.max), (latency_ns, latency_ns));
    }
    // Without bursts there is no table of them.
    let (ingress, egress) = steady(1_000);
    assert!(run(&pcap(&ingress), &pcap(&egress), &options()).summary.bursts.is_none());
}

#[test]
fn late_positions_share_the_last_histogram() {
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    for id in 0..1_800_u32 {
        let at = START_NS + i64::from(id / 50) * 10 * MS + i64::from(id % 50) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US, id));
    }
    // Bursts of 50 frames, and at the end one of 600.
    for id in 1_800..2_400_u32 {
        let at = START_NS + 400 * MS + i64::from(id) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US, id));
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    let bursts = analysis.summary.bursts.unwrap();
    assert_eq!(bursts.positions.len(), POSITIONS);
    assert_eq!(bursts.positions[0].samples, 37);
    assert_eq!(bursts.positions[254].samples, 1);
    assert_eq!(bursts.positions[255].samples, 600 - 255);
}

#[test]
fn swapped_captures_and_one_capture_twice_are_no_result() {
    let (ingress, egress) = steady(100);
    let (ingress, egress) = (pcap(&ingress), pcap(&egress));
    assert_eq!(run(&ingress, &egress, &options()).check_order(), Ok(()));
    let swapped = run(&egress, &ingress, &options()).check_order().unwrap_err();
    assert!(
        matches!(swapped, OrderError::Negative { negative: 100, samples: 100, median_ns: ..0 }),
        "{swapped:?}"
    );
    let same = run(&ingress, &ingress, &options()).check_order();
    assert_eq!(same, Err(OrderError::Same { samples: 100 }));
    // Without a match, nothing is known of the order.
    assert_eq!(run(&ingress, &pcap(&[]), &options()).check_order(), Ok(()));
}

#[test]
fn negative_latencies_are_reported_not_hidden() {
    let (ingress, mut egress) = steady(100);
    for packet in &mut egress {
        packet.0 -= 30 * US + 70 * US * i64::from(packet.1 % 2);
    }
    egress.sort_by_key(|packet| packet.0);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.latencies.entries(), [(-70 * US, 50), (0, 50)]);
    assert_eq!(analysis.summary.latency_ns.min, Some(-70 * US));
    warned(
        &analysis.summary.warnings,
        &[("not_positive", 50, &["50 of 100", "negative", "clocks", "swapped"])],
    );
}
