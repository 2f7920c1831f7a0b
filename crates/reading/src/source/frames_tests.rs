//! Threads that decompress ahead change neither bytes nor errors.

use super::*;
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// A part of a compressed file.
#[derive(Debug, Clone)]
enum Part {
    /// A frame of so many bytes, with or without its size and a checksum.
    Frame(usize, bool),
    /// A frame that is skipped.
    Skipped(usize),
    /// A gzip member of so many bytes.
    Gzip(usize),
    /// Bytes that are neither a frame nor a gzip member.
    Garbage,
}

/// Bytes that compress to about a half, different ones for each seed.
fn content(bytes: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 60) as u8
    };
    (0..bytes).map(next).collect()
}

fn compressed(parts: &[Part]) -> Vec<u8> {
    let mut file = Vec::new();
    for (seed, part) in parts.iter().enumerate() {
        match *part {
            Part::Frame(bytes, true) => {
                let mut encoder = zstd::Encoder::new(&mut file, 1).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.set_pledged_src_size(Some(bytes as u64)).unwrap();
                io::copy(&mut &content(bytes, seed)[..], &mut encoder).unwrap();
                encoder.finish().unwrap();
            }
            Part::Frame(bytes, false) => {
                file.extend(zstd::encode_all(&content(bytes, seed)[..], 1).unwrap());
            }
            Part::Skipped(bytes) => {
                file.extend([0x50, 0x2a, 0x4d, 0x18]);
                file.extend((bytes as u32).to_le_bytes());
                file.extend(content(bytes, seed));
            }
            Part::Gzip(bytes) => {
                let mut encoder = flate2::write::GzEncoder::new(&mut file, <_>::default());
                io::copy(&mut &content(bytes, seed)[..], &mut encoder).unwrap();
                encoder.finish().unwrap();
            }
            Part::Garbage => file.extend(b"garbage"),
        }
    }
    file
}

/// All bytes, the error behind them, and the error of one more read.
fn all(mut source: impl Read) -> (Vec<u8>, Option<String>, Option<String>) {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 256 * 1024]);
    let mut read = || match source.read(&mut piece) {
        Ok(count) => {
            bytes.extend(&piece[..count]);
            Ok(count)
        }
        Err(error) => Err(error.to_string()),
    };
    let error = loop {
        match read() {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
    };
    let again = read().err();
    (bytes, error, again)
}

/// A file that so many cores decompress ahead, and the number of bytes that were read of it.
fn frames(bytes: &[u8], cores: Option<usize>) -> (Frames, Arc<AtomicU64>) {
    let mut file = tempfile::tempfile().unwrap();
    io::copy(&mut &bytes[..], &mut file).unwrap();
    let (read, spare) = (Arc::<AtomicU64>::default(), Spare::default());
    let frames = Frames::new(Arc::new(file), Arc::clone(&read), Arc::clone(&spare)).unwrap();
    if let Some(cores) = cores {
        let cores = Arc::new(Cores::new(NonZeroUsize::new(cores).unwrap()));
        assert!(spare.set(cores).is_ok());
    }
    (frames, read)
}

/// Any number of cores, one of which is used by the reader, as in an analysis.
fn as_without_threads(bytes: &[u8]) {
    let expected = all(frames(bytes, None).0);
    for cores in [1, 3] {
        let (frames, read) = frames(bytes, Some(cores));
        let used = Arc::clone(frames.spare.get().unwrap());
        let _working = used.work();
        let found = all(frames);
        assert!(found == expected, "{:?}, expected {:?}", found.1, expected.1);
        if expected.1.is_none() {
            assert_eq!(read.load(Relaxed), bytes.len() as u64);
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        12 => (0..300_000_usize, any::<bool>()).prop_map(|(bytes, sized)| Part::Frame(bytes, sized)),
        // Several of them are given to one thread, or one that is more than enough.
        2 => (ENOUGH / 2..2 * ENOUGH, any::<bool>()).prop_map(|(bytes, sized)| Part::Frame(bytes, sized)),
        2 => (0..2_000_usize).prop_map(Part::Skipped),
        1 => (0..300_000_usize).prop_map(Part::Gzip),
        1 => Just(Part::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn threads_make_no_difference(parts in prop::collection::vec(part(), 0..12)) {
        as_without_threads(&compressed(&parts));
    }

    #[test]
    fn nor_where_a_file_is_cut_or_changed(
        parts in prop::collection::vec(part(), 1..8),
        place in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = compressed(&parts);
        prop_assume!(!bytes.is_empty());
        let place = place.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 0x10;
        }
        as_without_threads(&bytes);
    }
}

#[test]
fn small_frames_are_given_to_threads_and_large_ones_are_not() {
    let begin = |parts: &[Part]| {
        let (mut frames, _) = frames(&compressed(parts), Some(3));
        assert_eq!(frames.read(&mut [0; 10]).unwrap(), 10);
        (frames.ahead.len(), frames.rest_only)
    };
    let small = vec![Part::Frame(ENOUGH, true); 8];
    // One is being read, two more are ahead of it.
    assert_eq!(begin(&small), (2, false));
    let unsized_ones = vec![Part::Frame(ENOUGH, false); 8];
    assert_eq!(begin(&unsized_ones), (2, false));
    for sized in [true, false] {
        assert_eq!(begin(&[Part::Frame(MOST + 1, sized)]), (0, true));
    }
}

#[test]
fn what_waits_is_bounded_whatever_the_number_of_cores() {
    let (mut frames, _) = frames(&compressed(&vec![Part::Frame(MOST / 2, true); 6]), Some(1_000));
    assert_eq!(frames.read(&mut [0; 10]).unwrap(), 10);
    let waiting: usize = frames.ahead.iter().map(|ahead| ahead.bound).sum();
    assert!((1..=WAITING).contains(&waiting), "{waiting}");
}
