//! Clocks, damage and sources as they come.

use super::{Arrival, US, open, options, pcap, run, steady, try_run};
use crate::support::frames::probe;
use crate::support::{How, Order, Pcap, Pcapng, SECOND_NS, mscap, says, x552};
use std::io;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{AnalysisError, Options, Sample, Sink, analyze};
use tailtrim_tail::capture::{CaptureError, CaptureReader, StampSource, Streamed};

#[test]
fn moonsniff_captures_are_a_whole_number_of_wraps_apart() {
    const WRAP: u64 = 1 << 32;
    let run = |ingress: &[(u64, u32)], egress: &[(u64, u32)]| {
        let files = (mscap(ingress), mscap(egress));
        let files = (files.0.as_slice(), files.1.as_slice());
        try_run(files, How::MOONSNIFF, Arrival::Mapped, &options()).unwrap().0
    };
    let at = |id: u32| u64::from(id) * 50_000_000;
    // The egress capture begins just after the wrap.
    let ingress: Vec<(u64, u32)> =
        (0..200).map(|id| ((WRAP - 1_000 + at(id)) % WRAP, id)).collect();
    let egress: Vec<(u64, u32)> = (0..200).map(|id| ((WRAP + 1_000 + at(id)) % WRAP, id)).collect();
    let analysis = run(&ingress, &egress);
    assert_eq!(analysis.latencies.entries(), [(2_000, 200)]);
    // Stamps of full width mean what they say, however far the captures begin apart.
    let ingress: Vec<(u64, u32)> = (0..200).map(|id| (10_000_000_000 + at(id), id)).collect();
    let egress: Vec<(u64, u32)> = (80..200).map(|id| (10_000_002_000 + at(id), id)).collect();
    let analysis = run(&ingress, &egress);
    assert_eq!(analysis.latencies.entries(), [(2_000, 120)]);
    assert_eq!((analysis.summary.ingress.lost, analysis.summary.ingress.cut), (0, 80));
}

#[test]
fn trailers_are_the_clock() {
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for id in 0..10 {
        ingress.frame(i64::from(id), &x552(&probe(id), id * 1_000, 5));
        egress.frame(99, &x552(&probe(id), id * 1_000 + 17, 5));
    }
    let files = (ingress.bytes.as_slice(), egress.bytes.as_slice());
    let (analysis, _) = try_run(files, How::X552, Arrival::Piped, &options()).unwrap();
    assert_eq!(analysis.latencies.entries(), [(17, 10)]);
    assert_eq!(analysis.summary.taps.ingress.bytes, 10 * probe(0).len() as u64);
}

#[test]
fn a_clock_that_was_set_back_ends_the_analysis() {
    let disorder = |ingress: &[u8], egress: &[u8]| {
        let options = Options { trim_ns: 0, ..Options::default() };
        let error =
            try_run((ingress, egress), How::SALVAGE, Arrival::Mapped, &options).err().unwrap();
        let AnalysisError::Capture(error) = error else { panic!("{error}") };
        assert!(error.remedy().is_some());
        let CaptureError::Disorder { path, packet, back_ns } = error else { panic!("{error}") };
        (path, packet, back_ns)
    };
    let (ingress, egress) = steady(300);
    let mut back = ingress.clone();
    back[200..].iter_mut().for_each(|packet| packet.0 -= 2 * SECOND_NS);
    let back_ns = 2 * SECOND_NS - 100 * US;
    assert_eq!(disorder(&pcap(&back), &pcap(&egress)), ("in".to_owned(), 201, back_ns));
    // Packets without a stamp are counted, too.
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, Some(9), None).simple_packet(&probe(0), 64).packet(0, 1 << 40, &probe(1));
    file.packet(0, 1 << 40, &probe(6));
    file.simple_packet(&probe(2), 64).packet(0, 77, &probe(3)).simple_packet(&probe(4), 64);
    file.packet(0, 78, &probe(5));
    assert_eq!(disorder(&pcap(&ingress), &file.bytes), ("out".to_owned(), 5, (1 << 40) - 77));
    // Just within a second is no error.
    let mut back = ingress.clone();
    back[200].0 -= SECOND_NS - 1 + 100 * US - 200 * US;
    run(&pcap(&back), &pcap(&egress), &options());
}

