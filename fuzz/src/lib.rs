//! Common parts of the fuzz targets: inputs that arrive in different pieces, the signers, and the checks that every
//! capture must pass.

use std::io::{self, Read};
use std::sync::OnceLock;
use tailtrim_tail::capture::{
    CaptureError, CaptureReader, Input, InterfaceDirection, Only, Record, StampSource, Streamed, Whole,
};
use tailtrim_tail::signature::{Rewrites, Signer};
use xxhash_rust::xxh3::xxh3_64;

/// Signers that take every path.
pub fn signers() -> &'static [Signer; 4] {
    static SIGNERS: OnceLock<[Signer; 4]> = OnceLock::new();
    SIGNERS.get_or_init(|| {
        [
            Signer::new(Rewrites::default()),
            Signer::new(Rewrites { nat: true, tos: true, tunnel: true }),
            Signer::new(Rewrites { nat: true, tos: false, tunnel: false }).limited_to(20),
            Signer::of_selection("42:4,0:60,12:1000".parse().unwrap()),
        ]
    })
}

/// Gives pieces of different lengths.
struct Pieces {
    bytes: Vec<u8>,
    position: usize,
    calls: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        let rest = &self.bytes[self.position..];
        let count = (self.calls * 37 % 101 + 1).min(rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.position += count;
        Ok(count)
    }
}

/// An input whose window grows by a few bytes at a time.
pub struct Creeping {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Creeping {
    /// Starts with nothing in the window.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0, end: 0 }
    }
}

impl Input for Creeping {
    fn window(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.end);
    }

    fn extend(&mut self) -> io::Result<bool> {
        let more = self.end < self.bytes.len();
        self.end = (self.end + 7).min(self.bytes.len());
        Ok(more)
    }
}

/// Settings for reading a capture.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Source of the stamps.
    pub stamps: StampSource,
    /// Read as `MoonSniff` records.
    pub moonsniff: bool,
    /// Use the part in front of damage.
    pub salvage: bool,
}

/// Content of a capture, up to where it failed.
#[derive(Debug, PartialEq)]
struct Content {
    records: Vec<Record>,
    error: Option<String>,
    damage: Option<String>,
    drops: Option<u64>,
    offset: u64,
}

fn read(input: Box<dyn Input>, how: How, signer: &Signer, peek: bool) -> Content {
    let (mut records, mut error, mut damage, mut drops, mut offset) =
        (Vec::new(), None, None, None, 0);
    match CaptureReader::open("fuzz", input, how.stamps, how.moonsniff, how.salvage) {
        Err(failure) => error = Some(failure.to_string()),
        Ok(mut capture) => {
            let peeked = if peek { capture.peek(signer).unwrap() } else { Vec::new() };
            let mut batch = Vec::new();
            loop {
                match capture.read(signer, &mut batch) {
                    Ok(true) => {
                        assert!(!batch.is_empty());
                        records.append(&mut batch);
                    }
                    Ok(false) => break,
                    Err(failure) => {
                        let told = failure.remedy().is_some();
                        match failure {
                            // A variant of pcap, which only shows behind its first record.
                            CaptureError::Format { .. } => assert_eq!(records.len(), 1),
                            CaptureError::Damaged { nanoseconds: true, .. } => assert!(told),
                            _ => assert!(told == !records.is_empty()),
                        }
                        error = Some(failure.to_string());
                        break;
                    }
                }
            }
            if peek {
                assert_eq!(peeked, records);
            }
            damage = capture.damage().map(ToString::to_string);
            drops = capture.tap_drops();
            offset = capture.offset();
        }
    }
    Content { records, error, damage, drops, offset }
}

/// Reads a capture in all ways. They must agree, and none may panic.
///
/// Captures of full-width `MoonSniff` records may differ when peeked at: later records determine how earlier ones are
/// to be read.
pub fn read_in_all_ways(bytes: &[u8], moonsniff: bool) {
    let salvage = bytes.len() & 1 != 0;
    let trailers = bytes.len() & 6 == 6;
    let stamps = if trailers { StampSource::X552Trailer } else { StampSource::Header };
    let how = How { stamps, moonsniff, salvage };
    let mut counts = [0; 4];
    for (signer, count) in signers().iter().zip(&mut counts) {
        let whole = read(Box::new(Whole::new(bytes.to_vec())), how, signer, !moonsniff);
        *count = whole.records.len();
        if bytes.len() % 4 == *count % 4 {
            let pieces = Pieces { bytes: bytes.to_vec(), position: 0, calls: bytes.len() };
            assert_eq!(whole, read(Box::new(Streamed::new(pieces)), how, signer, false));
        } else {
            let creeping = Creeping::new(bytes.to_vec());
            assert_eq!(whole, read(Box::new(creeping), how, signer, false));
        }
    }
    // Which bytes are signed does not change what a record is.
    assert!(counts.iter().all(|count| *count == counts[0]));
}

/// Makes a classic pcap of anything: mutations rarely hit a magic number.
pub fn with_pcap_magic(data: &[u8]) -> Vec<u8> {
    const MAGICS: [[u8; 4]; 4] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xa1, 0xb2, 0x3c, 0x4d],
    ];
    let mut bytes = data.to_vec();
    if let Some(magic) = bytes.first_chunk_mut::<4>()
        && !MAGICS.contains(magic)
    {
        *magic = MAGICS[usize::from(magic[0] & 3)];
    }
    bytes
}

