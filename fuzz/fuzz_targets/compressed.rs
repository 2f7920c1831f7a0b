//! A compressed file, of unknown origin: frames and members one after the other are decompressed to what
//! was compressed, bytes of any kind are refused or decompressed the same however they arrive, and an error stays one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::{BufReader, Cursor, Read, Write};
use tailtrim_reading::source::decompressed;

/// Larger outputs are cut here: a frame of a few bytes may stand for a terabyte.
const MOST: u64 = 1 << 18;

fuzz_target!(|data: &[u8]| {
    let [how, at, rest @ ..] = data else { return };
    if how & 3 == 0 {
        let _ = check(rest);
        return;
    }
    let parts = rest.chunks((rest.len() / 3).max(1)).zip([how >> 2, how >> 4, how >> 6, *how]);
    let (mut file, mut expected) = (Vec::new(), Vec::new());
    for (part, kind) in parts {
        file.extend(compressed(part, kind & 3));
        expected.extend(if kind & 3 == 2 { &[] } else { part });
    }
    if file.is_empty() {
        return;
    }
    if how & 3 == 3 {
        assert_eq!(check(&file), Ok(expected));
    } else {
        let place = usize::from(*at) * 7 % file.len();
        file[place] ^= 1 << (how >> 5);
        let _ = check(&file);
    }
});

fn compressed(part: &[u8], kind: u8) -> Vec<u8> {
    match kind {
        0 => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        }
        1 => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        }
        2 => [b"\x53\x2a\x4d\x18", &(part.len() as u32).to_le_bytes()[..], part].concat(),
        _ => zstd::encode_all(part, 3).unwrap(),
    }
}

fn check(file: &[u8]) -> Result<Vec<u8>, String> {
    let whole = read(Cursor::new(file.to_vec()));
    let pieces = read(BufReader::with_capacity(3, Cursor::new(file.to_vec())));
    // The bytes in front of damage may come out in larger or smaller pieces; the damage is reported in any case.
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (Err(whole), Err(pieces)) => assert!(!whole.is_empty() && !pieces.is_empty()),
        _ => panic!("{whole:?} at once, {pieces:?} in pieces"),
    }
    whole
}

fn read(source: impl std::io::BufRead + Send + 'static) -> Result<Vec<u8>, String> {
    let mut source = decompressed(source).unwrap();
    let mut content = Vec::new();
    let result = source.by_ref().take(MOST).read_to_end(&mut content);
    match result {
        Ok(_) => Ok(content),
        Err(error) => {
            assert_eq!(source.read(&mut [0; 8]).unwrap_err().to_string(), error.to_string());
            Err(error.to_string())
        }
    }
}
