//! Writes one side of a synthetic pair of captures to standard output, for benchmarks: constant packet
//! rate, UDP over IPv4 with a sequence number, a first-in-first-out device under test whose latency has a
//! bulk around 4 µs and stalls of up to 60 µs behind which packets queue.
//!
//! Both sides come from the same seed, so they can be written at the same time, also to pipes:
//!
//! ```text
//! synthesize ingress PAIRS FRAME_BYTES [INTERVAL_NS] > ingress.pcap
//! synthesize egress  PAIRS FRAME_BYTES [INTERVAL_NS] > egress.pcap
//! ```
//!
//! With `mscap` instead of a size it writes what `MoonSniff` keeps of the same packets: stamp and identifier.
#![allow(clippy::print_stderr, reason = "a program, not a library")]

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// 10 Gbit/s of 60-byte frames come every 67.2 ns; this is a little below that.
const INTERVAL_NS: u64 = 72;

/// Stamps that fit 32 bits would be taken for those that wrap there.
const MSCAP_NS: u64 = 1_700_000_000_000_000_000;

/// Stalls per packet.
const STALLS: u64 = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let parsed = match arguments.as_slice() {
        [_, side, pairs, frame, rest @ ..]
            if (side == "ingress" || side == "egress") && rest.len() < 2 =>
        {
            let form = match frame.as_str() {
                "mscap" => Some(Form::Mscap),
                bytes => {
                    bytes.parse().ok().filter(|bytes| (60..=9_000).contains(bytes)).map(Form::Pcap)
                }
            };
            let interval_ns = rest.first().map_or(Some(INTERVAL_NS), |ns| ns.parse().ok());
            pairs
                .parse()
                .ok()
                .zip(form)
                .zip(interval_ns)
                .map(|((pairs, form), interval_ns)| (side, pairs, form, interval_ns))
        }
        _ => None,
    };
    let Some((side, pairs, form, interval_ns)) = parsed else {
        eprintln!(
            "usage: synthesize ingress|egress PAIRS FRAME_BYTES(60..9000)|mscap [INTERVAL_NS]"
        );
        return ExitCode::from(2);
    };
    let output = BufWriter::with_capacity(1 << 20, io::stdout());
    match write(side == "egress", pairs, form, interval_ns, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("synthesize: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy)]
enum Form {
    /// Frames of so many bytes.
    Pcap(usize),
    Mscap,
}

fn write(
    egress: bool,
    pairs: u64,
    form: Form,
    interval_ns: u64,
    mut output: impl Write,
) -> io::Result<()> {
    let mut record = match form {
        Form::Pcap(frame) => {
            output.write_all(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
            output.write_all(&[0, 0, 4, 0, 1, 0, 0, 0])?;
            let mut record = vec![0; 16 + frame];
            record[8..12].copy_from_slice(&(frame as u32).to_le_bytes());
            record[12..16].copy_from_slice(&(frame as u32).to_le_bytes());
            header(&mut record[16..]);
            record
        }
        Form::Mscap => vec![0; 12],
    };
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut free_ns = 0;
    for sequence in 0..pairs {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let arrival_ns = 1_000_000_000 + sequence * interval_ns + (state >> 40) % 32;
        let stall_ns =
            if state.is_multiple_of(STALLS) { 10_000 + (state >> 20) % 50_000 } else { 0 };
        let ready_ns = arrival_ns + 3_800 + (state >> 50) % 400 + stall_ns;
        // First in, first out, at most one packet every 50 ns.
        free_ns = ready_ns.max(free_ns + 50);
        let stamp_ns = if egress { free_ns } else { arrival_ns };
        match form {
            Form::Pcap(_) => {
                record[0..4].copy_from_slice(&((stamp_ns / 1_000_000_000) as u32).to_le_bytes());
                record[4..8].copy_from_slice(&((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
                record[16 + 42..16 + 50].copy_from_slice(&sequence.to_le_bytes());
            }
            Form::Mscap => {
                record[..8].copy_from_slice(&(MSCAP_NS + stamp_ns).to_le_bytes());
                record[8..].copy_from_slice(&(sequence as u32).to_le_bytes());
            }
        }
        output.write_all(&record)?;
    }
    output.flush()
}

/// Ethernet, IPv4 and UDP headers.
fn header(frame: &mut [u8]) {
    let length = frame.len();
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..38].copy_from_slice(&[0x04, 0, 0, 53]);
    frame[38..40].copy_from_slice(&((length - 34) as u16).to_be_bytes());
}