#[test]
fn damage_ends_the_analysis_unless_salvaged() {
    let (ingress, egress) = steady(100);
    let (ingress, mut egress) = (pcap(&ingress), pcap(&egress));
    egress.truncate(24 + 50 * 80 + 7);
    let files = (ingress.as_slice(), egress.as_slice());
    let error = try_run(files, How::default(), Arrival::Mapped, &options()).err().unwrap();
    let AnalysisError::Capture(CaptureError::Damaged { path, offset, records, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((path.as_str(), offset, records), ("out", 4_024, 50));
    for arrival in [Arrival::Mapped, Arrival::Piped] {
        let (analysis, _) = try_run(files, How::SALVAGE, arrival, &options()).unwrap();
        assert_eq!((analysis.summary.samples, analysis.summary.ingress.cut), (50, 50));
    }
}

#[test]
fn a_sink_that_cannot_take_a_sample_ends_the_analysis() {
    struct Full;
    impl Sink for Full {
        fn sample(&mut self, _: &Sample) -> io::Result<()> {
            Err(io::Error::other("disk full"))
        }
    }
    let (ingress, egress) = steady(3);
    let mut ingress = open("in", &pcap(&ingress), How::default(), Arrival::Mapped);
    let mut egress = open("out", &pcap(&egress), How::default(), Arrival::Mapped);
    let progress = |_, _| ControlFlow::Continue(());
    let error = analyze(&mut ingress, &mut egress, &options(), &mut Full, progress).err().unwrap();
    assert!(matches!(&error, AnalysisError::Sink(cause) if cause.to_string() == "disk full"));
    assert!(error.to_string().ends_with(": disk full"), "{error}");
}

#[test]
fn progress_is_told_and_may_stop() {
    // Called once in about a million packets.
    let records: Vec<(u64, u32)> = (0..600_000).map(|id| (u64::from(id) * 1_000, id)).collect();
    let bytes = mscap(&records);
    let open = |name| open(name, &bytes, How::MOONSNIFF, Arrival::Mapped);
    let (mut ingress, mut egress) = (open("in"), open("out"));
    let mut told = Vec::new();
    let error = analyze(&mut ingress, &mut egress, &options(), &mut (), |entered, left| {
        told.push((entered, left));
        ControlFlow::Break(())
    });
    assert_eq!(error.err().unwrap().to_string(), "stopped on request");
    assert_eq!(told.len(), 1);
    let expected = 12 * 500_000..bytes.len() as u64;
    assert!(expected.contains(&told[0].0) && expected.contains(&told[0].1), "{told:?}");
}

/// Found by fuzzing: differences of such stamps overflowed.
#[test]
fn stamps_at_both_ends_of_time() {
    const HALF: i64 = 1 << 62;
    let offset_s = -HALF / SECOND_NS;
    let mut file = Pcapng::new(Order::Big);
    file.interface(1, Some(9), Some(offset_s));
    let last = ((HALF - 1) - offset_s * SECOND_NS) as u64;
    file.packet(0, 0, &probe(0)).packet(0, last, &probe(1));
    let analysis = run(&file.bytes, &file.bytes, &options());
    assert_eq!(analysis.latencies.entries(), [(0, 2)]);
    assert_eq!(analysis.ingress_gaps.sorted(), [(last as i64, 1)]);
    assert_eq!(analysis.seconds.len(), 2);
    // A little later is no time any more.
    file.packet(0, last + 1, &probe(2));
    let files = (file.bytes.as_slice(), file.bytes.as_slice());
    let (analysis, _) = try_run(files, How::SALVAGE, Arrival::Mapped, &options()).unwrap();
    assert_eq!(analysis.summary.samples, 2);
    assert!(analysis.summary.taps.ingress.damage.is_some());
}

#[test]
fn a_pipe_reports_where_it_broke() {
    let (ingress, egress) = steady(10);
    let whole = pcap(&egress);
    let broken = Box::new(Streamed::new(crate::support::Failing(whole[..24 + 3 * 80].to_vec())));
    let mut ingress = open("in", &pcap(&ingress), How::default(), Arrival::Mapped);
    let mut egress = CaptureReader::open("out", broken, StampSource::Header, false, true).unwrap();
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, &options(), &mut (), progress).unwrap();
    assert_eq!((analysis.summary.samples, analysis.summary.ingress.cut), (3, 7));
    let damage = analysis.summary.taps.egress.damage.unwrap();
    assert!(says(&damage, &["out", "byte 264:", "the cable is cut"]), "{damage}");
}
