//! Frames to the reflector, sound or changed by chance.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// A frame from 10.0.0.1 or fd00::1 to us, with the right checksums.
pub(super) fn frame(v6: bool, from_port: u16, port: u16, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let length = (payload.len() + 8) as u16;
    if v6 {
        frame.extend([0x86, 0xdd, 0x6b, 0x91, 0x23, 0x45]);
        frame.extend(length.to_be_bytes());
        frame.extend([17, hops]);
        for last in [1, 2] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    } else {
        frame.extend([0x08, 0x00, 0x45, 0xb9]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, hops, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    for word in [from_port, port, length, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    sum_up(&mut frame);
    frame
}

/// Puts right the checksums of a frame without options.
fn sum_up(frame: &mut [u8]) {
    let udp = if is_v6(frame) { 54 } else { 34 };
    if !is_v6(frame) {
        frame[24..26].fill(0);
        let sum = !ones(&[&frame[14..34]]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame[udp + 6..udp + 8].fill(0);
    let sum = !udp_sum(frame);
    let sum = if sum == 0 { u16::MAX } else { sum };
    frame[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
}

pub(super) fn is_v6(frame: &[u8]) -> bool {
    frame[12] == 0x86
}

/// UDP's length; where it is 0, that of IPv6.
pub(super) fn udp_len(frame: &[u8]) -> [u8; 2] {
    let udp = if is_v6(frame) { 54 } else { 34 };
    match [frame[udp + 4], frame[udp + 5]] {
        [0, 0] if is_v6(frame) => [frame[18], frame[19]],
        length => length,
    }
}

/// The sum over pseudo header and datagram, all ones if its checksum is right.
pub(super) fn udp_sum(frame: &[u8]) -> u16 {
    let (addresses, udp) = if is_v6(frame) { (22..54, 54) } else { (26..34, 34) };
    let length = udp_len(frame);
    let end = (udp + usize::from(u16::from_be_bytes(length))).clamp(udp, frame.len());
    ones(&[&frame[addresses], &[0, 17], &length, &frame[udp..end]])
}

/// The sum of 16-bit words with carries.
pub(super) fn ones(pieces: &[&[u8]]) -> u16 {
    let mut total = 0_u32;
    for piece in pieces {
        for pair in piece.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
    }
    total as u16
}

/// A random frame, which is sound except for random changes in its headers.
pub(super) fn random(chance: &mut Pcg64) -> Vec<u8> {
    let mut below = |end: u32| chance.next_u32() % end;
    let v6 = below(2) == 0;
    let port = [7, 862, 8_620, 8_620, 9][below(5) as usize];
    let from_port = [40_000, 1_023, 1_024, 862, 65_535, 0][below(12) as usize % 6];
    let mut payload =
        vec![0; [0, 1, 7, 8, 43, 44, 44, 44, 45, 63, 64, 65, 71, 300][below(14) as usize]];
    let filled = below(4) > 0;
    for byte in payload.iter_mut().filter(|_| filled) {
        *byte = below(256) as u8;
    }
    let mut frame = frame(v6, from_port, port, 2 + below(254) as u8, &payload);
    let (headers, udp) = if v6 { (62, 54) } else { (42, 34) };
    match below(8) {
        // Anything in the headers, with or without the checksums that belong to it.
        0 | 1 => {
            let at = below(headers) as usize;
            frame[at] = below(256) as u8;
            if below(2) == 0 {
                sum_up(&mut frame);
            }
        }
        2 => {
            let length = [0, 7, 8, payload.len() as u16 + 7, payload.len() as u16 + 9, u16::MAX];
            let length = length[below(6) as usize];
            frame[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
            sum_up(&mut frame);
        }
        3 => frame.truncate(below(frame.len() as u32).max(14) as usize),
        4 => frame.resize(frame.len() + below(20) as usize, 0xee),
        5 => frame[udp + 6..udp + 8].fill(0),
        _ => {}
    }
    frame
}

/// The TTL or hop limit of a frame.
pub(super) fn hops(frame: &[u8]) -> u8 {
    frame[if is_v6(frame) { 21 } else { 22 }]
}