/// Reads the packets of one interface, and counts those of each: the same ones, where the capture can be read.
pub fn read_one_interface(bytes: &[u8]) {
    let open = || {
        let input = Box::new(Whole::new(bytes.to_vec()));
        CaptureReader::open("fuzz", input, StampSource::Header, false, true)
    };
    let Ok(capture) = open() else { return };
    let Ok(seen) = capture.survey() else { return };
    for one in seen {
        let Ok(mut capture) = open() else { panic!("opens as before") };
        capture.take_only(Only::named(&one.choice, InterfaceDirection::In)).unwrap();
        let (mut batch, mut count) = (Vec::new(), 0);
        while let Ok(true) = capture.read(&signers()[0], &mut batch) {
            count += batch.len() as u64;
        }
        // A choice without a direction takes both.
        assert!(count >= one.packets);
    }
}

/// Makes a modified pcap of anything: version, link type and magic number are mended.
pub fn with_modified_magic(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if let Some(header) = bytes.first_chunk_mut::<24>() {
        let big = header[0] & 1 != 0;
        let start: [u8; 8] = if big {
            [0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4]
        } else {
            [0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0]
        };
        header[..8].copy_from_slice(&start);
        header[20..].copy_from_slice(if big { &[0, 0, 0, 1] } else { &[1, 0, 0, 0] });
    }
    bytes
}

/// Makes records of ERF of anything: most get a type that is read, and lengths that fit.
pub fn with_erf_headers(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let mut at = 0;
    while bytes.len() - at >= 16 {
        let rest = &mut bytes[at..];
        // The first two make the format known; some of those behind stay as they are.
        if at < 200 || rest[0] % 8 != 0 {
            rest[8] = rest[8] & 0x80 | [2, 22, 20, 48, 3, 27, 2, 2][usize::from(rest[8] & 7)];
            rest[9] &= 0x3f;
            rest[5..8].copy_from_slice(&[0, 0, 0x65]);
            let length = (16 + usize::from(rest[11])).min(rest.len()) as u16;
            rest[10..12].copy_from_slice(&length.to_be_bytes());
            rest[14] = 0;
        }
        at += usize::from(u16::from_be_bytes([bytes[at + 10], bytes[at + 11]])).max(16);
        at = at.min(bytes.len());
    }
    bytes
}

/// Makes blocks of anything: gives each a length that fits, and the same one at its end.
pub fn with_pcapng_blocks(data: &[u8]) -> Vec<u8> {
    const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    let mut bytes = data.to_vec();
    let Some(magic) = bytes.first_chunk_mut::<4>() else { return bytes };
    *magic = SECTION;
    let mut big = false;
    let mut at = 0;
    while bytes.len() - at >= 12 {
        let rest = &mut bytes[at..];
        if rest[..4] == SECTION {
            big = rest[8] & 1 != 0 && rest[8] != 0x4d;
            let magic = 0x1a2b_3c4d_u32;
            rest[8..12].copy_from_slice(&if big {
                magic.to_be_bytes()
            } else {
                magic.to_le_bytes()
            });
        }
        let word = [rest[4], rest[5], rest[6], rest[7]];
        let told = if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) } as usize;
        let length = if told >= 12 && told % 4 == 0 && told <= rest.len() {
            told
        } else {
            (12 + told % 128 / 4 * 4).min(rest.len() / 4 * 4)
        };
        let word = if big { (length as u32).to_be_bytes() } else { (length as u32).to_le_bytes() };
        rest[4..8].copy_from_slice(&word);
        rest[length - 4..length].copy_from_slice(&word);
        at += length;
    }
    bytes
}

/// Makes a journal of lines of JSON: gives each the checksum that it has in a journal, unless it begins with a space, and
/// the header the number of steps that follow and the checksum over them.
pub fn with_journal_sums(data: &[u8]) -> Vec<u8> {
    let mut lines = data.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let rest: Vec<Vec<u8>> = lines.map(with_sum).collect();
    let is_step = |line: &&Vec<u8>| {
        line.get(17..).is_some_and(|json| json.starts_with(br#"{"record":"step""#))
            && line.ends_with(b"\n")
    };
    let steps: Vec<u8> = rest.iter().take_while(is_step).flatten().copied().collect();
    let count = rest.iter().take_while(is_step).count();
    let header = String::from_utf8_lossy(first)
        .replace("STEPS", &count.to_string())
        .replace("CHECKSUM", &format!("{:016x}", xxh3_64(&steps)));
    [with_sum(header.as_bytes()), rest.concat()].concat()
}

fn with_sum(line: &[u8]) -> Vec<u8> {
    if line.starts_with(b" ") {
        return line.to_vec();
    }
    let json = line.strip_suffix(b"\n").unwrap_or(line);
    [format!("{:016x} ", xxh3_64(json)).as_bytes(), line].concat()
}

/// Makes an archive of blocks of 512 bytes: gives each header the checksum that fits, and a size within the bytes that
/// follow.
pub fn with_tar_sums(data: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 512;
    const SIZE: std::ops::Range<usize> = 124..136;
    const SUM: std::ops::Range<usize> = 148..156;
    let mut bytes = data.to_vec();
    let mut at = 0;
    while bytes.len() - at >= BLOCK {
        let room = bytes.len() - at - BLOCK;
        let header = &mut bytes[at..at + BLOCK];
        let octal = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).unwrap_or("");
            usize::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
        };
        let size = octal(&header[SIZE]).unwrap_or(0);
        // One in eight sizes that are too large stays so.
        let size = if size > room && size % 8 != 7 { room } else { size };
        header[SIZE]
            .copy_from_slice(format!("{size:011o}\0").as_bytes().first_chunk::<12>().unwrap());
        header[SUM].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        at += BLOCK + size.min(room).div_ceil(BLOCK) * BLOCK;
        at = at.min(bytes.len());
    }
    bytes
}
