//! Captures of one kind of packets, in each format.

use std::io::Write;

/// A pcap as [`hostile`] packets make it.
pub(crate) fn pcap(packets: &[(u64, u32)]) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for &(stamp_ns, id) in packets {
        let (seconds, rest) = (stamp_ns / 1_000_000_000, stamp_ns % 1_000_000_000);
        for word in [seconds as u32, rest as u32, 60, 60] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame(id));
    }
    file
}

fn frame(id: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[20..24].copy_from_slice(&id.to_le_bytes());
    frame
}

pub(crate) fn pcapng(packets: &[(u64, u32)]) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| {
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    words(&mut file, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    // Ethernet, stamps in ns.
    words(&mut file, &[1, 32, 1, 0, 0x0001_0009, 9, 0, 32]);
    for &(stamp_ns, id) in packets {
        words(&mut file, &[6, 92, 0, (stamp_ns >> 32) as u32, stamp_ns as u32, 60, 60]);
        file.extend(frame(id));
        words(&mut file, &[92]);
    }
    file
}

pub(crate) fn mscap(packets: &[(u64, u32)]) -> Vec<u8> {
    let record =
        |&(stamp_ns, id): &(u64, u32)| [&stamp_ns.to_le_bytes()[..], &id.to_le_bytes()].concat();
    packets.iter().flat_map(record).collect()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
