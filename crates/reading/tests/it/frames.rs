//! Captures of IP packets as devices and hosts change them, and their analysis.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use tailtrim_reading::analysis::analyze;
use tailtrim_reading::source::{Reading, open};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Sample, Sink};
use tailtrim_tail::summary::{Summary, Warning};
use tempfile::TempDir;

/// Stamps and frames.
pub(crate) type Packets = Vec<(i64, Vec<u8>)>;

pub(crate) const T0: i64 = 1_800_000_000_000_000_000;
pub(crate) const US: i64 = 1_000;

/// Numbers that look random.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % bound
    }
}

/// An IPv4 packet in an Ethernet frame.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) macs: [u8; 12],
    pub(crate) vlan: Option<u16>,
    pub(crate) tos: u8,
    pub(crate) ident: u16,
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
    /// From the transport header on.
    pub(crate) payload: Vec<u8>,
}

/// A UDP datagram with a counter in its payload.
pub(crate) fn udp(number: u32) -> Packet {
    Packet::new(17, datagram([5_000, 6_000], &body(number, 64)))
}

/// A payload with a number and bytes that are those of no other.
pub(crate) fn body(number: u32, length: usize) -> Vec<u8> {
    let mut random = Random::new(u64::from(number) + 77);
    let mut body = number.to_be_bytes().to_vec();
    body.extend((4..length).map(|_| random.below(256) as u8));
    body
}

pub(crate) fn datagram(ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    for word in [ports[0], ports[1], 8 + data.len() as u16, 0] {
        header.extend(word.to_be_bytes());
    }
    [header, data.to_vec()].concat()
}

pub(crate) fn segment(sequence: u32, data: &[u8]) -> Vec<u8> {
    let mut header = [443_u16.to_be_bytes(), 9_999_u16.to_be_bytes()].concat();
    header.extend(sequence.to_be_bytes());
    header.extend([0, 0, 0, 1, 0x50, 0x10, 2, 0, 0, 0, 0, 0]);
    [header, data.to_vec()].concat()
}

impl Packet {
    pub(crate) fn new(protocol: u8, payload: Vec<u8>) -> Self {
        Self {
            macs: [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8],
            vlan: None,
            tos: 0,
            ident: 7,
            fragment: 0,
            ttl: 64,
            protocol,
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 2],
            payload,
        }
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut frame = self.macs.to_vec();
        if let Some(vlan) = self.vlan {
            frame.extend([0x81, 0, (vlan >> 8) as u8, vlan as u8]);
        }
        frame.extend([8, 0, 0x45, self.tos]);
        for word in [20 + self.payload.len() as u16, self.ident, self.fragment] {
            frame.extend(word.to_be_bytes());
        }
        frame.extend([self.ttl, self.protocol, 0, 0]);
        frame.extend(self.source);
        frame.extend(self.destination);
        frame.extend(&self.payload);
        frame
    }

    /// As a router passes it on.
    pub(crate) fn routed(&self) -> Self {
        Self { ttl: self.ttl - 1, macs: [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 6], ..self.clone() }
    }
}

/// A pcap file that keeps so many bytes of each frame.
pub(crate) fn pcap(packets: &Packets, snap: usize) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut packets: Vec<_> = packets.iter().collect();
    packets.sort_by_key(|(stamp_ns, _)| *stamp_ns);
    for (stamp_ns, frame) in packets {
        let length = frame.len() as u32;
        let (seconds, rest) = (stamp_ns / 1_000_000_000, stamp_ns % 1_000_000_000);
        let kept = &frame[..frame.len().min(snap)];
        for word in [seconds as u32, rest as u32, kept.len() as u32, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(kept);
    }
    file
}

/// Options without a trim.
pub(crate) fn options() -> Options {
    Options { trim_ns: 0, ..Options::default() }
}

/// The summary of captures that keep so many bytes of each frame.
pub(crate) fn cut_to(taps: &[Packets; 2], snaps: [usize; 2], options: &Options) -> Summary {
    try_analyze_cut(taps, snaps, options).unwrap().summary
}

pub(crate) fn try_analyze(
    taps: &[Packets; 2],
    options: &Options,
) -> Result<Analysis, AnalysisError> {
    try_analyze_cut(taps, [usize::MAX; 2], options)
}

/// Takes samples and drops them, so that short captures are read ahead, too.
struct Discarded;

impl Sink for Discarded {
    fn sample(&mut self, _: &Sample) -> io::Result<()> {
        Ok(())
    }

    fn start_again(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

fn try_analyze_cut(
    taps: &[Packets; 2],
    snaps: [usize; 2],
    options: &Options,
) -> Result<Analysis, AnalysisError> {
    let folder = TempDir::new().unwrap();
    let paths = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    for ((path, packets), snap) in paths.iter().zip(taps).zip(snaps) {
        fs::write(path, pcap(packets, snap)).unwrap();
    }
    let mut analyses = [1, 2, 4].map(|jobs| {
        let [ingress, egress] = [0, 1].map(|side| open(&paths[side], Reading::default()).unwrap());
        let jobs = NonZeroUsize::new(jobs).unwrap();
        analyze(ingress, egress, jobs, options, &mut Discarded, |_, _| ControlFlow::Continue(()))
    });
    let texts = analyses.each_ref().map(|analysis| {
        analysis.as_ref().map(|analysis| serde_json::to_string(&analysis.summary).unwrap()).ok()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "the same on any number of cores");
    std::mem::replace(&mut analyses[0], Err(AnalysisError::Stopped))
}

pub(crate) fn summary(taps: &[Packets; 2], options: &Options) -> Summary {
    try_analyze(taps, options).unwrap().summary
}

/// The warning of this code.
pub(crate) fn warning<'a>(summary: &'a Summary, code: &str) -> &'a Warning {
    let found = summary.warnings.iter().find(|warning| warning.code == code);
    found.unwrap_or_else(|| panic!("no {code} among {:?}", summary.warnings))
}

/// Codes of the warnings by which packets in no pair are explained.
pub(crate) fn explained(summary: &Summary) -> Vec<&'static str> {
    let codes = [
        "masked",
        "offload",
        "fragments",
        "trailer",
        "identical",
        "unsigned",
        "two_directions",
        "mirror_copies",
        "both_sides",
        "same_vlans",
        "batched_stamps",
        "hole",
        "missing_flows",
    ];
    summary.warnings.iter().map(|one| one.code).filter(|code| codes.contains(code)).collect()
}
